//! Acquires and releases on the runtime that connected: what the lease thread keeps when that runtime is
//! blocked, dropped, or its tasks are aborted. `docs/decisions/0271`.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::task::{Context, Poll};
use std::time::Duration;

use soldonce_lease::{
    AcquireError, Builder, Doctor, Lease, LeaseState, Leases, ManualClock, block_on,
};
use soldonce_testkit::redis::Redis;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;
use tokio::task::coop::{consume_budget, has_budget_remaining};

use super::batches::scripts;
use super::site::until;

/// Long: what goes away before it is over did not go away by itself.
const TTL: Duration = Duration::from_mins(1);

fn builder(redis: &Redis) -> Builder {
    let builder = Leases::redis(redis.url()).namespace("app");
    builder
        .doctor(Doctor::Off)
        .call_timeout(Duration::from_secs(5))
}

/// Runs a test without a runtime of its own.
fn outside<T>(test: impl Future<Output = T>) -> T {
    soldonce_testkit::runtime().unwrap().block_on(test)
}

/// A runtime whose only thread is easily blocked.
fn runtime() -> Runtime {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.worker_threads(1).enable_all().build().unwrap()
}

fn connect(on: &Runtime, redis: &Redis) -> Leases {
    on.block_on(builder(redis).connect()).unwrap()
}

/// As [`connect`], on a clock of its own: a machine that stalls must not end a lease.
fn connect_on_time(on: &Runtime, redis: &Redis) -> (Leases, ManualClock) {
    let clock = ManualClock::at(1_000_000);
    let builder = builder(redis).clock(Arc::new(clock.clone()));
    (on.block_on(builder.connect()).unwrap(), clock)
}

/// Lets ten lives of a lease pass, by halves; it is renewed in each. What it waits for has time as on a real clock.
async fn pass_ten_ttls(locks: &Leases, clock: &ManualClock) {
    for _ in 0..20 {
        let before = locks.stats().renewed;
        clock.advance(TTL / 2);
        until("it is renewed", async || {
            // A try that failed is repeated after a pause.
            clock.advance(Duration::from_millis(10));
            (locks.stats().renewed > before).then_some(())
        })
        .await;
    }
}

/// A lease that was taken on the runtime.
fn take(on: &Runtime, locks: &Leases, name: &str) -> Lease {
    let request = locks.lease(name).ttl(TTL);
    on.block_on(request.acquire()).unwrap()
}

/// Blocks the thread of the runtime after `before` has run there, until the sender is dropped.
fn block(on: &Runtime, before: impl FnOnce() + Send + 'static) -> Sender<()> {
    let (go_on, blocked) = channel::<()>();
    let (begun, begins) = channel();
    on.spawn(async move {
        before();
        begun.send(()).unwrap();
        blocked.recv().unwrap_err();
    });
    begins.recv().unwrap();
    go_on
}

async fn comes_free(redis: &Redis, name: &str) {
    takes(&builder(redis).connect().await.unwrap(), name).await;
}

/// Takes the name and gives it back, as soon as it is free.
async fn takes(other: &Leases, name: &str) {
    until("the name is free", async || {
        let lease = other.lease(name).ttl(TTL).try_acquire().await.ok()??;
        lease.release().await.ok()
    })
    .await;
}

#[test]
fn a_lease_outlives_ten_ttls_of_a_blocked_runtime() {
    let redis = Redis::start().unwrap();
    let caller = runtime();
    let (locks, clock) = connect_on_time(&caller, &redis);
    let lease = take(&caller, &locks, "a");
    let blocked = block(&caller, || {});
    outside(pass_ten_ttls(&locks, &clock));
    assert!(lease.token().is_ok(), "{:?}", lease.state());
    drop(blocked);
}

#[test]
fn what_a_blocked_runtime_gave_back_comes_free() {
    let redis = Redis::start().unwrap();
    let caller = runtime();
    let locks = connect(&caller, &redis);
    let lease = take(&caller, &locks, "a");
    let blocked = block(&caller, move || drop(lease));
    outside(comes_free(&redis, "a"));
    drop(blocked);
}

#[test]
fn leases_outlive_the_runtime_that_took_them() {
    let redis = Redis::start().unwrap();
    let caller = runtime();
    let (locks, clock) = connect_on_time(&caller, &redis);
    let lease = take(&caller, &locks, "a");
    drop(caller);
    outside(pass_ten_ttls(&locks, &clock));
    assert!(lease.token().is_ok(), "{:?}", lease.state());
    drop(lease);
    outside(comes_free(&redis, "a"));
    let next = block_on(locks.lease("b").acquire()).unwrap();
    block_on(next.release()).unwrap();
}

#[test]
fn what_a_dropped_runtime_was_about_to_do_leaves_nothing() {
    let redis = Redis::start().unwrap();
    let caller = runtime();
    let locks = connect(&caller, &redis);
    for task in 0..50 {
        let locks = locks.clone();
        caller.spawn(async move {
            loop {
                let lease = locks.lease(format!("n:{task}")).ttl(TTL);
                drop(lease.try_acquire().await);
            }
        });
    }
    outside(until("they are at work", async || {
        (locks.stats().acquired > 1_000).then_some(())
    }));
    drop(caller);
    outside(until("nothing is left", async || {
        let left = redis.cli(&["KEYS", "sl:*:l:*"]).unwrap();
        // The answer to the last release may still be on its way.
        (left.is_empty() && locks.stats().live == 0).then_some(())
    }));
}

