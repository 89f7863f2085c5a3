//! Ledgers as the build of commit f21acfa left them, with schema 4 in a folder and 6 in a database: this build migrates
//! each, finds it whole and serves it. What a row, its checksum and the audit's hash said then, they say now.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use rusqlite::Connection;
use soldonce_clock::ManualClock;
use soldonce_core::{BookingState, Command, EventNo, NewHold, Timestamp, Together, TtlMax, Wish};
use soldonce_engine::ledger::postgres::verify as verify_database;
use soldonce_engine::ledger::sqlite::SqliteOptions;
use soldonce_engine::ledger::sqlite::verify::verify;
use soldonce_testkit::TempFolder;
use soldonce_testkit::postgres::query;

use crate::ledgers::{Recorder, TestLedger, held, holder, open_in};

/// Soon after the last commit of the folder.
const FOLDER_MS: i64 = 1_795_537_900_000;
/// Soon after the last commit of the database.
const DATABASE_MS: i64 = 1_795_547_400_000;

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_of_an_older_build_is_whole_and_goes_on_selling() {
    let folder = TempFolder::new().unwrap();
    let database = Connection::open(folder.path().join("ledger.sqlite")).unwrap();
    database.execute_batch(include_str!("folder.sql")).unwrap();
    database.close().unwrap();
    let mark = include_str!("high-water");
    std::fs::write(folder.path().join("high-water"), mark).unwrap();

    let (clock, recorder) = (ManualClock::at(FOLDER_MS), Arc::new(Recorder::default()));
    let options = SqliteOptions::new(folder.path());
    let ledger = open_in(&options, &clock, &recorder).unwrap();
    let test = TestLedger::memory().with_ledger(ledger);
    goes_on_selling(&test, "bkg_01m8769jazebmhxe43wqav5g01", FOLDER_MS).await;
    test.ledger.close().await;
    drop(test);
    let report = verify(folder.path(), &mut |_| {}).unwrap();
    assert_eq!(report.findings, []);
    assert!(report.transitions >= 34, "{}", report.transitions);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_of_an_older_build_is_whole_and_goes_on_selling() {
    let server = TestLedger::server();
    let name = server.database().unwrap();
    query(&server.url_of(&name), include_str!("database.sql")).unwrap();
    let test = TestLedger::on_database(&server, &name, None, DATABASE_MS).await;
    test.recorder.is_silent.store(true, Ordering::Relaxed);
    goes_on_selling(&test, "bkg_01m87f26nar2q3qz67af40ggm5", DATABASE_MS).await;
    test.ledger.close().await;
    let (_, options) = test.postgres.as_ref().unwrap();
    let report = verify_database(options, &mut |_| {}).await.unwrap();
    assert_eq!(report.findings, []);
    assert!(report.transitions >= 34, "{}", report.transitions);
}

/// Both were written by the same requests.
async fn goes_on_selling(test: &TestLedger, confirmed: &str, now_ms: i64) {
    let confirmed = confirmed.parse().unwrap();
    let booking = test.ledger.booking(confirmed).await.unwrap().unwrap();
    let is = (
        booking.state,
        booking.lines.len(),
        booking.reference.is_some(),
    );
    assert_eq!(is, (BookingState::Confirmed, 2, true));
    let now = Timestamp::from_ms(now_ms);
    let unsettled = test.ledger.unsettled(now, (None, 10)).await.unwrap();
    assert_eq!(unsettled.len(), 2);
    assert_eq!(test.ledger.keys().await.unwrap().len(), 2);
    assert_eq!(test.ledger.webhooks().endpoints().await.unwrap().len(), 1);

    let hold = held(test.ask(best(test, 6)).await).unwrap();
    assert_eq!(test.confirm(&hold).await.unwrap().lines.len(), 6);
}

fn best(test: &TestLedger, quantity: u32) -> Command {
    Command::Hold(NewHold {
        event: EventNo(0),
        hold: test.hold_id(),
        holder: holder("zoe"),
        wish: Wish::Best {
            quantity,
            category: None,
            together: Together::Preferred,
        },
        ttl: None,
        ttl_max: TtlMax::HoldMax,
    })
}
