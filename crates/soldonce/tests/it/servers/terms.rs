//! What staff say of an event at one server is what every server decides by and shows.

use std::thread;

use serde_json::{Value, json};

use super::{SEATS, ask, create, database, hold, logs, serve, two_servers, until};
use crate::crash::client::{Ask, Client, HttpAnswer};
use crate::shop::{self, done, hall};

const EVENT: &str = "/v1/events/hamlet-1";
const LONG_AGO: &str = "2020-01-01T00:00:00.000Z";
const FAR_AWAY: &str = "2100-01-01T00:00:00.000Z";

fn patch(client: &mut Client, policy: &Value) -> HttpAnswer {
    let body = json!({"policy": policy});
    let heard = ask(client, &Ask::new("PATCH", EVENT.to_owned(), Some(body)));
    assert_eq!(heard.status, 200, "{}", heard.shown());
    heard
}

#[test]
fn an_event_is_known_everywhere_from_the_answer_on() {
    let (_database, one, two) = two_servers("terms-new");
    let (mut at_one, mut at_two) = (one.client("one"), two.client("two"));
    for n in 0..20 {
        let id = format!("night-{n}");
        done(&mut at_one, &Ask::post("/v1/events", hall(&id, 1, 2)));
        done(&mut at_two, &shop::hold(&id, "ann", "A-1"));
        let list = ask(&mut at_one, &Ask::get("/v1/events?limit=100".to_owned())).json();
        let ids = list["events"].as_array().unwrap().iter();
        assert!(ids.map(|event| &event["id"]).any(|known| *known == id));
    }
    let unknown = ask(&mut at_two, &Ask::get("/v1/events/no-such".to_owned()));
    assert_eq!(unknown.code(), "event_not_found");
}

#[test]
fn a_stop_at_one_server_outlives_an_unrelated_change_at_another() {
    let (_database, one, two) = two_servers("terms-stop");
    let (mut at_one, mut at_two) = (one.client("one"), two.client("two"));
    create(&mut at_one);
    assert_eq!(ask(&mut at_two, &hold("ann", "A-1")).status, 201);
    patch(&mut at_one, &json!({"sale_closes_at": LONG_AGO}));
    // The other server's memory may be old, its answer may not.
    let refused = ask(&mut at_two, &hold("bob", "A-2"));
    assert_eq!(refused.code(), "not_on_sale", "{}", refused.shown());
    let changed = patch(&mut at_two, &json!({"hold_ttl_ms": 60_000})).json();
    assert_eq!(changed["policy"]["sale_closes_at"], LONG_AGO, "{changed}");
    let is_stopped = |event: &Value| {
        event["on_sale"] == false
            && event["policy"]["sale_closes_at"] == LONG_AGO
            && event["policy"]["hold_ttl_ms"] == 60_000
    };
    for client in [&mut at_one, &mut at_two] {
        until(client, EVENT, is_stopped);
        assert_eq!(ask(client, &hold("bob", "A-2")).code(), "not_on_sale");
    }
}

#[test]
fn an_opening_and_the_end_of_an_event_reach_every_server() {
    let (_database, one, two) = two_servers("terms-open");
    let (mut at_one, mut at_two) = (one.client("one"), two.client("two"));
    create(&mut at_one);
    patch(&mut at_one, &json!({"sale_opens_at": FAR_AWAY}));
    until(&mut at_two, EVENT, |event| event["on_sale"] == false);
    assert_eq!(ask(&mut at_two, &hold("ann", "A-1")).code(), "not_on_sale");
    patch(&mut at_one, &json!({"sale_opens_at": null}));
    let held = ask(&mut at_two, &hold("ann", "A-1"));
    assert_eq!(held.status, 201, "{}", held.shown());
    until(&mut at_two, EVENT, |event| event["on_sale"] == true);
    let end = Ask::new(
        "POST",
        format!("{EVENT}/cancel"),
        Some(json!({"reason": "fog"})),
    );
    assert_eq!(ask(&mut at_one, &end).status, 200);
    assert_eq!(ask(&mut at_two, &hold("bob", "A-2")).code(), "not_on_sale");
    let is_over = |event: &Value| event["state"] == "cancelled" && event["reason"] == "fog";
    until(&mut at_two, EVENT, is_over);
    until(&mut at_two, SEATS, |seats| seats["held"] == json!([]));
}

#[test]
fn an_event_that_is_renamed_and_moved_is_so_at_every_server() {
    let (_database, one, two) = two_servers("terms-moved");
    let (mut at_one, mut at_two) = (one.client("one"), two.client("two"));
    create(&mut at_one);
    until(&mut at_two, EVENT, |event| event["state"] == "open");
    let body = json!({"name": "Othello", "starts_at": FAR_AWAY});
    let moved = ask(
        &mut at_one,
        &Ask::new("PATCH", EVENT.to_owned(), Some(body)),
    );
    assert_eq!(moved.status, 200, "{}", moved.shown());
    let is_moved = |event: &Value| event["name"] == "Othello" && event["starts_at"] == FAR_AWAY;
    until(&mut at_two, EVENT, is_moved);
    let changed = patch(&mut at_two, &json!({"hold_ttl_ms": 60_000})).json();
    assert!(is_moved(&changed), "{changed}");
}

#[test]
fn changes_of_different_fields_at_two_servers_both_last() {
    let (database, one, two) = two_servers("terms-fields");
    create(&mut one.client("maker"));
    for n in 1..=10_u32 {
        thread::scope(|scope| {
            scope.spawn(|| patch(&mut one.client("one"), &json!({"units_per_hold_max": n})));
            scope.spawn(|| {
                patch(
                    &mut two.client("two"),
                    &json!({"units_per_holder_max": n + 50}),
                )
            });
        });
        for server in [&one, &two] {
            until(&mut server.client("looker"), EVENT, |event| {
                event["policy"]["units_per_hold_max"] == n
                    && event["policy"]["units_per_holder_max"] == n + 50
            });
        }
    }
    let stored = database.query("SELECT policy FROM events").unwrap();
    let stored: Value = serde_json::from_str(&stored).unwrap();
    assert_eq!(stored["units_per_hold_max"], 10);
    assert_eq!(stored["units_per_holder_max"], 60);
}

/// During a rolling update a newer server sets a field that this one does not know.
#[test]
fn a_field_of_a_newer_version_is_kept_and_keeps_no_event_from_being_served() {
    let (database, logs) = (database(), logs("terms-newer"));
    let one = serve(&database, &logs.join("one"));
    let mut at_one = one.client("one");
    create(&mut at_one);
    let newer = "UPDATE events SET policy = \
                 ((policy::jsonb - 'retry_window_ms'::text) || '{\"quiet_rows\": 3}'::jsonb)::text";
    database.query(newer).unwrap();
    let two = serve(&database, &logs.join("two"));
    let mut at_two = two.client("two");
    assert_eq!(ask(&mut at_two, &hold("ann", "A-1")).status, 201);
    let changed = patch(&mut at_two, &json!({"hold_ttl_ms": 60_000})).json();
    assert_eq!(changed["policy"]["retry_window_ms"], 120_000, "the default");
    let stored = database.query("SELECT policy FROM events").unwrap();
    let stored: Value = serde_json::from_str(&stored).unwrap();
    assert_eq!(
        (&stored["quiet_rows"], &stored["hold_ttl_ms"]),
        (&json!(3), &json!(60_000))
    );
}
