//! Bugs planted in the SQLite ledger: the checks of this crate must see each of them, or they would
//! not see it in earnest either (assurance.md 6).

use std::path::Path;

use rusqlite::Connection;
use soldonce_core::{Command, Rejection};
use soldonce_engine::ledger::Done;
use soldonce_engine::ledger::sqlite::{PlantedLedger, SqliteOptions};

use crate::ledgers::{TestLedger, held, key, open_in};

fn with(bug: Option<PlantedLedger>) -> TestLedger {
    TestLedger::sqlite_with(|options| options.planted = bug)
}

fn folder(test: &TestLedger) -> &Path {
    test.folder.as_ref().unwrap().path()
}

/// Lets every insert into `table` fail, as a full disk does.
fn break_table(test: &TestLedger, table: &str) {
    let trigger = format!(
        "CREATE TRIGGER fails BEFORE INSERT ON {table} BEGIN SELECT RAISE(FAIL, 'full'); END"
    );
    let database = Connection::open(folder(test).join("ledger.sqlite")).unwrap();
    database.execute_batch(&trigger).unwrap();
}

fn mend(test: &TestLedger) {
    let database = Connection::open(folder(test).join("ledger.sqlite")).unwrap();
    database.execute_batch("DROP TRIGGER fails").unwrap();
}

/// Whether a hold that was granted while the disk was full is gone after a restart, or the ledger is
/// damaged by it (I14, I27).
async fn loses_what_it_granted(bug: Option<PlantedLedger>) -> bool {
    let mut test = with(bug);
    let event = test.event().await;
    break_table(&test, "audit");
    let Ok(granted) = test.hold(&event, "ann", &["A-1"]).await else {
        return false;
    };
    // Answered after the commit before it was tried, also by a writer that had answered too early.
    let stays_open = test.ask(Command::Sweep { limit: 1 }).await.is_ok();
    mend(&test);
    if stays_open {
        // A later commit on top of a memory that is ahead must not heal it by accident.
        drop(test.hold(&event, "bob", &["A-2"]).await);
    }
    let has_gap = !test.recorder.violations().is_empty();
    let is_damaged = test.try_crash().is_err();
    // Only now has the writer ended that may answer before its commit: nothing comes after this.
    test.recorder.forget();
    has_gap || is_damaged || test.ledger.hold(granted.id).await.unwrap().is_none()
}

/// Whether a request whose key could not be stored has its effect twice (I12).
async fn repeats_an_effect(bug: Option<PlantedLedger>) -> bool {
    let mut test = with(bug);
    let event = test.event().await;
    break_table(&test, "idempotency");
    let command = test.hold_command(&event, "ann", &["A-1"]);
    let first = test.ask_as(command, key(1, 1)).await;
    // The trigger refuses as a constraint does: the tables do not agree with the memory.
    assert_eq!(first.unwrap_err(), Rejection::MemoryMismatch);
    mend(&test);
    test.crash().await;
    let stored = test.ledger.history(event.id.clone()).await.unwrap().commits;
    let command = test.hold_command(&event, "ann", &["A-2"]);
    let again = test.ask_as(command, key(1, 1)).await;
    test.recorder.forget();
    // Either it had happened and is replayed, or it happens now: never both.
    stored.len() == 1 && held(again).is_ok()
}

async fn answers_another_body(bug: Option<PlantedLedger>) -> bool {
    let test = with(bug);
    let event = test.event().await;
    let command = test.hold_command(&event, "ann", &["A-1"]);
    held(test.ask_as(command.clone(), key(1, 1)).await).unwrap();
    let other = test.ask_as(command, key(1, 2)).await;
    matches!(other, Ok(Done::Replayed(_)))
}

async fn accepts_a_shortened_log(bug: Option<PlantedLedger>) -> bool {
    let test = with(bug);
    let event = test.event().await;
    test.ledger.close().await;
    let (live, old) = (
        folder(&test).join("ledger.sqlite"),
        folder(&test).join("old.sqlite"),
    );
    std::fs::copy(&live, &old).unwrap();
    let mut options = SqliteOptions::new(folder(&test));
    options.planted = bug;
    let more = test.beside(open_in(&options, &test.clock, &test.recorder).unwrap());
    more.hold(&event, "ann", &["A-1"]).await.unwrap();
    more.ledger.close().await;
    drop(more);
    std::fs::copy(&old, &live).unwrap();
    open_in(&options, &test.clock, &test.recorder).is_ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_planted_bug_is_seen_and_nothing_without_one() {
    use PlantedLedger as Bug;
    assert!(loses_what_it_granted(Some(Bug::MemoryAhead)).await);
    assert!(loses_what_it_granted(Some(Bug::AckBeforeCommit)).await);
    assert!(!loses_what_it_granted(None).await);
    assert!(repeats_an_effect(Some(Bug::KeyOutsideCommit)).await);
    assert!(!repeats_an_effect(None).await);
    assert!(answers_another_body(Some(Bug::KeyNoFingerprint)).await);
    assert!(!answers_another_body(None).await);
    assert!(accepts_a_shortened_log(Some(Bug::NoHighWater)).await);
    assert!(!accepts_a_shortened_log(None).await);
}
