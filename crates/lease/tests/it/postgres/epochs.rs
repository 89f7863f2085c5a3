//! Epochs and tokens from rows of PostgreSQL.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use soldonce_lease::backend::postgres::PgConfig;
use soldonce_lease::{FenceError, FenceKind, FenceSource, ManualClock, PgFence};
use soldonce_testkit::chaos::{Fault, FaultProxy};
use soldonce_testkit::{PATIENCE, runtime};
use tokio::task::JoinSet;

use super::{config, server};

/// On a clock that stands no wait for the database ends: it may be busy.
fn fence(config: PgConfig) -> PgFence {
    PgFence::new(config).clock(Arc::new(ManualClock::at(0)))
}

const MOST: u64 = FenceKind::Epoch.most();

#[tokio::test]
async fn epochs_rise_over_clients_and_restarts_and_respect_above() {
    let mut server = server().await;
    let epochs = fence(config(&server));
    assert_eq!(epochs.next(FenceKind::Epoch, "app", 0).await, Ok(1));
    assert_eq!(epochs.next(FenceKind::Epoch, "app", 40).await, Ok(41));
    assert_eq!(epochs.next(FenceKind::Epoch, "app", 7).await, Ok(42));
    assert_eq!(epochs.next(FenceKind::Epoch, "other", 3).await, Ok(4));
    server.stop_immediately().unwrap();
    server.restart().unwrap();
    // The first call may meet the connection that the server ended.
    let after = match epochs.next(FenceKind::Epoch, "app", 0).await {
        Err(FenceError::Unavailable(_)) => epochs.next(FenceKind::Epoch, "app", 0).await,
        answered => answered,
    };
    assert!(matches!(after, Ok(43..)), "{after:?}");
    assert_eq!(
        epochs.next(FenceKind::Epoch, "app", MOST - 1).await,
        Ok(MOST)
    );
    let none = epochs.next(FenceKind::Epoch, "app", 0).await;
    assert!(
        matches!(none, Err(FenceError::Exhausted { .. })),
        "{none:?}"
    );
    let none = epochs.next(FenceKind::Epoch, "other", MOST).await;
    assert!(
        matches!(none, Err(FenceError::Exhausted { .. })),
        "{none:?}"
    );
}

#[tokio::test]
async fn ten_clients_race_for_epochs_and_for_tokens() {
    let server = server().await;
    let mut clients = JoinSet::new();
    for _ in 0..10 {
        clients.spawn(take_twenty_of_both(config(&server)));
    }
    let (mut epochs, mut tokens) = (Vec::new(), Vec::new());
    for (some_epochs, some_tokens) in clients.join_all().await {
        assert!(some_epochs.is_sorted() && some_tokens.is_sorted());
        epochs.extend(some_epochs);
        tokens.extend(some_tokens);
    }
    epochs.sort_unstable();
    tokens.sort_unstable();
    assert_eq!(epochs, (1..=200).collect::<Vec<u64>>());
    let first = 1 << 32;
    assert_eq!(tokens, (first + 1..=first + 200).collect::<Vec<u64>>());
}

async fn take_twenty_of_both(config: PgConfig) -> (Vec<u64>, Vec<u64>) {
    let (epochs, tokens) = (fence(config.clone()), fence(config));
    let mut given = (Vec::new(), Vec::new());
    for _ in 0..20 {
        given
            .0
            .push(epochs.next(FenceKind::Epoch, "app", 0).await.unwrap());
        given
            .1
            .push(tokens.next(FenceKind::Token, "app", 0).await.unwrap());
    }
    given
}

#[tokio::test]
async fn tokens_end_below_two_to_the_53() {
    let server = server().await;
    let tokens = fence(config(&server));
    let last = (1 << 53) - 1;
    assert_eq!(
        tokens.next(FenceKind::Token, "app", last - 1).await,
        Ok(last)
    );
    for above in [0, last, u64::MAX] {
        let none = tokens.next(FenceKind::Token, "app", above).await;
        assert!(
            matches!(none, Err(FenceError::Exhausted { .. })),
            "{none:?}"
        );
    }
}

/// A server that is far away needs more time for TLS and login than a call has.
#[tokio::test]
async fn a_connect_that_outlasts_a_call_serves_the_next_one() {
    let server = server().await;
    let proxy = FaultProxy::to(server.address()).unwrap();
    let url = proxy.url(&server.url(), server.address());
    let clock = ManualClock::at(0);
    let fence = PgFence::new(PgConfig::url(&url).unwrap()).clock(Arc::new(clock.clone()));
    proxy.set(Fault::Cut);
    let mut early = fence.next(FenceKind::Epoch, "far", 0);
    let poll = |cx: &mut Context<'_>| Poll::Ready(early.as_mut().poll(cx).is_pending());
    assert!(poll_fn(poll).await);
    while proxy.connections() == 0 {
        tokio::task::yield_now().await;
    }
    // More than a call has, and less than a connect.
    clock.advance(Duration::from_millis(500));
    let early = early.await;
    assert!(
        matches!(early, Err(FenceError::Unavailable(_))),
        "{early:?}"
    );
    proxy.heal();
    assert_eq!(fence.next(FenceKind::Epoch, "far", 0).await, Ok(1));
    assert_eq!(proxy.connections(), 1, "made anew");
}

#[test]
fn a_runtime_that_stands_still_holds_up_no_numbers_of_another() {
    let [first, second] = [runtime(), runtime()].map(Result::unwrap);
    let server = first.block_on(server());
    let fence = fence(config(&server));
    let next = async || {
        let next = fence.next(FenceKind::Epoch, "app", 0);
        tokio::time::timeout(PATIENCE, next).await.unwrap()
    };
    assert_eq!(first.block_on(next()), Ok(1));
    assert_eq!(second.block_on(next()), Ok(2), "nothing polls the first");
    assert_eq!(first.block_on(next()), Ok(3));
}
