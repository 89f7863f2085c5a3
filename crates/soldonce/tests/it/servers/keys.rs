//! API keys on several servers of one database.

use std::time::Duration;

use serde_json::json;
use soldonce_clock::{Clock, SystemClock};
use soldonce_testkit::PATIENCE;

use super::{ask, two_servers};
use crate::crash::client::{Ask, Client};
use crate::shop::done;

/// Within it a key that was revoked at one server is refused at every other one.
const REFUSED: Duration = Duration::from_secs(1);

/// A client with a key of its own. Its text lives as long as the test's process.
fn by_key(server: &crate::crash::server::Server, key: &str) -> Client {
    Client::new(server.address, key.to_owned().leak(), "till")
}

fn status(client: &mut Client) -> u16 {
    ask(client, &Ask::get("/v1/holds?holder=ann".to_owned())).status
}

#[test]
fn a_new_key_works_everywhere_at_once_and_a_revoked_one_for_a_second_at_most() {
    let (_database, one, two) = two_servers("servers-keys");
    let mut admin = one.client("admin");
    let mut took = Vec::new();
    for n in 0..5 {
        let body = json!({"name": format!("till {n}"), "scopes": ["sell"]});
        let made = done(&mut admin, &Ask::post("/v1/keys", body));
        let mut till = by_key(&two, made["key"].as_str().unwrap());
        assert_eq!(status(&mut till), 200, "a new key of the other server");
        let path = format!("/v1/keys/{}", made["id"].as_str().unwrap());
        let revoked = ask(&mut admin, &Ask::new("DELETE", path, None));
        assert_eq!(revoked.status, 200, "{}", revoked.shown());
        let answered = SystemClock.boot();
        soldonce_testkit::until("it is refused", PATIENCE, || status(&mut till) == 401).unwrap();
        took.push(SystemClock.boot().since(answered));
    }
    took.sort();
    assert!(took[2] < REFUSED, "{took:?}");
    let mut stranger = by_key(&two, "sk_that_was_never_made");
    assert_eq!(status(&mut stranger), 401);
}
