//! Servers that are far away: to connect takes longer than a call may.

use std::time::Duration;

use soldonce_lease::{AcquireError, Clock, Doctor, Leases, SystemClock};
use soldonce_testkit::PATIENCE;
use soldonce_testkit::chaos::{Fault, FaultProxy};
use soldonce_testkit::redis::Redis;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_outlasts_a_call_serves_the_next_one() {
    // To connect is to wait for the answer to the login.
    let users = "user default on nopass ~* &* +@all\nuser far on >secret ~* &* +@all\n";
    let redis = Redis::options().acl(users).start().unwrap();
    let proxy = FaultProxy::to(redis.address()).unwrap();
    let url = format!("redis://far:secret@{}", proxy.address());
    let end = SystemClock.boot().plus(PATIENCE);
    // A connection has a second. A busy machine may exceed it, which shows nothing, so another one is tried.
    while !serves_the_next_one(&url, &proxy).await {
        assert!(SystemClock.boot() < end, "no connection in its second");
    }
}

/// Returns whether the connection that an acquire of two calls began was there in time for the next.
async fn serves_the_next_one(url: &str, proxy: &FaultProxy) -> bool {
    let builder = Leases::redis(url).namespace("app").doctor(Doctor::Off);
    let builder = builder.call_timeout(Duration::from_millis(200));
    let Ok(locks) = builder.connect().await else {
        return false;
    };
    let before = proxy.connections();
    let begun = SystemClock.boot();
    proxy.set(Fault::Cut);
    let early = locks.lease("a").try_acquire().await;
    assert!(
        matches!(early, Err(AcquireError::Unavailable(_))),
        "{early:?}"
    );
    proxy.heal();
    let next = locks.lease("a").try_acquire().await;
    if SystemClock.boot().since(begun) > Duration::from_millis(900) {
        return false;
    }
    let lease = next.unwrap().unwrap();
    assert_eq!(proxy.connections(), before + 1, "made anew");
    lease.release().await.unwrap();
    true
}
