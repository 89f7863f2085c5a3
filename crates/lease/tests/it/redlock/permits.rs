//! Permits of a Redlock, each of which is a vote of its own.

use std::sync::Arc;
use std::time::Duration;

use soldonce_lease::backend::redis::RedlockConfig;
use soldonce_lease::{Doctor, Leases};
use soldonce_testkit::redis::Redis;

use super::{Slow, nodes};

/// Votes then have the longest time.
const TTL: Duration = Duration::from_secs(20);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_free_permit_is_found_beside_a_stopped_node() {
    let mut servers = Redis::independent(3).unwrap();
    let config = RedlockConfig::new(nodes(&servers)).sit_out(Duration::ZERO);
    let locks = Leases::redlock(config).namespace("app").doctor(Doctor::Off);
    let locks = locks.clock(Arc::new(Slow)).connect().await.unwrap();
    let mut held = Vec::new();
    for _ in 0..3 {
        let permit = locks.permit("api", 4).ttl(TTL).try_acquire().await;
        held.push(permit.unwrap().unwrap());
    }
    servers[2].pause().unwrap();
    let last = locks.permit("api", 4).ttl(TTL).try_acquire().await;
    held.push(last.unwrap().expect("a free permit"));
    let none = locks.permit("api", 4).ttl(TTL).try_acquire().await;
    assert!(none.unwrap().is_none());
}
