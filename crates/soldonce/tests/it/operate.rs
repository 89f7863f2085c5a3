//! Commands that operators run on a database while servers work on it.
#![expect(
    clippy::indexing_slicing,
    reason = "an answer without the member fails the test"
)]

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use soldonce_engine::limits::UNIT_HISTORY_MAX;
use soldonce_testkit::postgres::{Postgres, PostgresPair};
use soldonce_testkit::{PATIENCE, until};

use crate::crash::client::{Ask, Client};
use crate::crash::server::{PROGRAM, Server, without_admin_key};
use crate::program::{said, serving_on};
use crate::shop::{confirm, done, hall, hold};

/// The exit code of the program on the database, and what it says.
pub(crate) fn run(arguments: &[&str], database: &Postgres) -> (Option<i32>, String) {
    let mut command = Command::new(PROGRAM);
    said(
        command
            .args(arguments)
            .args(["--database-url", &database.url()]),
    )
}

/// What it says when it must end well.
pub(crate) fn soldonce(arguments: &[&str], database: &Postgres) -> String {
    let (code, said) = run(arguments, database);
    assert_eq!(code, Some(0), "{said}");
    said
}

/// A database with the tables in it.
pub(crate) fn migrated() -> Postgres {
    let database = Postgres::start().unwrap();
    soldonce(&["migrate"], &database);
    database
}

/// A server on it.
pub(crate) fn serve(database: &Postgres, log: &str) -> Server {
    Server::run(serving_on(&database.url()), &logs().join(log)).unwrap()
}

fn logs() -> PathBuf {
    let logs = Path::new(env!("CARGO_TARGET_TMPDIR")).join("operate");
    std::fs::create_dir_all(&logs).unwrap();
    logs
}

/// Creates a hall, holds a seat and confirms.
pub(crate) fn sell_one(client: &mut Client) {
    done(client, &Ask::post("/v1/events", hall("hamlet-1", 10, 20)));
    let held = done(client, &hold("hamlet-1", "ann", "A-1").moving());
    done(client, &confirm(&held).keyed(held["id"].as_str().unwrap()));
}

#[test]
fn a_server_is_ready_while_its_database_takes_commands() {
    let mut database = migrated();
    let server = serve(&database, "ready");
    let mut client = server.client("probe");
    let mut becomes = |status: u16| {
        let is_so = || client.ask(&Ask::get("/readyz".to_owned())).unwrap().status == status;
        until(&format!("/readyz is {status}"), PATIENCE, is_so).unwrap();
        // What alerts look at.
        let metrics = client.ask(&Ask::get("/metrics".to_owned())).unwrap();
        let writable = format!("soldonce_ledger_writable {}\n", u8::from(status == 200));
        assert!(String::from_utf8_lossy(&metrics.body).contains(&writable));
    };
    becomes(200);
    database.stop_immediately().unwrap();
    becomes(503);
    database.restart().unwrap();
    becomes(200);
    // Connections that stay open and answer nothing.
    database.pause().unwrap();
    becomes(503);
    database.resume().unwrap();
    becomes(200);
}

/// Supervisors kill what takes longer.
#[test]
fn a_server_ends_while_its_database_hangs() {
    let mut database = migrated();
    let server = serve(&database, "hangs");
    database.pause().unwrap();
    assert!(server.stop().success());
    let log = std::fs::read_to_string(logs().join("hangs.log")).unwrap();
    assert!(log.contains("without waiting any longer"), "{log}");
    database.resume().unwrap();
}

#[test]
fn a_user_without_rights_is_told_which() {
    let database = migrated();
    let sql = "CREATE ROLE reader LOGIN; GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader";
    database.query(sql).unwrap();
    let as_reader = |name| database.url_of(name).replace("postgres@", "reader@");
    let url = as_reader("postgres");
    let (code, told) = said(Command::new(PROGRAM).args(["doctor", "--database-url", &url]));
    assert_eq!(code, Some(1), "{told}");
    let lacks = "WRONG   privileges: without INSERT on bookings, INSERT on holds, INSERT on units";
    assert!(told.contains(lacks), "{told}");
    database.query("CREATE DATABASE fresh").unwrap();
    let url = as_reader("fresh");
    let (code, told) = said(Command::new(PROGRAM).args(["doctor", "--database-url", &url]));
    assert_eq!(code, Some(1), "{told}");
    assert!(told.contains("without CREATE on schema public"), "{told}");
    let (code, told) = said(Command::new(PROGRAM).args(["migrate", "--database-url", &url]));
    assert_eq!(code, Some(3), "{told}");
    assert!(
        told.contains("permission denied for schema public"),
        "{told}"
    );
}

