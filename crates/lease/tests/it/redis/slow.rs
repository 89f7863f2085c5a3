//! Servers that are far away: to connect takes longer than a call may.

use std::sync::Arc;
use std::time::Duration;

use soldonce_lease::{AcquireError, Doctor, Leases, ManualClock};
use soldonce_testkit::chaos::{Fault, FaultProxy};
use soldonce_testkit::redis::Redis;

use super::site::timed_out;

/// A call has 200 ms and a connection a second, on a clock that only this test moves.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_outlasts_a_call_serves_the_next_one() {
    // To connect is to wait for the answer to the login.
    let users = "user default on nopass ~* &* +@all\nuser far on >secret ~* &* +@all\n";
    let redis = Redis::options().acl(users).start().unwrap();
    let proxy = FaultProxy::to(redis.address()).unwrap();
    let url = format!("redis://far:secret@{}", proxy.address());
    let clock = ManualClock::at(1_000_000);
    let builder = Leases::redis(url).namespace("app").doctor(Doctor::Off);
    let builder = builder.call_timeout(Duration::from_millis(200));
    let locks = builder
        .clock(Arc::new(clock.clone()))
        .connect()
        .await
        .unwrap();
    let before = proxy.connections();
    proxy.set(Fault::Cut);
    let asked = locks.lease("a").try_acquire();
    // A call is made twice.
    let early = timed_out((&clock, Duration::from_millis(20)), asked).await;
    assert!(
        matches!(early, Err(AcquireError::Unavailable(_))),
        "{early:?}"
    );
    proxy.heal();
    let lease = locks.lease("a").try_acquire().await.unwrap().unwrap();
    assert_eq!(proxy.connections(), before + 1, "made anew");
    lease.release().await.unwrap();
}
