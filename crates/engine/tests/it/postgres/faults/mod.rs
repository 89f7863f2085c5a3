//! Connections that break, servers that die, a database that stops.

mod conflicts;
mod crowd;
mod lost;
mod moves;
mod numbers;
mod reads;
mod silence;
mod stalls;
mod verify;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use soldonce_core::{Command, Event, Hold, NewHold, Rejection};
use soldonce_engine::ledger::Ledger;
use soldonce_engine::ledger::postgres::PostgresLedger;
use tokio::task::JoinSet;

use super::{Servers, hold_id};
use crate::ledgers::{held, on, transaction, verified};

const SEATS: [&str; 10] = [
    "A-1", "A-2", "A-3", "A-4", "A-5", "B-1", "B-2", "B-3", "B-4", "B-5",
];

/// How often one buyer holds and releases.
const TURNS: usize = 60;

/// After every fault what is stored in the database is whole.
impl Drop for Servers {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            verified(&self.options);
        }
    }
}

/// One buyer for each seat; gives the holds that were acknowledged.
pub(super) fn load(
    servers: &Servers,
    server: usize,
    event: &Arc<Event>,
    stop: &Arc<AtomicBool>,
) -> JoinSet<Vec<Hold>> {
    load_for(servers, server, event, stop, TURNS)
}

/// The same with so many turns for each buyer.
fn load_for(
    servers: &Servers,
    server: usize,
    event: &Arc<Event>,
    stop: &Arc<AtomicBool>,
    turns: usize,
) -> JoinSet<Vec<Hold>> {
    let mut all = JoinSet::new();
    for (n, seat) in SEATS.into_iter().enumerate() {
        let ledger = Arc::clone(&servers.ledgers[server]);
        let who = format!("buyer-{server}-{n}");
        let Command::Hold(wish) = servers.wish(event, &who, &[seat]) else {
            unreachable!("a wish is a hold");
        };
        let ids = Arc::clone(&servers.next);
        all.spawn(buy(ledger, (wish, turns), ids, Arc::clone(stop)));
    }
    all
}

/// Holds and releases until it is told to stop.
async fn buy(
    ledger: Arc<PostgresLedger>,
    (wish, turns): (NewHold, usize),
    ids: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
) -> Vec<Hold> {
    let mut kept = Vec::new();
    for _ in 0..turns {
        if stop.load(Ordering::Relaxed) {
            return kept;
        }
        let wish = Command::Hold(NewHold {
            hold: hold_id(&ids),
            ..wish.clone()
        });
        if let Ok(hold) = held(ledger.transact(transaction(wish, None)).await) {
            let release = Command::Release { on: on(&hold) };
            kept.push(hold);
            let released = ledger.transact(transaction(release, None)).await;
            // Whether it came through is the judge's business.
            drop(released);
        }
    }
    kept
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_dies_under_load_leaves_a_whole_ledger() {
    let mut servers = Servers::start(2).await;
    let event = servers.event(|_| {}).await;
    let stop = Arc::new(AtomicBool::new(false));
    let mut one = load(&servers, 0, &event, &stop);
    let other = load(&servers, 1, &event, &stop);
    // A command that is under way is cut off there.
    one.join_next().await;
    one.abort_all();
    servers.ledgers.remove(0);
    drop(one);
    stop.store(true, Ordering::Relaxed);
    let kept: Vec<_> = other.join_all().await.into_iter().flatten().collect();
    for hold in &kept {
        let stored = servers.ledgers[0].hold(hold.id).await.unwrap();
        assert_eq!(stored.as_ref().map(|hold| hold.id), Some(hold.id));
    }
    servers.judge(0, &event.id).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_stops_at_once_keeps_what_it_acknowledged() {
    let mut servers = Servers::start(2).await;
    let event = servers.event(|_| {}).await;
    let mut kept = Vec::new();
    for _ in 0..3 {
        let stop = Arc::new(AtomicBool::new(false));
        let mut one = load(&servers, 0, &event, &stop);
        let two = load(&servers, 1, &event, &stop);
        kept.extend(one.join_next().await.unwrap().unwrap());
        servers.database.stop_immediately().unwrap();
        stop.store(true, Ordering::Relaxed);
        kept.extend(one.join_all().await.into_iter().flatten());
        kept.extend(two.join_all().await.into_iter().flatten());
        servers.database.restart().unwrap();
        // Both go on by themselves.
        for server in 0..2 {
            let wish = servers.hold(server, &event, "zoe", &["A-1"]).await;
            assert!(
                matches!(wish, Ok(_) | Err(Rejection::UnitUnavailable(_))),
                "{wish:?}"
            );
        }
    }
    for hold in &kept {
        let stored = servers.ledgers[0].hold(hold.id).await.unwrap();
        assert_eq!(stored.as_ref().map(|hold| hold.id), Some(hold.id));
    }
    servers.judge(1, &event.id).await;
}