#[test]
fn verify_and_why_read_what_servers_are_at_work_on() {
    let database = migrated();
    let server = serve(&database, "verify");
    sell_one(&mut server.client("ann"));
    let story = soldonce(&["why", "hamlet-1", "A-1", "--json"], &database);
    let story: Value = serde_json::from_str(&story).unwrap();
    let cause = |step: &Value| step["cause"].as_str().unwrap().to_owned();
    let causes: Vec<String> = story.as_array().unwrap().iter().map(cause).collect();
    assert_eq!(causes, ["held", "confirmed"]);
    let verified = soldonce(&["verify"], &database);
    assert!(verified.contains("nothing is wrong"), "{verified}");
    let counted = "1 events, 2 commits, 2 transitions, 200 unit rows, 1 holds, 1 bookings";
    assert!(verified.contains(counted), "{verified}");
    let numbered = "SELECT count(*) FROM feed";
    let all = || database.query(numbered).is_ok_and(|count| count == "2");
    until("both commits have numbers", PATIENCE, all).unwrap();
    // More than a server answers with.
    let mut client = server.client("staff");
    for _ in 0..=UNIT_HISTORY_MAX / 2 {
        for step in ["block", "unblock"] {
            let body = json!({"units": [{"seat": "A-2"}], "reason": "a camera"});
            let path = format!("/v1/events/hamlet-1/{step}");
            done(&mut client, &Ask::post(&path, body));
        }
    }
    let story = soldonce(&["why", "hamlet-1", "A-2", "--json"], &database);
    let story: Value = serde_json::from_str(&story).unwrap();
    assert_eq!(story.as_array().unwrap().len(), UNIT_HISTORY_MAX + 2);
}

#[test]
fn verify_and_why_say_what_is_wrong() {
    let database = migrated();
    let (code, said) = run(&["why", "hamlet", "A-1"], &database);
    assert_eq!(code, Some(1), "{said}");
    let missing = "no unit `A-1` in an event `hamlet` of the database";
    assert!(said.contains(missing), "{said}");
    let (code, said) = run(&["why", "hamlet", "A-1", "--json"], &database);
    assert_eq!(code, Some(1), "{said}");
    let told: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(told["error"], missing, "{said}");
    database.query("UPDATE sequencer SET n = 7").unwrap();
    let (code, said) = run(&["verify"], &database);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("VIOLATION I20 numbers"), "{said}");
    let (_, said) = run(&["verify", "--json"], &database);
    let report: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(report["findings"].as_array().unwrap().len(), 1, "{said}");
    database.query("DROP TABLE soldonce_migrations").unwrap();
    let (code, said) = run(&["verify"], &database);
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("soldonce migrate"), "{said}");
}

#[test]
fn the_doctor_looks_at_the_ledgers_database() {
    let database = Postgres::options().durable().start().unwrap();
    let missing = run(&["doctor"], &database).1;
    assert!(missing.contains("ledger tables: not there"), "{missing}");
    soldonce(&["migrate"], &database);
    let healthy = soldonce(&["doctor"], &database);
    for line in [
        "ok      role: primary",
        "ok      fsync: on",
        "ok      full_page_writes: on",
        "ok      synchronous_commit: on",
        "ok      synchronous standbys: none is waited for, 0 connected",
        "remark  data checksums: off",
        "ok      ledger tables: schema",
        "ok      connections: ",
        "round trip: ",
        "database clock: ",
    ] {
        assert!(healthy.contains(line), "{line} is not in {healthy}");
    }
    let read_only = "ALTER DATABASE postgres SET default_transaction_read_only = on";
    database.query(read_only).unwrap();
    let (code, full) = run(&["doctor"], &database);
    assert_eq!(code, Some(1), "{full}");
    let line = "WRONG   role: primary, and default_transaction_read_only is on";
    assert!(full.contains(line), "{full}");
    let reset = "BEGIN READ WRITE; ALTER DATABASE postgres RESET ALL; COMMIT";
    database.query(reset).unwrap();
    database
        .query("UPDATE soldonce_migrations SET version = version + 1000 WHERE version = 1")
        .unwrap();
    let (code, newer) = run(&["doctor"], &database);
    assert_eq!(code, Some(1), "{newer}");
    assert!(newer.contains("start a newer soldonce"), "{newer}");
    let careless = Postgres::start().unwrap();
    let (code, said) = run(&["doctor"], &careless);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("WRONG   fsync: off"), "{said}");
}

