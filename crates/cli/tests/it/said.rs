//! What the program says to people who ask for what cannot be: by the name of what they gave.

use std::net::TcpListener;

use soldonce_testkit::{PATIENCE, until};

use crate::crash::server::Server;
use crate::store::folder;

#[test]
fn a_redis_that_is_away_is_told_before_anybody_asks() {
    let at = folder("said-redis");
    let closed = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("redis://{}", closed.local_addr().unwrap());
    drop(closed);
    let data = at.join("data");
    let mut command = crate::crash::server::serving(&data);
    command.args(["--redis-url", &url]);
    let _server = Server::run(command, &data).unwrap();
    let log = data.with_extension("log");
    let is_told = || {
        let log = std::fs::read_to_string(&log).unwrap_or_default();
        log.contains("rate limits are not shared")
    };
    until("the log tells it", PATIENCE, is_told).unwrap();
}
