//! A database that has no connection left: a command that needs one is refused as overloaded, not
//! with an unknown outcome.

use std::sync::Arc;

use soldonce_core::Rejection;
use soldonce_engine::ledger::Ledger;
use soldonce_testkit::postgres::Postgres;
use soldonce_testkit::{PATIENCE, until};
use tokio::task::JoinSet;
use tokio_postgres::NoTls;

use crate::ledgers::{held, transaction};
use crate::postgres::Servers;

/// Takes every connection that is left.
async fn crowd(url: &str) -> JoinSet<()> {
    let mut crowd = JoinSet::new();
    while let Ok((client, connection)) = tokio_postgres::connect(url, NoTls).await {
        crowd.spawn(async move {
            // It ends with the test.
            drop(connection.await);
            drop(client);
        });
    }
    crowd
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_without_free_connections_is_overloaded() {
    let database = Postgres::options().line("max_connections = 12");
    let servers = Servers::start_on(database.start().unwrap(), 1).await;
    // Each needs a connection of its own.
    let mut events = Vec::new();
    for n in 0..10 {
        events.push(servers.event_named(&format!("night-{n}")).await);
    }
    let crowd = crowd(&servers.database.url()).await;
    let mut all = JoinSet::new();
    for event in &events {
        let wish = servers.wish(event, "ann", &["A-1"]);
        let ledger = Arc::clone(&servers.ledgers[0]);
        all.spawn(async move { held(ledger.transact(transaction(wish, None)).await) });
    }
    let answers = all.join_all().await;
    let is_told = |answer: &Result<_, _>| matches!(answer, Ok(_) | Err(Rejection::Overloaded));
    assert!(answers.iter().all(is_told), "{answers:?}");
    assert!(
        answers.iter().any(Result::is_err),
        "no buyer was turned away"
    );
    drop(crowd);
    // A connection is given back when the server has seen its end.
    let is_free = || servers.database.query("SELECT 1").is_ok();
    until("the crowd is gone", PATIENCE, is_free).unwrap();
}
