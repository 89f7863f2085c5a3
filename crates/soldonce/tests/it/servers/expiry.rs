//! Holds end by the clock, and that is written down, also after the database was away meanwhile.

use std::fs;

use serde_json::{Value, json};
use soldonce_clock::{Clock, SystemClock};
use soldonce_testkit::{PATIENCE, until_some};

use super::{SEATS, ask, database, hold, logs, serve, until};
use crate::crash::client::Ask;
use crate::shop::{done, hall};

/// Long enough for a look at the hold, on a machine that stalls.
const TTL_MS: i64 = 10_000;
/// What a server says when its database does not answer.
const DATABASE_AWAY: &str = "no commands are taken until the database does";
/// So much later what is over has been tried to be written down, several times.
const LATER_MS: i64 = 500;

#[test]
fn what_ends_while_the_database_is_away_is_written_down_when_it_is_back() {
    let (mut database, logs) = (database(), logs("expiry"));
    let log = logs.join("one.log");
    fs::remove_file(&log).ok();
    let server = serve(&database, &log);
    let mut client = server.client("ann");
    let mut event = hall("hamlet-1", 1, 2);
    event["policy"] = json!({"hold_ttl_ms": TTL_MS});
    done(&mut client, &Ask::post("/v1/events", event));
    let held = ask(&mut client, &hold("ann", "A-1"));
    assert_eq!(held.status, 201, "{}", held.shown());
    let ends_ms = SystemClock.wall_ms() + TTL_MS;
    let is_held = |seats: &Value| seats["held"] == json!(["A-1"]);
    let before = until(&mut client, SEATS, is_held);

    database.stop_immediately().unwrap();
    until_some(
        "it is over, and the server knows that the database is away",
        PATIENCE,
        || {
            let is_away = fs::read_to_string(&log)?.contains(DATABASE_AWAY);
            let is_over = SystemClock.wall_ms() > ends_ms + LATER_MS;
            Ok((is_away && is_over).then_some(()))
        },
    )
    .unwrap();
    database.restart().unwrap();

    let is_free = |seats: &Value| seats["held"] == json!([]);
    let after = until(&mut client, SEATS, is_free);
    assert_eq!(after["seq"], json!(before["seq"].as_u64().unwrap() + 1));
}
