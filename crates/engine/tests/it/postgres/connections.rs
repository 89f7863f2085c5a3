//! Few connections, many busy events: a connection stays with an event while no other waits for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use soldonce_core::{Command, Event, Rejection};
use soldonce_engine::ledger::postgres::PostgresOptions;
use tokio::task::JoinSet;

use super::Servers;
use crate::ledgers::on;

/// The fewest that a server may be given.
const CONNECTIONS: usize = 2;
/// Buyers of each busy event. Some of them always wait for the next batch.
const BUYERS: [&str; 6] = ["A-1", "A-2", "A-3", "B-1", "B-2", "B-4"];

impl Servers {
    /// Takes a seat and gives it back.
    async fn take_and_give(&self, event: &Event, seat: &str) -> Result<(), Rejection> {
        let hold = self.hold(0, event, seat, &[seat]).await?;
        self.ask(0, Command::Release { on: on(&hold) }).await?;
        Ok(())
    }
}

/// A buyer who takes and gives back the same seat until it is over.
async fn keep_busy(
    servers: Arc<Servers>,
    event: Arc<Event>,
    seat: &'static str,
    is_over: Arc<AtomicBool>,
) -> usize {
    let mut times = 0;
    while !is_over.load(Ordering::Relaxed) {
        servers.take_and_give(&event, seat).await.unwrap();
        times += 1;
    }
    times
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_busy_event_leaves_its_connection_to_an_event_that_waits() {
    let mut servers = Servers::start(0).await;
    let options = PostgresOptions {
        connections: CONNECTIONS,
        ..servers.options.clone()
    };
    let ledger = servers.one_more(&options).await;
    servers.ledgers.push(ledger);
    let quiet = servers.event_named("quiet").await;
    let (servers, is_over) = (Arc::new(servers), Arc::new(AtomicBool::new(false)));
    let mut busy = JoinSet::new();
    for n in 0..CONNECTIONS {
        let event = servers.event_named(&format!("busy-{n}")).await;
        for seat in BUYERS {
            let (servers, event) = (Arc::clone(&servers), Arc::clone(&event));
            busy.spawn(keep_busy(servers, event, seat, Arc::clone(&is_over)));
        }
    }
    for n in 0..50 {
        let served = servers.take_and_give(&quiet, "A-1").await;
        assert_eq!(served, Ok(()), "{n}");
    }
    is_over.store(true, Ordering::Relaxed);
    let served = busy.join_all().await;
    assert_eq!(served.len(), BUYERS.len() * CONNECTIONS);
    assert!(served.iter().all(|times| *times > 0), "{served:?}");
}
