//! A server whose memory is not what its ledger has, as buyers and operators hear of it.

use std::path::Path;

use super::{ask, create, database, hold, logs, serve};
use crate::crash::client::{Ask, Client};
use crate::crash::server::{Server, serving};
use crate::store::folder;

/// Ann held A-1 and gave it back, so that the server knows the row; then the row says that it is sold.
fn give_back(client: &mut Client) {
    create(client);
    let held = ask(client, &hold("ann", "A-1")).json();
    let path = format!("/v1/holds/{}", held["id"].as_str().unwrap());
    let released = ask(client, &Ask::new("DELETE", path, None));
    assert_eq!(released.status, 200, "{}", released.shown());
}

fn disbelieved(client: &mut Client) -> String {
    let metrics = ask(client, &Ask::get("/metrics".to_owned()));
    let text = String::from_utf8_lossy(&metrics.body).into_owned();
    let line = text
        .lines()
        .find(|line| line.starts_with("soldonce_ledger_disbelieved_total "));
    line.unwrap_or_default().to_owned()
}

fn log_of(path: &Path) -> String {
    std::fs::read_to_string(path.with_extension("log")).unwrap()
}

#[test]
fn on_a_database_the_buyer_is_refused_as_it_is_and_the_operator_told() {
    let (database, logs) = (database(), logs("servers-wrong"));
    let server = serve(&database, &logs.join("one"));
    let mut client = server.client("bob");
    give_back(&mut client);
    let sold = "SET session_replication_role = replica; UPDATE units SET state = 2, \
                owner = '\\x00000000000000000000000000000007', fence = fence + 1 WHERE version > 0";
    database.query(sold).unwrap();
    let refused = ask(&mut client, &hold("bob", "A-1"));
    assert_eq!(refused.code(), "unit_unavailable", "{}", refused.shown());
    let counted = disbelieved(&mut client);
    assert!(!counted.is_empty() && !counted.ends_with(" 0"), "{counted}");
    let log = log_of(&logs.join("one"));
    assert!(log.contains("ERROR"), "{log}");
    assert_eq!(
        ask(&mut client, &hold("bob", "A-2")).status,
        201,
        "it goes on"
    );
}

/// One process writes the file, so the process or the file is damaged: it sells nothing more.
#[test]
fn on_a_file_nothing_is_done_and_the_server_stops_selling() {
    let place = folder("servers-wrong-file");
    let data = place.join("data");
    let server = Server::run(serving(&data), &data).unwrap();
    let mut client = server.client("bob");
    give_back(&mut client);
    let file = rusqlite::Connection::open(data.join("ledger.sqlite")).unwrap();
    let triggers = rusqlite::config::DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER;
    assert!(!file.set_db_config(triggers, false).unwrap());
    let sold = "UPDATE units SET state = 2, owner = zeroblob(16), until = NULL WHERE unit_no = 0";
    assert_eq!(file.execute(sold, []).unwrap(), 1);
    let refused = ask(&mut client, &hold("bob", "A-1"));
    assert_eq!(refused.status, 503);
    assert_eq!(refused.code(), "memory_mismatch", "{}", refused.shown());
    assert_eq!(
        refused.json()["detail"]
            .as_str()
            .map(|told| told.contains("Nothing was done")),
        Some(true)
    );
    assert_eq!(ask(&mut client, &hold("bob", "A-2")).code(), "read_only");
    assert_eq!(
        ask(&mut client, &Ask::get("/readyz".to_owned())).status,
        503
    );
    assert_eq!(
        disbelieved(&mut client),
        "soldonce_ledger_disbelieved_total 1"
    );
    let log = log_of(&data);
    assert!(log.contains("memory and file differ"), "{log}");
    drop((client, server));
    std::fs::remove_dir_all(&place).unwrap();
}
