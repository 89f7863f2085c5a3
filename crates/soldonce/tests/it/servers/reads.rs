//! What a server answers to those who read while its database is away.

use serde_json::{Value, json};

use super::{SEATS, ask, confirm, create, database, hold, logs, serve, until};
use crate::crash::client::Ask;

/// What is wanted of a hold and a booking, each of which begins with a look at what is stored.
fn looks(hold: &Value, booking: &Value) -> Vec<Ask> {
    let path = |of: &str, id: &Value| format!("/v1/{of}/{}", id["id"].as_str().unwrap());
    let (hold, booking) = (path("holds", hold), path("bookings", booking));
    vec![
        Ask::get(hold.clone()),
        Ask::get(booking),
        Ask::get("/v1/holds?holder=ann".to_owned()),
        Ask::get("/v1/bookings?holder=ann".to_owned()),
        Ask::get("/v1/events/hamlet-1/units/A-1/history".to_owned()),
        Ask::new(
            "PATCH",
            hold.clone(),
            Some(json!({"add": [{"seat": "A-3"}]})),
        ),
        Ask::new(
            "POST",
            format!("{hold}/extend"),
            Some(json!({"ttl_ms": 300_000})),
        ),
    ]
}

#[test]
fn who_reads_while_the_database_is_away_is_told_to_come_again() {
    let (mut database, logs) = (database(), logs("servers-away"));
    let log = logs.join("one.log");
    if log.exists() {
        // Of another run.
        std::fs::remove_file(&log).unwrap();
    }
    let one = serve(&database, &logs.join("one"));
    let mut client = one.client("one");
    create(&mut client);
    until(&mut client, SEATS, |_| true);
    let held = ask(&mut client, &hold("ann", "A-1")).json();
    let sold = ask(&mut client, &hold("ann", "A-2")).json();
    let booked = ask(&mut client, &confirm(&sold)).json();
    let looks = looks(&held, &booked);
    let told = |heard: &crate::crash::client::HttpAnswer| (heard.status, heard.code());
    for look in looks.iter().take(5) {
        let heard = ask(&mut client, look);
        assert_eq!(heard.status, 200, "{}", heard.shown());
    }
    database.stop_immediately().unwrap();
    for look in &looks {
        let heard = ask(&mut client, look);
        let shown = format!("{} {}: {}", look.method, look.path, heard.shown());
        assert_eq!(told(&heard), (503, "read_only".to_owned()), "{shown}");
        assert!(heard.retry_after.is_some(), "{shown}");
    }
    database.restart().unwrap();
    let path = looks[0].path.clone();
    until(&mut client, &path, |hold| hold["state"] == "active");
    let written = std::fs::read_to_string(&log).unwrap();
    assert!(!written.contains("ERROR"), "{written}");
}
