//! The life of one lease in the hands of its holder.

use std::time::Duration;

use soldonce_lease::{AcquireError, AcquireResultExt, FencingToken, Locks, ReleaseOutcome, Wait};

#[tokio::test]
async fn a_lease_excludes_until_it_is_released() {
    let locks = Locks::memory().connect().await.unwrap();
    let first = locks.lease("a").try_acquire().await.unwrap();
    let refused = locks.lease("a").try_acquire().await.unwrap_err();
    let AcquireError::Refused(refusal) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(refusal.conflicts.len(), 1);
    assert_eq!(refusal.conflicts[0].name.as_str(), "a");
    let first_token = first.live_token().unwrap();
    assert_eq!(first.release().await, Ok(ReleaseOutcome::Released));
    let second = locks.lease("a").try_acquire().await.unwrap();
    assert!(second.live_token().unwrap() > first_token);
}

#[tokio::test]
async fn a_waiter_gets_what_a_dropped_guard_gives_back() {
    let locks = Locks::memory().connect().await.unwrap();
    let first = locks.lease("a").try_acquire().await.unwrap();
    let waiting = locks.lease("a").acquire(Wait::UpTo(Duration::from_secs(5)));
    let (second, ()) = tokio::join!(waiting, async { drop(first) });
    assert!(second.granted().unwrap().is_some());
}

#[test]
fn everything_works_without_an_executor() {
    let locks = Locks::memory().connect_blocking().unwrap();
    let lease = locks.lease("a").try_acquire_blocking().unwrap();
    lease.renew_blocking().unwrap();
    assert_eq!(lease.release_blocking(), Ok(ReleaseOutcome::Released));
    let run = locks.lease("a").run_blocking(Wait::No, |lease| {
        lease.live_token().map(FencingToken::number)
    });
    assert_eq!(run.unwrap(), 2);
    let left = locks.shutdown_blocking(Duration::from_secs(1)).left_to_ttl;
    assert_eq!(left, 0);
}
