//! What a client that only reads is told: whether to ask again, or that no time will fix it.

use std::sync::Arc;

use soldonce_core::UnitNo;
use soldonce_engine::ledger::postgres::PostgresOptions;
use soldonce_engine::ledger::{Ledger, ReadError};
use tokio::task::JoinSet;

use crate::ledgers::holder;
use crate::postgres::Servers;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_is_away_is_told_from_a_damaged_one() {
    let mut servers = Servers::start(1).await;
    let event = servers.event(|_| {}).await;
    let hold = servers.hold(0, &event, "ann", &["A-1"]).await.unwrap();
    let tell = |sql| servers.database.query(sql).unwrap();
    tell("ALTER TABLE holds RENAME TO lost");
    let read = servers.ledgers[0].hold(hold.id).await;
    assert!(matches!(read, Err(ReadError::Failed(_))), "{read:?}");
    tell("ALTER TABLE lost RENAME TO holds");
    servers.database.stop_immediately().unwrap();
    let ledger = &servers.ledgers[0];
    let reads = [
        ledger.hold(hold.id).await.err(),
        ledger.holds_of(holder("ann"), (None, 10)).await.err(),
        ledger.bookings_of(holder("ann"), (None, 10)).await.err(),
        ledger.unit_history(event.no, UnitNo(0), 10).await.err(),
        ledger.history(event.id.clone()).await.err(),
    ];
    for read in reads {
        assert!(matches!(read, Some(ReadError::Away(_))), "{read:?}");
    }
    servers.database.restart().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_that_find_no_connection_are_told_that_too_much_waits() {
    let mut servers = Servers::start(0).await;
    let options = PostgresOptions {
        connections: 2,
        ..servers.options.clone()
    };
    let ledger = servers.one_more(&options).await;
    servers.ledgers.push(ledger);
    let event = servers.event(|_| {}).await;
    let hold = servers.hold(0, &event, "ann", &["A-1"]).await.unwrap();
    // Those who have a connection wait for an answer, the others for a connection.
    servers.database.pause().unwrap();
    let mut readers = JoinSet::new();
    for _ in 0..8 {
        let ledger = Arc::clone(&servers.ledgers[0]);
        readers.spawn(async move { ledger.hold(hold.id).await });
    }
    let reads = readers.join_all().await;
    servers.database.resume().unwrap();
    let is_now = |read: &_| matches!(read, Err(ReadError::Away(_) | ReadError::Full(_)));
    assert!(reads.iter().all(is_now), "{reads:?}");
    let is_full = |read: &_| matches!(read, Err(ReadError::Full(_)));
    assert!(reads.iter().any(is_full), "{reads:?}");
}
