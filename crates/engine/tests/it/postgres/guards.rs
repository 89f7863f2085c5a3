//! What the database refuses by itself, whatever a server believes.

use soldonce_core::Command;
use soldonce_testkit::postgres;

use super::Servers;
use crate::ledgers::{booked, on};

/// The words of the database when it refuses this.
fn refusal(servers: &Servers, sql: &str) -> String {
    let refused = postgres::query(&servers.database.url(), sql);
    format!("{:#}", refused.expect_err(sql))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_unit_never_goes_back() {
    let servers = Servers::start(1).await;
    let event = servers.event(|_| {}).await;
    servers.hold(0, &event, "ann", &["A-1"]).await.unwrap();
    for sql in [
        "UPDATE units SET fence = 0, version = version + 1 WHERE unit_no = 0",
        "UPDATE units SET state = 0, owner = NULL, until = NULL WHERE unit_no = 0",
        "UPDATE units SET version = version + 1, token = -1 WHERE unit_no = 0",
    ] {
        let said = refusal(&servers, sql);
        assert!(said.contains("would go back"), "{sql}: {said}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_unit_is_sold_once_and_its_history_stays() {
    let servers = Servers::start(1).await;
    let event = servers.event(|_| {}).await;
    let hold = servers.hold(0, &event, "ann", &["A-1"]).await.unwrap();
    let confirm = Command::Confirm {
        on: on(&hold),
        booking: soldonce_core::BookingId::from_bits(9),
        reference: None,
    };
    booked(servers.ask(0, confirm).await).unwrap();
    let again = "INSERT INTO lines SELECT booking, n + 1, event_no, unit_no, price, version, state \
                 FROM lines";
    assert!(refusal(&servers, again).contains("sold_unit_key"));
    let twice = "INSERT INTO audit SELECT * FROM audit LIMIT 1";
    assert!(refusal(&servers, twice).contains("audit_pkey"));
    for sql in ["UPDATE audit SET at = 0", "DELETE FROM audit"] {
        assert!(refusal(&servers, sql).contains("never changed"));
    }
}
