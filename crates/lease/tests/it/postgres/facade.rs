//! The whole library over PostgreSQL.

use std::time::Duration;

use soldonce_lease::backend::Backend;
use soldonce_lease::backend::postgres::PgConfig;
use soldonce_lease::{BackendError, Doctor, Leases, PgFence};
use soldonce_testkit::PATIENCE;
use soldonce_testkit::postgres::Postgres as Server;

use super::{ask, backend, config, granted, migrated, one, release, server};

async fn locks(config: PgConfig) -> Leases {
    let built = Leases::postgres(config)
        .namespace("app")
        .call_timeout(PATIENCE);
    built.doctor(Doctor::Off).connect().await.unwrap()
}

#[tokio::test]
async fn a_lease_excludes_is_waited_for_and_its_token_rises() {
    let server = server().await;
    let (first, second) = (locks(config(&server)).await, locks(config(&server)).await);
    let lease = first.lease("report").try_acquire().await.unwrap().unwrap();
    let token = lease.token().unwrap();
    let refused = second.lease("report").try_acquire().await;
    assert!(matches!(refused, Ok(None)), "{refused:?}");
    let waiting = second.lease("report").acquire();
    let (released, waited) = tokio::join!(lease.release(), waiting);
    released.unwrap();
    let later = waited.unwrap().token().unwrap();
    assert!(later > token && token.epoch() > 0);
    first.shutdown(Duration::from_secs(5)).await;
    second.shutdown(Duration::from_secs(5)).await;
}

#[tokio::test]
async fn what_cannot_work_is_said_at_connect() {
    let server = Server::start().unwrap();
    let built = || {
        let built = Leases::postgres(config(&server)).namespace("app");
        built.call_timeout(PATIENCE)
    };
    let bare = built().connect().await;
    assert!(matches!(bare, Err(BackendError::Config(why)) if why.contains("postgres::migrate")));
    migrated(&config(&server)).await.unwrap();
    let epochs = built().fence(PgFence::new(config(&server)));
    let foreign = epochs.connect().await;
    assert!(matches!(foreign, Err(BackendError::Config(_))));
    // The private server runs without fsync.
    let strict = built().doctor(Doctor::Strict).connect().await;
    assert!(matches!(strict, Err(BackendError::Config(why)) if why.contains("fsync")));
}

#[tokio::test]
async fn a_release_wakes_listeners_when_that_was_asked_for() {
    let server = server().await;
    let (holder, waiter) = (
        backend(config(&server).notify()),
        backend(config(&server).notify()),
    );
    for names in [one("job"), super::group(&["a", "b"])] {
        let mine = ask(names);
        let token = granted(&holder, &mine).await;
        let mut hints = waiter.wake(&mine.names).await;
        let mut others = waiter.wake(&one("other")).await;
        release(&holder, &mine, Some(token)).await;
        hints.next().await;
        let quiet = std::pin::pin!(others.next());
        assert!(!soon(quiet).await, "another name's waiter sleeps on");
    }
}

/// Whether the future is ready when it is looked at once.
async fn soon(mut future: std::pin::Pin<&mut impl Future<Output = ()>>) -> bool {
    std::future::poll_fn(|cx| std::task::Poll::Ready(future.as_mut().poll(cx).is_ready())).await
}
