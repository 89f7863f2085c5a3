//! A database that says nothing any more, its connections open: everybody is answered within a bound,
//! and the sale goes on as soon as the database does.

use std::sync::Arc;
use std::time::Duration;

use soldonce_clock::{Clock, SystemClock};
use soldonce_core::{Event, Rejection};
use soldonce_engine::ledger::Ledger;
use tokio::task::JoinSet;

use super::SEATS;
use crate::ledgers::{held, transaction};
use crate::postgres::Servers;

/// Buyers who come while the database is silent.
const BUYERS: usize = 1_000;
/// The last of them is told by then: a turn, an answer, and whether it was stored after all, each of
/// which has its own bound; and the machine may stand still meanwhile.
const TOLD: Duration = Duration::from_secs(35);
/// Sales go on so soon after the database does.
const BACK: Duration = Duration::from_secs(25);

fn is_unanswered(answer: &Result<soldonce_core::Hold, Rejection>) -> bool {
    matches!(
        answer,
        Err(Rejection::ReadOnly | Rejection::OutcomeUnknown | Rejection::Overloaded)
    )
}

/// No buyer gets a seat, and all are told so in time.
async fn everybody_is_told(servers: &Servers, event: &Event) {
    let begun = SystemClock.boot();
    let mut buyers = JoinSet::new();
    for n in 0..BUYERS {
        // A command whose outcome is unknown may be stored when the database goes on.
        let seat = SEATS[n % (SEATS.len() - 2)];
        let wish = servers.wish(event, &format!("buyer-{n}"), &[seat]);
        let ledger = Arc::clone(&servers.ledgers[0]);
        buyers.spawn(async move { held(ledger.transact(transaction(wish, None)).await) });
    }
    let answers = buyers.join_all().await;
    let took = SystemClock.boot().since(begun);
    let other = answers.iter().find(|answer| !is_unanswered(answer));
    assert_eq!(other, None);
    assert!(took < TOLD, "the last was told after {took:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_buyer_is_left_waiting() {
    let mut servers = Servers::start(1).await;
    let event = servers.event(|_| {}).await;
    let kept = servers.hold(0, &event, "ann", &["B-5"]).await.unwrap();
    servers.database.pause().unwrap();
    everybody_is_told(&servers, &event).await;
    servers.database.resume().unwrap();
    let limit = SystemClock.boot().plus(BACK);
    let mut sold = servers.hold(0, &event, "eve", &["B-4"]).await;
    while is_unanswered(&sold) {
        assert!(SystemClock.boot() < limit, "it goes on by itself");
        sold = servers.hold(0, &event, "eve", &["B-4"]).await;
    }
    sold.unwrap();
    let stored = servers.ledgers[0].hold(kept.id).await.unwrap();
    assert_eq!(stored, Some(kept), "what was acknowledged is there");
    servers.judge(0, &event.id).await;
}
