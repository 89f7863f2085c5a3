//! Permits of a Redlock, each of which is a vote of its own.

use std::sync::Arc;
use std::time::Duration;

use soldonce_lease::backend::redis::RedlockConfig;
use soldonce_lease::{Doctor, Leases};
use soldonce_testkit::redis::Redis;
use soldonce_testkit::{PATIENCE, until};

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

/// Each node has another holder of each permit, as after a vote that was split: all of them give it back at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn permits_whose_votes_were_split_are_asked_for_again_at_once() {
    const MAKE_OTHERS: &str = "for _, key in ipairs(redis.call('KEYS', 'sl:*:l:*')) do \
        redis.call('SETRANGE', key, 0, string.rep(ARGV[1], 32)) \
        redis.call('SETRANGE', key, 33, string.rep('0', 15) .. ARGV[1]) end \
        return #redis.call('KEYS', 'sl:*:l:*')";
    let servers = Redis::independent(3).unwrap();
    let config = RedlockConfig::new(nodes(&servers)).sit_out(Duration::ZERO);
    let locks = Leases::redlock(config).namespace("app").doctor(Doctor::Off);
    let locks = locks.clock(Arc::new(Slow)).connect().await.unwrap();
    let permit = || locks.permit("api", 2).ttl(TTL).manual_renewal();
    let held = [permit().acquire().await, permit().acquire().await];
    for (number, server) in ["1", "2", "3"].into_iter().zip(&servers) {
        until("the node has both", PATIENCE, || {
            let changed = server.cli(&["EVAL", MAKE_OTHERS, "0", number]);
            changed.is_ok_and(|keys| keys == "2")
        })
        .unwrap();
    }
    let refused = permit().acquire_or_refusal(Duration::ZERO).await;
    let refusal = refused.unwrap().unwrap_err();
    assert_eq!(refusal.conflicts.len(), 2);
    let soon = Duration::from_millis(50);
    assert!(refusal.retry_after <= soon, "{refusal:?}");
    drop(held);
}