/// Polls so often, and is done then, whether the future is or not.
struct Polls<F> {
    future: Pin<Box<F>>,
    left: usize,
}

impl<F: Future> Future for Polls<F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.left -= 1;
        match self.future.as_mut().poll(cx) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending if self.left == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_that_ends_at_any_await_leaves_nothing() {
    let redis = Redis::start().unwrap();
    let locks = builder(&redis).connect().await.unwrap();
    let other = builder(&redis).own_thread().connect().await.unwrap();
    for polls in 1..12 {
        // What was dropped may be granted yet, before it is given back.
        let held = until("the name is free", async || {
            other.lease("a").ttl(TTL).try_acquire().await.ok()?
        })
        .await;
        let mut waits = JoinSet::new();
        waits.spawn(Polls {
            future: Box::pin(locks.lease("a").ttl(TTL).acquire()),
            left: polls,
        });
        waits.spawn(Polls {
            future: Box::pin(locks.lease("b").ttl(TTL).acquire()),
            left: polls,
        });
        held.release().await.unwrap();
        drop(waits.join_all().await);
        for name in ["a", "b"] {
            takes(&other, name).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_of_a_task_that_must_yield_is_sent_if_the_task_ends_there() {
    let redis = Redis::start().unwrap();
    let locks = builder(&redis).connect().await.unwrap();
    let lease = locks.lease("a").ttl(TTL).acquire().await.unwrap();
    let release = Polls {
        future: Box::pin(lease.release()),
        left: 1,
    };
    while has_budget_remaining() {
        consume_budget().await;
    }
    let answer = release.await;
    assert!(answer.is_none_or(|answer| answer.is_ok()), "{answer:?}");
    comes_free(&redis, "a").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_that_was_dropped_here_is_free_for_who_asks_next_here() {
    let redis = Redis::start().unwrap();
    let locks = builder(&redis).connect().await.unwrap();
    // A server that does not know a script yet is asked twice, and the acquire may come in between.
    takes(&locks, "a").await;
    for _ in 0..300 {
        let lease = locks
            .lease("a")
            .ttl(TTL)
            .try_acquire()
            .await
            .unwrap()
            .unwrap();
        drop(lease);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shutdown_ends_who_waits_here() {
    let redis = Redis::start().unwrap();
    let locks = builder(&redis).connect().await.unwrap();
    let held = locks
        .lease("a")
        .ttl(TTL)
        .try_acquire()
        .await
        .unwrap()
        .unwrap();
    let mut waits = JoinSet::new();
    waits.spawn(locks.lease("a").ttl(TTL).acquire());
    until("it waits", async || (scripts(&redis) > 3).then_some(())).await;
    let drained = locks.clone().shutdown(TTL).await;
    assert_eq!(drained.left_to_ttl, 0, "{drained:?}");
    let ended = waits.join_next().await.unwrap().unwrap();
    assert!(matches!(ended, Err(AcquireError::Closed)), "{ended:?}");
    let late = locks.lease("b").try_acquire().await;
    assert!(matches!(late, Err(AcquireError::Closed)), "{late:?}");
    assert!(held.token().is_err());
    assert_eq!(redis.cli(&["KEYS", "sl:*:l:*"]).unwrap(), "");
}

#[test]
fn a_shutdown_counts_a_release_that_is_under_way_here() {
    let mut redis = Redis::start().unwrap();
    let caller = runtime();
    let locks = connect(&caller, &redis);
    let (dropped, held) = (take(&caller, &locks, "a"), take(&caller, &locks, "b"));
    redis.pause().unwrap();
    // It is under way when this returns.
    caller.block_on(async move { drop(dropped) });
    let drained = outside(async {
        let mut shutdown = Box::pin(locks.shutdown(TTL));
        let once = std::future::poll_fn(|cx| Poll::Ready(shutdown.as_mut().poll(cx).is_pending()));
        assert!(once.await);
        until("it begins", async || {
            (held.state() == LeaseState::Released).then_some(())
        })
        .await;
        redis.resume().unwrap();
        shutdown.await
    });
    assert_eq!((drained.released, drained.left_to_ttl), (2, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn blocking_calls_do_not_wait_for_this_runtime() {
    let redis = Redis::start().unwrap();
    let locks = builder(&redis).connect().await.unwrap();
    // Both threads of this runtime wait without polling anything else.
    let mut both = JoinSet::new();
    for task in 0..2 {
        let locks = locks.clone();
        both.spawn(async move { block_in_turns(&locks, &format!("n:{task}")) });
    }
    both.join_all().await;
}

fn block_in_turns(locks: &Leases, name: &str) {
    for _ in 0..20 {
        let lease = block_on(locks.lease(name).ttl(TTL).try_acquire());
        let lease = lease.unwrap().unwrap();
        block_on(lease.release()).unwrap();
    }
}
