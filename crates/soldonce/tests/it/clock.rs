//! `soldonce clock correct`, and what the doctor says before and after it.

use std::process::Command;

use serde_json::{Value, json};
use soldonce_testkit::{PATIENCE, until};

use crate::crash::client::Ask;
use crate::crash::server::{PROGRAM, Server};
use crate::operate::{migrated, run, sell_one, serve, soldonce};
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
    let wish = json!({"holder": "bob", "units": [{"seat": "A-2"}]});
    let path = "/v1/events/hamlet-1/holds".to_owned();
    let held = client
        .ask(&Ask::new("POST", path, Some(wish)).moving())
        .unwrap();
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
    let done: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(
        (&done["events"], &done["holds"]),
        (&json!(1), &json!(1)),
        "{done}"
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
    let id = held.json()["id"].as_str().unwrap().to_owned();
    let path = format!("/v1/holds/{id}/confirm");
    let sold = client
        .ask(&Ask::new("POST", path, Some(json!({}))).keyed(&id))
        .unwrap();
    assert!(sold.is_success(), "{}", sold.shown());
}

#[test]
fn a_folder_that_is_not_ahead_has_nothing_to_correct() {
    let at = folder("clock");
    let data = at.join("data");
    let run = |arguments: &[&str]| {
        let output = Command::new(PROGRAM)
            .args(arguments)
            .arg("--data")
            .arg(&data)
            .output();
        let output = output.unwrap();
        let said = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8(said).unwrap())
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
