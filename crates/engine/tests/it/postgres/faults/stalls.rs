//! Servers, connections and databases that stop without a word.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use soldonce_clock::{Clock, SystemClock};
use soldonce_core::{Command, Policy, PolicyChange};
use soldonce_testkit::chaos::{Fault, FaultProxy};
use soldonce_testkit::{PATIENCE, until};

use super::load_for;
use crate::postgres::Servers;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_stops_in_its_turn_does_not_stop_the_numbers() {
    let mut servers = Servers::start(1).await;
    let event = servers.event(|_| {}).await;
    let proxy = FaultProxy::to(servers.database.address()).unwrap();
    let url = proxy.url(&servers.database.url(), servers.database.address());
    let options = servers.unprepared_at(url);
    let stopping = servers.one_more(&options).await;
    servers.ledgers.push(stopping);
    // It has the sequencer's row locked, and is not heard of any more.
    let begun = SystemClock.boot();
    proxy.next_with("-- quiet_until", Fault::HalfOpen);
    let has_stopped = || proxy.to_come() == 0;
    until("a server stops in its turn", PATIENCE, has_stopped).unwrap();
    servers.hold(0, &event, "ann", &["A-1"]).await.unwrap();
    servers.shown(0, &event, 1).await;
    let took = SystemClock.boot().since(begun);
    // No other server was in the way: the lock was there.
    assert!(took > Duration::from_millis(500), "{took:?}");
}

/// A policy is changed while every server holds without a pause.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_policy_is_changed_amid_holds_that_never_pause() {
    let servers = Servers::start(3).await;
    let event = servers.event(|_| {}).await;
    let stop = Arc::new(AtomicBool::new(false));
    let load = |server| load_for(&servers, server, &event, &stop, usize::MAX);
    let mut loads = [0, 1, 2].map(load);
    let mut longest = Duration::ZERO;
    for limit in [3, 4, 5, 6, 7] {
        let policy = Policy {
            units_per_hold_max: limit,
            ..event.policy.clone()
        };
        let begun = SystemClock.boot();
        let change = Command::UpdateEvent {
            event: event.no,
            change: Box::new(PolicyChange::from(&policy).into()),
        };
        servers.ask(1, change).await.unwrap();
        longest = longest.max(SystemClock.boot().since(begun));
    }
    stop.store(true, Ordering::Relaxed);
    for buyers in &mut loads {
        while let Some(bought) = buyers.join_next().await {
            bought.unwrap();
        }
    }
    servers.judge(0, &event.id).await;
    // The holds would go on without an end. No stall of the machine is as long.
    assert!(longest < Duration::from_secs(20), "{longest:?}");
}
