//! Calls on the runtime that connected that are polled no more, or that no thread is left to answer.

use std::time::Duration;

use soldonce_lease::{Doctor, Lease, Leases, Unsettled};
use soldonce_testkit::PATIENCE;
use soldonce_testkit::redis::Redis;
use tokio::time::timeout;

/// Long: what is free before it is over was given back.
const TTL: Duration = Duration::from_mins(1);

/// Ends the wait for a thread that is gone.
const LIMIT: Duration = Duration::from_secs(5);

async fn connect(redis: &Redis, call_timeout: Duration) -> Leases {
    let builder = Leases::redis(redis.url()).namespace("app");
    builder
        .call_timeout(call_timeout)
        .doctor(Doctor::Off)
        .connect()
        .await
        .unwrap()
}

async fn take(locks: &Leases, name: &str) -> Lease {
    let request = locks.lease(name).ttl(TTL);
    request.try_acquire().await.unwrap().unwrap()
}

/// Polls once: it is sent, and has no answer.
async fn begin<F: Future + Unpin>(call: &mut F) {
    let pending = std::future::poll_fn(|cx| {
        let poll = std::pin::Pin::new(&mut *call).poll(cx);
        std::task::Poll::Ready(poll.is_pending())
    });
    assert!(pending.await, "it was answered at once");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acquires_that_nobody_polls_hold_up_no_other() {
    let mut redis = Redis::start().unwrap();
    let locks = connect(&redis, PATIENCE).await;
    take(&locks, "first").await.release().await.unwrap();
    let mut left = ["a", "b", "c"].map(|name| {
        let request = locks.lease(name).ttl(TTL);
        Box::pin(request.try_acquire())
    });
    // So that none is answered by another thread while it is begun.
    redis.pause().unwrap();
    for call in &mut left {
        begin(call).await;
    }
    redis.resume().unwrap();
    take(&locks, "d").await.release().await.unwrap();
    for call in left {
        assert!(call.await.unwrap().is_some());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_after_the_end_is_answered() {
    let redis = Redis::start().unwrap();
    let locks = connect(&redis, LIMIT).await;
    let held = take(&locks, "a").await;
    locks.clone().shutdown(TTL).await;
    let outcome = timeout(PATIENCE, held.release()).await;
    assert_eq!(outcome.expect("an answer"), Err(Unsettled));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_end_counts_a_release_that_is_under_way_here() {
    let mut redis = Redis::start().unwrap();
    let locks = connect(&redis, LIMIT).await;
    let held = take(&locks, "a").await;
    redis.pause().unwrap();
    let mut release = Box::pin(held.release());
    begin(&mut release).await;
    let drained = locks.clone().shutdown(Duration::from_millis(200)).await;
    assert_eq!((drained.released, drained.left_to_ttl), (0, 1));
    let outcome = timeout(PATIENCE, release).await;
    assert_eq!(outcome.expect("an answer"), Err(Unsettled));
}
