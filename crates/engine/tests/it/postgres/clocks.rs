//! The database's clock steps, or passes the end of a hold while its confirm is on its way.

use std::sync::Arc;

use soldonce_clock::{Clock, SystemClock};
use soldonce_core::{Adjacency, Command, Rejection, Span};
use soldonce_engine::ledger::Ledger;
use soldonce_testkit::{PATIENCE, postgres, until};
use tokio::task::JoinSet;
use tokio_postgres::{Client, NoTls};

use super::Servers;
use crate::ledgers::{booked, confirm, held, on, transaction};

/// As if the database's clock had stepped back by an hour: the ledger's is that far ahead of it.
const STEP_BACK: &str =
    "UPDATE clock SET at = 3600000 + extract(epoch FROM clock_timestamp()) * 1000";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clock_that_steps_back_stops_neither_sales_nor_the_feed() {
    let servers = Servers::start(2).await;
    let event = servers.event(|_| {}).await;
    servers.hold(0, &event, "ann", &["B-1"]).await.unwrap();
    postgres::query(&servers.database.url(), STEP_BACK).unwrap();
    let limit = SystemClock.boot().plus(PATIENCE);
    let (mut turns, mut first, mut last) = (0, None, 0);
    // At half speed for a while.
    while first.is_none_or(|first| last - first < 500) && SystemClock.boot() < limit {
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
    servers.shown(0, &event, 1 + 2 * turns).await;
    servers.judge(0, &event.id).await;
}

/// The ledger's clock and the database's, milliseconds.
fn both_clocks(servers: &Servers) -> (i64, i64) {
    let both = "SELECT greatest((SELECT at FROM clock), ledger_clock()), \
                floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint";
    let read = servers.database.query(both).unwrap();
    let (ledger, machine) = read.split_once('|').unwrap();
    (ledger.parse().unwrap(), machine.parse().unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_step_back_the_clocks_meet_again() {
    let servers = Servers::start(2).await;
    let step = "UPDATE clock SET at = 4000 + extract(epoch FROM clock_timestamp()) * 1000";
    postgres::query(&servers.database.url(), step).unwrap();
    let (mut last, begun) = both_clocks(&servers);
    assert!(last > begun + 1_000, "{last} at {begun}");
    loop {
        let (ledger, machine) = both_clocks(&servers);
        assert!(ledger >= last, "back from {last} to {ledger}");
        last = ledger;
        if ledger <= machine + 1 {
            break;
        }
        assert!(machine < begun + 60_000, "still at {ledger}");
    }
    // Servers follow.
    let together = || {
        let mut apart = servers
            .ledgers
            .iter()
            .map(|ledger| ledger.now().ms() - SystemClock.wall_ms());
        apart.all(|ms| ms.abs() <= 250)
    };
    until("servers follow", PATIENCE, together).unwrap();
}

/// So long before the end of its hold a confirm is asked for. Less than the clocks may be off, so that
/// nothing but the end itself is in its way.
const SHORTLY_MS: i64 = 150;

/// Busy until the database's clock is there.
async fn reach(other: &Client, at: i64) {
    let wait = format!(
        "DO $$ BEGIN WHILE extract(epoch FROM clock_timestamp()) * 1000 < {at} LOOP NULL; END LOOP; END $$"
    );
    other.batch_execute(&wait).await.unwrap();
}

async fn another_waits(other: &Client) -> bool {
    let waiting = "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)";
    other.query_one(waiting, &[]).await.unwrap().get(0)
}

/// Decided before its end and stored behind it, because another session has the unit locked until then.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hold_that_ends_before_its_confirm_is_stored_is_not_sold() {
    let servers = Servers::start(1).await;
    let event = servers.event(|policy| policy.hold_ttl = Span::from_ms(1_000));
    let event = event.await;
    let url = servers.database.url();
    let (other, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move { drop(connection.await) });
    for (n, seat) in (1..).zip(["A-1", "A-2"]) {
        let hold = servers.hold(0, &event, "ann", &[seat]).await.unwrap();
        let end = hold.expires_at.ms();
        reach(&other, end - SHORTLY_MS).await;
        let lock = "BEGIN; SELECT FROM units FOR UPDATE";
        other.batch_execute(lock).await.unwrap();
        let confirm = confirm(&hold, n);
        let ledger = Arc::clone(&servers.ledgers[0]);
        let mut buyer = JoinSet::new();
        buyer.spawn(async move { booked(ledger.transact(transaction(confirm, None)).await) });
        let mut answer = None;
        // On a machine that is very slow the end may come before the decision.
        while answer.is_none() && !another_waits(&other).await {
            answer = buyer.try_join_next();
        }
        reach(&other, end).await;
        other.batch_execute("COMMIT").await.unwrap();
        if answer.is_none() {
            answer = buyer.join_next().await;
        }
        let refused = answer.unwrap().unwrap();
        assert!(
            matches!(refused, Err(Rejection::HoldExpired)),
            "{refused:?}"
        );
    }
    let sold = "SELECT count(*) FROM bookings";
    assert_eq!(servers.database.query(sold).unwrap(), "0");
    assert_eq!(servers.judge(0, &event.id).await, 2);
}

/// The database's clock stands still at a time, or is eleven minutes ahead before it: every hold is over then.
fn stand_still(at: i64) -> String {
    format!(
        "CREATE OR REPLACE FUNCTION ledger_clock(
             machine bigint DEFAULT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint
         ) RETURNS bigint LANGUAGE plpgsql AS $$
         BEGIN RETURN least({at}, machine + 660000); END $$"
    )
}

/// A server whose clock is ahead takes the hold next to it to be over: it may leave no seat single that
/// the hold, which its owner may still extend, leaves single.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_neighbour_is_over_when_the_database_says_so() {
    let servers = Servers::start(1).await;
    let row = r#"{"format":"grid","rows":1,"seats_per_row":10,"category":"Standard"}"#;
    let event = servers.event_on(row, |policy| policy.adjacency = Adjacency::NoOrphan);
    let event = event.await;
    let bobs = servers.hold(0, &event, "bob", &["A-6", "A-7"]).await;
    let end = bobs.unwrap().expires_at.ms();
    let wish = ["A-3", "A-4"];
    let refused = servers.hold(0, &event, "ann", &wish).await;
    assert!(
        matches!(refused, Err(Rejection::AdjacencyRefused(_))),
        "{refused:?}"
    );
    servers.database.query(&stand_still(end - 50)).unwrap();
    let is_ahead = || servers.ledgers[0].now().ms() >= end;
    until("the server is ahead", PATIENCE, is_ahead).unwrap();
    let refused = servers.hold(0, &event, "ann", &wish).await;
    assert_eq!(refused, Err(Rejection::Overloaded));
    servers.database.query(&stand_still(i64::MAX)).unwrap();
    let limit = SystemClock.boot().plus(PATIENCE);
    let mut held = servers.hold(0, &event, "ann", &wish).await;
    while held == Err(Rejection::Overloaded) && SystemClock.boot() < limit {
        held = servers.hold(0, &event, "ann", &wish).await;
    }
    held.unwrap();
    servers.judge(0, &event.id).await;
}

/// As its holder's hold is over: its owner may still extend it, and a budget has room for one of both.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_budget_is_free_again_when_the_database_says_so() {
    let servers = Servers::start(1).await;
    let event = servers.event(|policy| policy.units_per_holder_max = 2);
    let event = event.await;
    let first = servers.hold(0, &event, "ann", &["A-1", "A-2"]).await;
    let end = first.unwrap().expires_at.ms();
    servers.database.query(&stand_still(end - 50)).unwrap();
    let is_ahead = || servers.ledgers[0].now().ms() >= end;
    until("the server is ahead", PATIENCE, is_ahead).unwrap();
    let refused = servers.hold(0, &event, "ann", &["B-1", "B-2"]).await;
    assert_eq!(refused, Err(Rejection::Overloaded));
    servers.database.query(&stand_still(i64::MAX)).unwrap();
    let limit = SystemClock.boot().plus(PATIENCE);
    let mut held = servers.hold(0, &event, "ann", &["B-1", "B-2"]).await;
    while held == Err(Rejection::Overloaded) && SystemClock.boot() < limit {
        held = servers.hold(0, &event, "ann", &["B-1", "B-2"]).await;
    }
    held.unwrap();
    servers.judge(0, &event.id).await;
}
