//! `soldonce clock correct`, and what the doctor says before and after it.

use std::process::Command;

use serde_json::{Value, json};
use soldonce_testkit::{PATIENCE, until};

use crate::crash::client::Ask;
use crate::crash::server::{PROGRAM, Server};
use crate::operate::{migrated, run, sell_one, serve, soldonce};
use crate::program::said;
use crate::shop::{confirm, done, hold};
use crate::store::folder;

const A_DAY_AHEAD: &str =
    "UPDATE clock SET at = 86400000 + extract(epoch FROM clock_timestamp()) * 1000";

#[test]
fn an_operator_ends_a_lead_of_a_day() {
    let database = migrated();
    database.query(A_DAY_AHEAD).unwrap();
    let server = serve(&database, "clock");
    let mut client = server.client("ann");
    sell_one(&mut client);
    let held = client.ask(&hold("hamlet-1", "bob", "A-2").moving());
    let held = held.unwrap().json();
    let ready = client.ask(&Ask::get("/readyz".to_owned())).unwrap().json();
    assert_eq!(ready["clock"], "far_ahead", "{ready}");
    let (_, said) = run(&["doctor"], &database);
    assert!(said.contains("WRONG   ledger clock: "), "{said}");
    let (code, said) = run(&["clock", "correct"], &database);
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("stop every server"), "{said}");
    server.stop();
    let alone = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'";
    until("its connections are gone", PATIENCE, || {
        database.query(alone).unwrap() == "1"
    })
    .unwrap();

    let said = soldonce(&["clock", "correct", "--json"], &database);
    let corrected: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(
        (&corrected["events"], &corrected["holds"]),
        (&json!(1), &json!(1)),
        "{corrected}"
    );
    let again = soldonce(&["clock", "correct"], &database);
    assert!(again.contains("not ahead: nothing to correct"), "{again}");
    let verified = soldonce(&["verify"], &database);
    assert!(verified.contains("nothing is wrong"), "{verified}");
    let (_, said) = run(&["doctor"], &database);
    assert!(said.contains("ok      ledger clock: "), "{said}");
    let story = soldonce(&["why", "hamlet-1", "A-2"], &database);
    assert!(story.contains("clock_corrected"), "{story}");

    let server = serve(&database, "clock-again");
    let mut client = server.client("bob");
    let ready = client.ask(&Ask::get("/readyz".to_owned())).unwrap().json();
    assert_eq!(ready, json!({"status": "ready"}));
    let sale = confirm(&held).keyed(held["id"].as_str().unwrap());
    done(&mut client, &sale);
}

#[test]
fn a_folder_that_is_not_ahead_has_nothing_to_correct() {
    let at = folder("clock");
    let data = at.join("data");
    let run = |arguments: &[&str]| {
        let mut command = Command::new(PROGRAM);
        said(command.args(arguments).arg("--data").arg(&data))
    };
    let (code, said) = run(&["clock", "correct"]);
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("there is no ledger"), "{said}");
    let server = Server::start(&data).unwrap();
    sell_one(&mut server.client("ann"));
    let (code, said) = run(&["clock", "correct"]);
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("in use by another process"), "{said}");
    server.stop();
    let (code, said) = run(&["clock", "correct"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("nothing to correct"), "{said}");
    let (_, said) = run(&["doctor"]);
    assert!(said.contains("ok      ledger clock: 0 ms ahead"), "{said}");
}
