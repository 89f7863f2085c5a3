//! Connections that break at the commit: a server that gets no answer asks what became of it, by both
//! ways in which a commit is made.

use soldonce_core::{Command, HoldState, Rejection, Text};
use soldonce_engine::ledger::Ledger;
use soldonce_testkit::chaos::{Fault, FaultProxy};

use super::numbers::NoNumbers;
use crate::postgres::Servers;

/// A server on the database, and a second one behind a proxy.
async fn one_behind_a_proxy() -> (Servers, FaultProxy) {
    let mut servers = Servers::start(1).await;
    let proxy = FaultProxy::to(servers.database.address()).unwrap();
    let url = proxy.url(&servers.database.url(), servers.database.address());
    let shaky = servers.one_more(&servers.unprepared_at(url)).await;
    servers.ledgers.push(shaky);
    (servers, proxy)
}

/// The statement is a commit of its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_answer_of_the_statement_is_asked_for() {
    let (servers, proxy) = one_behind_a_proxy().await;
    let event = servers.event(|_| {}).await;
    // Numbering commits, too.
    let numbers = NoNumbers::begin(&servers).await;
    for (seat, fault) in [
        ("A-1", Fault::DropReply),
        ("A-2", Fault::Reset),
        ("A-3", Fault::DropReply),
    ] {
        proxy.next_with("-- store_batch", fault);
        // Asked for by the one command there is: it was its own commit.
        proxy.next_with("-- give_up", Fault::None);
        let hold = servers.hold(1, &event, "ann", &[seat]).await.unwrap();
        assert_eq!(proxy.to_come(), 0, "the fault has happened");
        // The other server sees the same hold: it was made once.
        let same = servers.ledgers[0].hold(hold.id).await.unwrap();
        assert_eq!(same, Some(hold));
    }
    numbers.end().await;
    assert_eq!(servers.judge(0, &event.id).await, 3);
}

/// A cancellation of the event has its lock before it reads: a transaction of several statements.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_answer_of_the_commit_is_asked_for() {
    let (servers, proxy) = one_behind_a_proxy().await;
    for (name, fault) in [("rain-1", Fault::DropReply), ("rain-2", Fault::Reset)] {
        let event = servers.event_named(name).await;
        let numbers = NoNumbers::begin(&servers).await;
        let hold = servers.hold(1, &event, "ann", &["A-1"]).await.unwrap();
        proxy.next_with("COMMIT", fault);
        proxy.next_with("-- give_up", Fault::None);
        let cancel = Command::CancelEvent {
            event: event.no,
            reason: Text::parse("rain").unwrap(),
        };
        servers.ask(1, cancel).await.unwrap();
        assert_eq!(proxy.to_come(), 0, "the fault has happened");
        let same = servers.ledgers[0].hold(hold.id).await.unwrap().unwrap();
        assert!(matches!(same.state, HoldState::Revoked(_)), "{same:?}");
        numbers.end().await;
        assert_eq!(servers.judge(0, &event.id).await, 2);
    }
}

/// Nothing was sent before it has the lock: it is refused as such, and may be asked for again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancellation_that_loses_its_connection_before_it_has_the_lock_is_refused() {
    let (servers, proxy) = one_behind_a_proxy().await;
    let event = servers.event(|_| {}).await;
    servers.hold(1, &event, "ann", &["A-1"]).await.unwrap();
    let cancel = || Command::CancelEvent {
        event: event.no,
        reason: Text::parse("rain").unwrap(),
    };
    proxy.next_with("-- lock_event", Fault::Reset);
    let refused = servers.ask(1, cancel()).await;
    assert!(matches!(refused, Err(Rejection::ReadOnly)), "{refused:?}");
    assert_eq!(proxy.to_come(), 0, "the fault has happened");
    servers.ask(1, cancel()).await.unwrap();
    assert_eq!(servers.judge(0, &event.id).await, 2);
}
