//! The database's clock steps.

use std::time::Duration;

use soldonce_core::{Command, Rejection, Seq};
use soldonce_engine::ledger::Ledger;
use soldonce_lease::{Clock, SystemClock};
use soldonce_testkit::postgres;

use super::Servers;
use crate::ledgers::{held, on};

/// As if the database's clock had stepped back by an hour: the ledger's is that far ahead of it.
const STEP_BACK: &str =
    "UPDATE clock SET at = 3600000 + extract(epoch FROM clock_timestamp()) * 1000";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clock_that_steps_back_stops_neither_sales_nor_the_feed() {
    let servers = Servers::start(2).await;
    let event = servers.event(|_| {}).await;
    servers.hold(0, &event, "ann", &["B-1"]).await.unwrap();
    postgres::query(&servers.database.url(), STEP_BACK).unwrap();
    let until = SystemClock.boot().plus(Duration::from_millis(1_500));
    let limit = until.plus(Duration::from_secs(10));
    let (mut turns, mut first, mut last) = (0, None, 0);
    while SystemClock.boot() < until {
        let hold = servers.hold(turns % 2, &event, "ann", &["A-1"]).await;
        // Until the step is noticed a command may be refused for a moment.
        let hold = match hold {
            Err(Rejection::Overloaded) => continue,
            known => known.unwrap(),
        };
        last = hold.created_at.ms();
        first.get_or_insert(last);
        let release = Command::Release { on: on(&hold) };
        let mut released = servers.ask((turns + 1) % 2, release.clone()).await;
        while matches!(released, Err(Rejection::Overloaded)) && SystemClock.boot() < limit {
            released = servers.ask((turns + 1) % 2, release.clone()).await;
        }
        held(released).unwrap();
        turns += 1;
    }
    let passed = last - first.unwrap();
    assert!(
        (500..60_000).contains(&passed),
        "the ledger's time goes on: {passed} ms"
    );
    let mut shown = Vec::new();
    while shown.len() <= 2 * turns && SystemClock.boot() < limit {
        shown = servers.ledgers[0]
            .commits_after(event.no, Seq(0), 10_000)
            .await
            .unwrap();
    }
    assert_eq!(shown.len(), 1 + 2 * turns);
    servers.judge(0, &event.id).await;
}
