//! The life of one lease in the hands of its holder.

use std::time::Duration;

use soldonce_lease::{FencingToken, Leases, ReleaseOutcome, block_on};

#[tokio::test]
async fn a_lease_excludes_until_it_is_released() {
    let leases = Leases::memory().connect().await.unwrap();
    let first = leases.lease("a").acquire().await.unwrap();
    let refused = leases.lease("a").acquire_or_refusal(Duration::ZERO).await;
    let refusal = refused.unwrap().unwrap_err();
    assert_eq!(refusal.conflicts.len(), 1);
    assert_eq!(refusal.conflicts[0].name.as_str(), "a");
    let first_token = first.token().unwrap();
    assert_eq!(first.release().await, Ok(ReleaseOutcome::Released));
    let second = leases.lease("a").try_acquire().await.unwrap().unwrap();
    assert!(second.token().unwrap() > first_token);
}

#[tokio::test]
async fn a_waiter_gets_what_a_dropped_guard_gives_back() {
    let leases = Leases::memory().connect().await.unwrap();
    let first = leases.lease("a").acquire().await.unwrap();
    let waiting = leases.lease("a").acquire_within(Duration::from_mins(1));
    let (second, ()) = tokio::join!(waiting, async { drop(first) });
    assert!(second.unwrap().is_some());
}

#[test]
fn everything_works_without_an_executor() {
    let leases = block_on(Leases::memory().connect()).unwrap();
    let lease = block_on(leases.lease("a").acquire()).unwrap();
    let first = lease.token().unwrap().number();
    block_on(lease.renew()).unwrap();
    assert_eq!(block_on(lease.release()), Ok(ReleaseOutcome::Released));
    let lease = block_on(leases.lease("a").acquire()).unwrap();
    let here = std::thread::current().id();
    let run = block_on(lease.run(async |lease| {
        assert_eq!(std::thread::current().id(), here);
        lease.token().map(FencingToken::number)
    }));
    assert_eq!(run.unwrap(), first + 1);
    let left = block_on(leases.shutdown(Duration::from_secs(1))).left_to_ttl;
    assert_eq!(left, 0);
}