#[test]
fn the_doctor_tells_whether_commits_wait_for_a_standby_that_is_there() {
    let PostgresPair { primary, standby } = PostgresPair::start().unwrap();
    let becomes = |change: &str, lines: &[&str]| {
        if !change.is_empty() {
            primary.query(change).unwrap();
            primary.query("SELECT pg_reload_conf()").unwrap();
        }
        let is_told = || {
            let (_, said) = run(&["doctor"], &primary);
            lines.iter().all(|line| said.contains(line))
        };
        until(lines[0], PATIENCE, is_told).unwrap();
    };
    becomes(
        "",
        &["ok      synchronous standbys: none is waited for, 1 connected"],
    );
    let awaited = "ALTER SYSTEM SET synchronous_standby_names = '*'";
    becomes(awaited, &["ok      synchronous standbys: *\n"]);
    becomes(
        "ALTER SYSTEM SET synchronous_commit = 'local'",
        &[
            "WRONG   synchronous standbys: *\n",
            "with `local` no commit waits for them",
        ],
    );
    drop(standby);
    becomes(
        "ALTER SYSTEM RESET synchronous_commit",
        &[
            "WRONG   synchronous standbys: *: none is connected",
            "every command waits",
        ],
    );
}

/// Several servers start at once, and none has a folder: a key would be in the log of each.
#[test]
fn without_a_terminal_and_a_folder_the_command_that_makes_a_key_is_told() {
    let database = Postgres::options().durable().start().unwrap();
    soldonce(&["migrate"], &database);
    let log = logs().join("no-key");
    let server = Server::run(without_admin_key(&serving_on(&database.url())), &log).unwrap();
    assert_eq!(server.said, "");
    let told = std::fs::read_to_string(log.with_extension("log")).unwrap();
    assert!(
        told.contains("soldonce keys create --scope admin"),
        "{told}"
    );
    let made = soldonce(&["keys", "create", "--scope", "admin"], &database);
    assert!(made.contains("sk_"), "{made}");
}

/// Takes no deletion, as a full disk does.
const FULL: &str = "CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'full'; END $$; \
                    CREATE TRIGGER fails BEFORE DELETE ON units EXECUTE FUNCTION fail()";

#[test]
fn a_dropped_event_whose_rows_cannot_be_deleted_is_told_as_dropped() {
    let database = Postgres::options().durable().start().unwrap();
    soldonce(&["migrate"], &database);
    let server = serve(&database, "drop");
    let mut client = server.client("staff");
    sell_one(&mut client);
    let cancel = Ask::post("/v1/events/hamlet-1/cancel", json!({}));
    done(&mut client, &cancel);
    let nine_days_later = "UPDATE clock SET at = at + 9 * 86400000";
    database.query(nine_days_later).unwrap();
    database.query(FULL).unwrap();
    let told = "hamlet-1 is dropped, and a server will delete what is left of it: ";
    // Until the last commit has its number, the event is in use.
    let is_told = || {
        let (code, said) = run(&["events", "drop", "hamlet-1"], &database);
        code == Some(3) && said.contains(told)
    };
    until(told, PATIENCE, is_told).unwrap();
    database.query("DROP TRIGGER fails ON units").unwrap();
    let left = "SELECT count(*) FROM units";
    let is_cleared = || database.query(left).is_ok_and(|left| left == "0");
    until("the server deletes them", PATIENCE, is_cleared).unwrap();
}
