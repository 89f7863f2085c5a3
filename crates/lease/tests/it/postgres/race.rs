//! Many clients and one name.

use std::sync::Arc;

use soldonce_lease::backend::postgres::PgConfig;
use soldonce_lease::backend::{AcquireReply, Backend};
use soldonce_testkit::postgres::Postgres as Server;
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use super::{ask, backend, config, granted, one, release, server};

const CLIENTS: usize = 50;

/// The replies of fifty clients, each with connections of its own, that asked at once.
async fn race(server: &Server, name: &str) -> Vec<AcquireReply> {
    let barrier = Arc::new(Barrier::new(CLIENTS));
    let mut clients = JoinSet::new();
    for _ in 0..CLIENTS {
        clients.spawn(ask_at_once(
            config(server),
            name.to_owned(),
            barrier.clone(),
        ));
    }
    clients.join_all().await
}

async fn ask_at_once(config: PgConfig, name: String, barrier: Arc<Barrier>) -> AcquireReply {
    let backend = backend(config);
    let ask = ask(one(&name));
    barrier.wait().await;
    backend.acquire(&ask).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_clients_race_for_one_name_and_exactly_one_wins() {
    let server = server().await;
    let before = backend(config(&server));
    for round in 0..6 {
        let name = format!("race-{round}");
        // A new row is guarded by its key already; one that is there and free needs its lock.
        if round % 2 == 0 {
            let used = ask(one(&name));
            granted(&before, &used).await;
            release(&before, &used, None).await;
        }
        let replies = race(&server, &name).await;
        let winners = replies.iter().filter_map(|reply| match reply {
            AcquireReply::Granted { token, .. } => Some(*token),
            _ => None,
        });
        let winners: Vec<_> = winners.collect();
        let refusals = replies.iter().filter_map(|reply| match reply {
            AcquireReply::Refused(refusal) => Some(refusal),
            _ => None,
        });
        let refusals: Vec<_> = refusals.collect();
        assert_eq!((winners.len(), refusals.len()), (1, 49), "{replies:?}");
        for refusal in refusals {
            // Who could not lock the row in time knows no holder; all others name the winner.
            let mut named = refusal.conflicts.iter();
            assert!(named.all(|conflict| conflict.token == winners[0]));
            assert!(!refusal.retry_after.is_zero());
        }
    }
}
