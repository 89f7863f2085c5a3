//! Connections that break at the commit: a server that gets no answer asks what became of it, by both
//! ways in which a commit is made.

use soldonce_core::{Authority, BookingId, Command, LineChoice};
use soldonce_engine::ledger::Ledger;
use soldonce_testkit::chaos::{Fault, Proxy};

use super::numbers::NoNumbers;
use crate::ledgers::{booked, on};
use crate::postgres::Servers;

/// A server on the database, and a second one behind a proxy.
async fn one_behind_a_proxy() -> (Servers, Proxy) {
    let mut servers = Servers::start(1).await;
    let proxy = Proxy::to(servers.database.address()).unwrap();
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
        proxy.next_with("-- write", fault);
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

/// Lines that are written anew are a transaction.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_answer_of_the_commit_is_asked_for() {
    let (servers, proxy) = one_behind_a_proxy().await;
    let event = servers.event(|_| {}).await;
    let numbers = NoNumbers::begin(&servers).await;
    for (n, fault) in [(1, Fault::DropReply), (2, Fault::Reset)] {
        let hold = servers.hold(1, &event, "ann", &["A-1"]).await.unwrap();
        let confirm = Command::Confirm {
            on: on(&hold),
            booking: BookingId::from_bits(n),
            reference: None,
        };
        let booking = booked(servers.ask(1, confirm).await).unwrap();
        // The first one ends the read of the booking, which memory has let go of.
        proxy.next_with("COMMIT", Fault::None);
        proxy.next_with("COMMIT", fault);
        proxy.next_with("-- give_up", Fault::None);
        let cancel = Command::Cancel {
            booking: booking.id,
            by: Authority::Staff,
            lines: LineChoice::All,
        };
        let cancelled = booked(servers.ask(1, cancel).await).unwrap();
        assert_eq!(proxy.to_come(), 0, "the fault has happened");
        let same = servers.ledgers[0].booking(booking.id).await.unwrap();
        assert_eq!(same, Some(cancelled));
    }
    numbers.end().await;
    assert_eq!(servers.judge(0, &event.id).await, 6);
}
