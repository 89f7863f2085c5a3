//! Places of an area are alike: a buyer gets any that is free, however many want one at the
//! same moment on however many servers.

use std::sync::Arc;

use soldonce_core::Rejection;
use soldonce_engine::ledger::Ledger;
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use super::Servers;
use crate::ledgers::{held, select, transaction};

const PLACES: usize = 40;
const BUYERS: usize = 60;

/// A floor and nothing else.
const FLOOR: &str = r#"{"format":"seats","seats":[],
    "areas":[{"area":"floor","capacity":40,"category":"Standing"}]}"#;

/// Everybody wants one place, by turns on each of three servers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_place_of_an_area_has_its_buyer_and_no_other_waits() {
    let servers = Servers::start(3).await;
    let event = servers.event_on(FLOOR, |_| {}).await;
    let barrier = Arc::new(Barrier::new(BUYERS));
    let mut all = JoinSet::new();
    for n in 0..BUYERS {
        let place = select(&event, &[], &[("floor", 1)]);
        let command = servers.want(event.no, &format!("buyer-{n}"), place);
        let ledger = Arc::clone(&servers.ledgers[n % 3]);
        let barrier = Arc::clone(&barrier);
        all.spawn(async move {
            barrier.wait().await;
            held(ledger.transact(transaction(command, None)).await)
        });
    }
    let mut winners = 0;
    for answer in all.join_all().await {
        match answer {
            Ok(_) => winners += 1,
            Err(Rejection::UnitUnavailable(_)) => {}
            Err(other) => panic!("{other:?}"),
        }
    }
    assert_eq!(winners, PLACES);
    assert_eq!(servers.judge(0, &event.id).await, PLACES);
}
