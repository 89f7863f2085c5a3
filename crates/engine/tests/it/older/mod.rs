//! A folder as the build of commit f21acfa left it, with schema 4: this one migrates it, finds it whole and serves it.
//! What a row, its checksum and the audit's hash said then, they say now.

use std::sync::Arc;

use rusqlite::Connection;
use soldonce_clock::ManualClock;
use soldonce_core::{BookingState, Command, EventNo, NewHold, Timestamp, Together, Wish};
use soldonce_engine::ledger::sqlite::SqliteOptions;
use soldonce_engine::ledger::sqlite::verify::verify;

use crate::ledgers::{Recorder, TempFolder, TestLedger, held, holder, open_in};

/// Soon after its last commit.
const THEN_MS: i64 = 1_795_537_900_000;

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_of_an_older_build_is_whole_and_goes_on_selling() {
    let folder = TempFolder::new();
    std::fs::create_dir_all(folder.path()).unwrap();
    let database = Connection::open(folder.path().join("ledger.sqlite")).unwrap();
    database.execute_batch(include_str!("folder.sql")).unwrap();
    database.close().unwrap();
    let mark = include_str!("high-water");
    std::fs::write(folder.path().join("high-water"), mark).unwrap();

    let (clock, recorder) = (ManualClock::at(THEN_MS), Arc::new(Recorder::default()));
    let options = SqliteOptions::new(folder.path());
    let ledger = open_in(&options, &clock, &recorder).unwrap();
    let test = TestLedger::memory().beside(ledger);
    let confirmed = "bkg_01m8769jazebmhxe43wqav5g01".parse().unwrap();
    let booking = test.ledger.booking(confirmed).await.unwrap().unwrap();
    let is = (
        booking.state,
        booking.lines.len(),
        booking.reference.is_some(),
    );
    assert_eq!(is, (BookingState::Confirmed, 2, true));
    let later = Timestamp::from_ms(THEN_MS);
    assert_eq!(test.ledger.unsettled(later, 10).await.unwrap().len(), 2);
    assert_eq!(test.ledger.keys().await.unwrap().len(), 2);
    assert_eq!(test.ledger.webhooks().endpoints().await.unwrap().len(), 1);

    let hold = held(test.ask(best(&test, 6)).await).unwrap();
    assert_eq!(test.confirm(&hold).await.unwrap().lines.len(), 6);
    test.ledger.close().await;
    drop(test);
    let report = verify(folder.path(), &mut |_| {}).unwrap();
    assert_eq!(report.findings, []);
    assert!(report.transitions >= 34, "{}", report.transitions);
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
        ttl_max: None,
    })
}
