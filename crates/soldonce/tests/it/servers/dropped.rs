//! An event that is over is dropped at one of two servers, which then dies: the other one lets go of it and deletes
//! what is left.

use std::process::Command;

use serde_json::json;
use soldonce_testkit::{PATIENCE, until};

use super::{confirm, create, database, hold, logs, serve, soldonce};
use crate::crash::client::{Ask, Client};
use crate::crash::server::{ADMIN_KEY, PROGRAM, Server};
use crate::program::said;
use crate::shop::{done, hall};

const EVENT: &str = "/v1/events/hamlet-1";

const NINE_DAYS_LATER: &str = "UPDATE clock SET at = at + 9 * 86400000";

fn drop_at(client: &mut Client) -> (u16, String) {
    let heard = client.ask(&Ask::new("DELETE", EVENT.to_owned(), None));
    let heard = heard.unwrap();
    let code = if heard.is_success() {
        String::new()
    } else {
        heard.code()
    };
    (heard.status, code)
}

/// As an operator does it; the exit code and what is said.
fn drop_by_command(server: &Server) -> (Option<i32>, String) {
    let url = format!("http://{}", server.address);
    let mut command = Command::new(PROGRAM);
    command.args(["events", "drop", "hamlet-1"]);
    said(command.args(["--url", &url, "--admin-key", ADMIN_KEY]))
}

#[test]
fn what_one_server_drops_another_forgets_and_deletes() {
    let (database, logs) = (database(), logs("dropped"));
    let one = serve(&database, &logs.join("one"));
    let two = serve(&database, &logs.join("two"));
    let (mut at_one, mut at_two) = (one.client("one"), two.client("two"));
    create(&mut at_one);
    let held = at_one.ask(&hold("ann", "A-1")).unwrap().json();
    assert_eq!(at_two.ask(&confirm(&held)).unwrap().status, 201);
    assert_eq!(drop_at(&mut at_one), (409, "event_not_over".to_owned()));
    let cancel = Ask::post(&format!("{EVENT}/cancel"), json!({}));
    done(&mut at_one, &cancel);
    let (code, said) = drop_by_command(&one);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("409: The event is not over"), "{said}");

    database.query(NINE_DAYS_LATER).unwrap();
    // The server learns the time, and the last commit gets its number.
    until("it is dropped", PATIENCE, || {
        drop_by_command(&two) == (Some(0), "hamlet-1 is dropped\n".to_owned())
    })
    .unwrap();
    two.kill();
    let status = |client: &mut Client| client.ask(&Ask::get(EVENT.to_owned())).unwrap().status;
    until("the other one knows", PATIENCE, || {
        status(&mut at_one) == 410
    })
    .unwrap();
    assert_eq!(drop_at(&mut at_one), (410, "event_dropped".to_owned()));
    let left = "SELECT (SELECT count(*) FROM units) + (SELECT count(*) FROM holds) + \
                (SELECT count(*) FROM bookings) + (SELECT count(*) FROM lines) + (SELECT count(*) FROM audit) + \
                (SELECT count(*) FROM batches) + (SELECT count(*) FROM feed) + (SELECT count(*) FROM feed_heads) + \
                (SELECT count(*) FROM holders)";
    until("nothing is left", PATIENCE, || {
        database.query(left).unwrap() == "0"
    })
    .unwrap();

    let verified = soldonce(&["verify"], &database);
    assert!(verified.contains("nothing is wrong"), "{verified}");
    let story = soldonce(&["why", "hamlet-1", "A-1"], &database);
    let told = "hamlet-1 was dropped at ";
    let counts = "after commit 2; 1 bookings and 2 transitions of it are deleted";
    assert!(story.contains(told) && story.contains(counts), "{story}");
    let again = serve(&database, &logs.join("again"));
    let mut client = again.client("again");
    assert_eq!(status(&mut client), 410);
    for at in [&mut client, &mut at_one] {
        done(at, &Ask::post("/v1/events", hall("hamlet-2", 10, 20)));
    }
    let verified = soldonce(&["verify"], &database);
    assert!(verified.contains("nothing is wrong"), "{verified}");
}
