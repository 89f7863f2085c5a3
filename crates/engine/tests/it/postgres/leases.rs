//! What becomes of a lease when its command cannot go on.

use std::sync::Arc;
use std::time::Duration;

use soldonce_clock::{Clock, SystemClock};
use soldonce_core::{Command, Event, Rejection};
use soldonce_engine::ledger::postgres::{PostgresOptions, Strategy};
use soldonce_lease::backend::Memory;
use soldonce_lease::test_kit::{Fault as Flaw, FaultyBackend, Op};
use soldonce_lease::{Doctor, Locks};
use soldonce_testkit::chaos::{Fault, Proxy};

use super::Servers;
use crate::ledgers::{held, on};

/// So long the lease's server takes to say that a lease is given back.
const SLOW: Duration = Duration::from_millis(300);

fn memory() -> Arc<Memory> {
    Arc::new(Memory::new(Arc::new(SystemClock)))
}

async fn hold_and_give_back(servers: &Servers, event: &Event) {
    let hold = servers.hold(0, event, "ann", &["A-1"]).await.unwrap();
    held(servers.ask(0, Command::Release { on: on(&hold) }).await).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_is_given_back_before_its_command_fails() {
    let faulty = FaultyBackend::around(memory(), Arc::new(SystemClock));
    let builder = Locks::backend(faulty.clone()).doctor(Doctor::Off);
    let locks = builder.connect().await.unwrap();
    let mut servers = Servers::start(0).await;
    let proxy = Proxy::to(servers.database.address()).unwrap();
    let url = proxy.url(&servers.database.url(), servers.database.address());
    let options = PostgresOptions {
        strategy: Strategy::Lease(locks),
        ..servers.unprepared_at(url)
    };
    let ledger = servers.one_more(&options).await;
    servers.ledgers.push(ledger);
    let event = servers.event(|_| {}).await;
    for _ in 0..3 {
        hold_and_give_back(&servers, &event).await;
    }
    // Tokens begin again, so the ledger refuses the next; and it cannot be asked for the last.
    faulty.replace(memory());
    proxy.next_with("-- last_token", Fault::Reset);
    faulty.next(Op::Release, Flaw::DelayReply(SLOW));
    let (before, begun) = (faulty.calls(Op::Release), SystemClock.boot());
    let failed = servers.hold(0, &event, "bob", &["A-1"]).await;
    let took = SystemClock.boot().since(begun);
    assert_eq!(failed, Err(Rejection::ReadOnly));
    assert_eq!(proxy.to_come(), 0, "the fault has happened");
    assert_eq!(faulty.calls(Op::Release), before + 1);
    assert!(took >= SLOW, "nobody waited for the release: {took:?}");
    hold_and_give_back(&servers, &event).await;
    servers.judge(0, &event.id).await;
}
