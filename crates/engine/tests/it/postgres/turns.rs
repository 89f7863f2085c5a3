//! Whoever renews an event waits for those before him, and those who come later wait for him.

use std::sync::Arc;

use soldonce_core::{Command, Policy};
use soldonce_engine::ledger::Ledger;
use soldonce_engine::ledger::postgres::{PostgresOptions, Strategy};
use soldonce_testkit::{PATIENCE, until};
use tokio::task::JoinSet;
use tokio_postgres::NoTls;

use super::Servers;
use crate::ledgers::{select, transaction};

const WAITING: &str = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_renews_an_event_is_before_those_who_come_later() {
    for strategy in [Strategy::Queue, Strategy::Constraint, Strategy::Pessimistic] {
        let name = strategy.name();
        assert!(is_renewed_first(strategy).await, "{name}");
    }
}

/// A hold waits for a seat, a renewal for it, and another hold, which wants nothing that either of them
/// has, for the renewal. Whether the renewal had all its locks before that other.
async fn is_renewed_first(strategy: Strategy) -> bool {
    let mut servers = Servers::start(0).await;
    for _ in 0..3 {
        let options = PostgresOptions {
            strategy: strategy.clone(),
            ..servers.options.clone()
        };
        let ledger = servers.one_more(&options).await;
        servers.ledgers.push(ledger);
    }
    let event = servers.event(|_| {}).await;
    let (slow, connection) = tokio_postgres::connect(&servers.database.url(), NoTls)
        .await
        .unwrap();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move { drop(connection.await) });
    let lock = "BEGIN; SELECT 1 FROM units WHERE unit_no = 0 FOR UPDATE";
    slow.batch_execute(lock).await.unwrap();
    let policy = Policy {
        units_per_hold_max: 3,
        ..event.policy.clone()
    };
    let renewal = Command::UpdatePolicy {
        event: event.no,
        policy: Box::new(policy),
    };
    let commands = [
        servers.wish(&event, "ann", &["A-1"]),
        renewal,
        servers.wish(&event, "bob", &["B-1"]),
    ];
    let mut asked = JoinSet::new();
    for (at, command) in commands.into_iter().enumerate() {
        let ledger = Arc::clone(&servers.ledgers[at]);
        asked.spawn(async move { ledger.transact(transaction(command, None)).await });
        let count = (at + 1).to_string();
        let has_come = || {
            servers
                .database
                .query(WAITING)
                .is_ok_and(|now| now == count)
        };
        until("one more waits", PATIENCE, has_come).unwrap();
    }
    slow.batch_execute("COMMIT").await.unwrap();
    for done in asked.join_all().await {
        done.unwrap();
    }
    servers.judge(0, &event.id).await;
    let last = select(&event, &["B-1"], &[]).seats()[0].0;
    let is_first = format!(
        "SELECT max(place) FILTER (WHERE renews) < max(place) FILTER (WHERE {last} = ANY (units)) \
         FROM batches"
    );
    servers.database.query(&is_first).unwrap() == "t"
}
