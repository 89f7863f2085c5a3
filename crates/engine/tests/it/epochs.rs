//! Epochs of lease namespaces from the ledger's own file.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use rusqlite::Connection;
use soldonce_clock::ManualClock;
use soldonce_engine::ledger::Ledger;
use soldonce_engine::ledger::sqlite::verify::verify;
use soldonce_engine::ledger::sqlite::{SqliteLedger, SqliteOptions};
use soldonce_lease::{FenceError, FenceKind, FenceSource};
use tokio::task::JoinSet;

use crate::ledgers::{Recorder, TempFolder, open_in};

const MOST: u64 = FenceKind::Epoch.most();

fn open(folder: &Path) -> Arc<SqliteLedger> {
    let (clock, recorder) = (ManualClock::at(1_000), Arc::new(Recorder::default()));
    let ledger = open_in(&SqliteOptions::new(folder), &clock, &recorder);
    Arc::new(ledger.unwrap())
}

async fn twenty(ledger: Arc<SqliteLedger>) -> Vec<u64> {
    let mut given = Vec::new();
    for _ in 0..20 {
        given.push(ledger.next(FenceKind::Epoch, "app", 0).await.unwrap());
    }
    assert!(given.is_sorted(), "{given:?}");
    given
}

#[tokio::test]
async fn epochs_are_given_once_and_rise_over_a_restart() {
    let folder = TempFolder::new();
    let ledger = open(folder.path());
    let mut asking = JoinSet::new();
    for _ in 0..10 {
        asking.spawn(twenty(Arc::clone(&ledger)));
    }
    let given: BTreeSet<u64> = asking.join_all().await.into_iter().flatten().collect();
    assert_eq!(given, (1..=200).collect());
    assert_eq!(ledger.next(FenceKind::Epoch, "other", 0).await, Ok(1));
    ledger.close().await;
    assert!(matches!(
        ledger.next(FenceKind::Epoch, "app", 0).await,
        Err(FenceError::Unavailable(_))
    ));
    drop(ledger);

    let ledger = open(folder.path());
    assert_eq!(ledger.next(FenceKind::Epoch, "app", 0).await, Ok(201));
    assert_eq!(ledger.next(FenceKind::Epoch, "app", 5_000).await, Ok(5_001));
    assert_eq!(ledger.next(FenceKind::Epoch, "app", 7).await, Ok(5_002));
    let used = Err(FenceError::Exhausted { above: MOST });
    assert_eq!(ledger.next(FenceKind::Epoch, "app", MOST).await, used);
    assert_eq!(
        ledger.next(FenceKind::Epoch, "app", MOST - 1).await,
        Ok(MOST)
    );
    assert_eq!(
        ledger.next(FenceKind::Epoch, "app", 0).await,
        Err(FenceError::Exhausted { above: 0 })
    );
    ledger.close().await;
}

#[tokio::test]
async fn the_ledger_gives_no_whole_tokens() {
    let folder = TempFolder::new();
    let ledger = open(folder.path());
    let token = ledger.next(FenceKind::Token, "app", 0).await;
    assert!(matches!(token, Err(FenceError::Unavailable(_))));
    ledger.close().await;
}

#[tokio::test]
async fn a_damaged_epoch_is_found_and_never_used() {
    let folder = TempFolder::new();
    let ledger = open(folder.path());
    assert_eq!(ledger.next(FenceKind::Epoch, "app", 0).await, Ok(1));
    ledger.next(FenceKind::Epoch, "app", 40).await.unwrap();
    ledger.close().await;
    drop(ledger);
    assert!(verify(folder.path(), &mut |_| {}).unwrap().is_clean());

    let database = Connection::open(folder.path().join("ledger.sqlite")).unwrap();
    let damaged = database.execute("UPDATE epochs SET epoch = 2", []).unwrap();
    assert_eq!(damaged, 1);
    drop(database);
    assert!(!verify(folder.path(), &mut |_| {}).unwrap().is_clean());
    let ledger = open(folder.path());
    assert!(matches!(
        ledger.next(FenceKind::Epoch, "app", 0).await,
        Err(FenceError::Unavailable(_))
    ));
}
