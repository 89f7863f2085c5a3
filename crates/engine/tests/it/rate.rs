//! Rates on Redis, on private servers that are stopped, killed and filled up: servers share one
//! quota, no failure stops a client, and sharing comes back by itself.

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use soldonce_clock::{Clock, ManualClock, SystemClock};
use soldonce_core::{EventNo, Span, UnitNo};
use soldonce_engine::OptionalRedis;
use soldonce_engine::limits::{REDIS_FAILURES_MAX, REDIS_PAUSE_MS};
use soldonce_engine::rate::{OwnHeld, Quota, RateKey, RedisRates, SharedRates, Taken, Unshared};
use soldonce_engine::shield::{Contents, Kind, Note, Part, RedisShield, Shield, Tried, Who, Zone};
use soldonce_lease::Namespace;
use soldonce_testkit::redis::{Data, FullCoverage, Redis, RedisCluster};
use tokio::runtime::Runtime;

/// A quota that gains nothing back while a test runs.
fn slow(requests: u32) -> Quota {
    Quota::new(requests, 86_400).unwrap()
}

/// How long a test waits for what takes milliseconds on an idle machine.
const PATIENCE: Duration = Duration::from_secs(20);

fn key(id: u128) -> RateKey {
    RateKey { kind: "test", id }
}

fn redis_by(url: &str, clock: impl Clock) -> OptionalRedis {
    let namespace = Namespace::new("test").unwrap();
    OptionalRedis::at(url, &namespace, Arc::new(clock)).unwrap()
}

/// Rates that wait as long as a busy machine needs, so that nothing is counted without an answer.
fn rates(url: &str) -> RedisRates {
    RedisRates::new(redis_by(url, SystemClock).wait(PATIENCE))
}

async fn answered(rates: &RedisRates, key: RateKey, quota: Quota) -> Taken {
    SharedRates::take(rates, key, quota).await.unwrap()
}

/// Asks, over pauses, until there is an answer.
async fn until_back(rates: &RedisRates, clock: &ManualClock) {
    let end = SystemClock.boot().plus(PATIENCE);
    while SharedRates::take(rates, key(1), slow(100)).await.is_err() {
        assert!(SystemClock.boot() < end, "it did not come back");
        clock.advance(Duration::from_millis(REDIS_PAUSE_MS));
    }
}

fn has_passed(taken: Taken) -> bool {
    matches!(taken, Taken::Passed { .. })
}

#[tokio::test]
async fn two_servers_share_one_quota() {
    let redis = Redis::start().unwrap();
    let servers = [rates(&redis.url()), rates(&redis.url())];
    for (asked, left) in (0..10).rev().enumerate() {
        let taken = answered(&servers[asked % 2], key(7), slow(10)).await;
        let Taken::Passed { left: told, .. } = taken else {
            panic!("{asked}: {taken:?}");
        };
        assert_eq!(told, left);
    }
    for server in &servers {
        let taken = answered(server, key(7), slow(10)).await;
        let Taken::Refused { retry_in } = taken else {
            panic!("{taken:?}");
        };
        assert!(retry_in <= Duration::from_mins(144) && retry_in > Duration::from_mins(130));
        assert!(has_passed(answered(server, key(8), slow(10)).await));
    }
    let kept = redis.cli(&["KEYS", "*"]).unwrap();
    assert_eq!(kept.lines().count(), 2, "{kept}");
    for name in kept.lines() {
        assert!(name.starts_with("sr:{test."), "{name}");
        let ends_in_ms: i64 = redis.cli(&["PTTL", name]).unwrap().parse().unwrap();
        assert!((1..=86_400_000).contains(&ends_in_ms), "{ends_in_ms}");
    }
}

#[test]
fn the_script_takes_as_the_arithmetic_does() {
    let redis = Redis::start().unwrap();
    let runtime = Runtime::new().unwrap();
    let rates = rates(&redis.url());
    let ids = std::cell::Cell::new(0);
    let mut runner = TestRunner::new(Config::with_cases(40));
    let quotas = (1_u32..12, 1_000_u32..86_400, 1_usize..16);
    runner
        .run(&quotas, |(requests, window_s, asks)| {
            let quota = Quota::new(requests, window_s).unwrap();
            ids.set(ids.get() + 1);
            let mut paid = 0;
            for _ in 0..asks {
                // The clock of the script is not ours to set, so ours stands still: windows are long
                // during a test.
                let (expected, then) = quota.take(paid, 0);
                paid = then;
                let taken = runtime.block_on(answered(&rates, key(ids.get()), quota));
                match (taken, expected) {
                    (Taken::Passed { left: a, .. }, Taken::Passed { left: b, .. }) => {
                        prop_assert_eq!(a, b);
                    }
                    (Taken::Refused { retry_in: a }, Taken::Refused { retry_in: b }) => {
                        prop_assert!(a <= b && b < a + PATIENCE, "{a:?}, but {b:?}");
                    }
                    (a, b) => prop_assert!(false, "{a:?}, but {b:?}"),
                }
            }
            Ok(())
        })
        .unwrap();
}

#[tokio::test]
async fn a_quota_comes_back_on_the_clock_of_redis() {
    let redis = Redis::start().unwrap();
    let rates = rates(&redis.url());
    let quota = Quota::new(2, 1).unwrap();
    let mut passed = 0;
    let end = SystemClock.boot().plus(PATIENCE);
    while passed < 4 && SystemClock.boot() < end {
        passed += u32::from(has_passed(answered(&rates, key(1), quota).await));
    }
    assert_eq!(passed, 4, "two at once, then one each half second");
}

#[tokio::test]
async fn a_clock_that_was_set_back_costs_a_window_at_most() {
    let redis = Redis::start().unwrap();
    let rates = rates(&redis.url());
    assert!(has_passed(answered(&rates, key(1), slow(3)).await));
    let name = redis.cli(&["KEYS", "*"]).unwrap();
    let far = "9007199254740991";
    redis.cli(&["SET", name.trim(), far]).unwrap();
    let taken = answered(&rates, key(1), slow(3)).await;
    assert_eq!(
        taken,
        Taken::Refused {
            retry_in: Duration::from_hours(8)
        }
    );
    redis.cli(&["SET", name.trim(), "no number"]).unwrap();
    assert!(has_passed(answered(&rates, key(1), slow(3)).await));
}

#[tokio::test]
async fn a_dead_redis_stops_no_client_and_is_asked_again_after_a_second() {
    let mut redis = Redis::start().unwrap();
    let clock = ManualClock::at(0);
    let rates = RedisRates::new(redis_by(&redis.url(), clock.clone()).wait(PATIENCE));
    let take = async || SharedRates::take(&rates, key(1), slow(100)).await;
    assert!(take().await.is_ok());
    redis.kill().unwrap();
    for _ in 0..REDIS_FAILURES_MAX {
        assert_eq!(take().await, Err(Unshared::NoAnswer));
    }
    for _ in 0..10 {
        assert_eq!(take().await, Err(Unshared::NotAsked));
    }
    clock.advance(Duration::from_millis(REDIS_PAUSE_MS));
    assert_eq!(take().await, Err(Unshared::NoAnswer), "one asks");
    assert_eq!(take().await, Err(Unshared::NotAsked), "and no other");
    redis.restart(Data::Lost).unwrap();
    until_back(&rates, &clock).await;
    assert!(take().await.is_ok() && take().await.is_ok());
}

#[tokio::test]
async fn a_stopped_redis_is_waited_for_no_longer_than_it_says() {
    let mut redis = Redis::start().unwrap();
    let clock = ManualClock::at(0);
    let rates = RedisRates::new(redis_by(&redis.url(), clock.clone()));
    let take = async || SharedRates::take(&rates, key(1), slow(100)).await;
    until_back(&rates, &clock).await;
    redis.pause().unwrap();
    let began = SystemClock.boot();
    for _ in 0..REDIS_FAILURES_MAX {
        assert_eq!(take().await, Err(Unshared::NoAnswer));
    }
    for _ in 0..1_000 {
        assert_eq!(take().await, Err(Unshared::NotAsked));
    }
    let took = SystemClock.boot().since(began);
    assert!(
        took < Duration::from_secs(10),
        "{took:?} for three times 50 ms"
    );
    redis.resume().unwrap();
    until_back(&rates, &clock).await;
}

#[tokio::test]
async fn a_redis_that_is_full_or_holds_something_else_stops_no_client() {
    let redis = Redis::options().maxmemory("1b").start().unwrap();
    let full = rates(&redis.url());
    let taken = SharedRates::take(&full, key(1), slow(1)).await;
    assert_eq!(taken, Err(Unshared::NoAnswer));
    let redis = Redis::start().unwrap();
    let odd = rates(&redis.url());
    assert!(has_passed(answered(&odd, key(1), slow(1)).await));
    let name = redis.cli(&["KEYS", "*"]).unwrap();
    redis.cli(&["DEL", name.trim()]).unwrap();
    redis.cli(&["LPUSH", name.trim(), "x"]).unwrap();
    let taken = SharedRates::take(&odd, key(1), slow(1)).await;
    assert_eq!(taken, Err(Unshared::NoAnswer));
}

/// The user of the manual, for the rates and the shield of a server.
#[tokio::test]
async fn a_user_with_only_the_listed_commands_serves_all_that_a_server_asks() {
    let manual = include_str!("../../../../docs/operations.md");
    let user = manual
        .lines()
        .find(|line| line.starts_with("user soldonce on "));
    let user = user.unwrap().replace("PASSWORD", "word");
    let users = format!("user default off\n{user}\n");
    let redis = Redis::options().acl(&users).start().unwrap();
    let url = redis.url().replace("redis://", "redis://soldonce:word@");
    let (namespace, clock) = (Namespace::new("soldonce").unwrap(), Arc::new(SystemClock));
    let at = || {
        let redis = OptionalRedis::at(&url, &namespace, clock.clone()).unwrap();
        redis.wait(PATIENCE)
    };
    let rates = RedisRates::new(at());
    assert!(has_passed(answered(&rates, key(1), slow(10)).await));
    let own = OwnHeld {
        address: 1,
        event: EventNo(0),
        units: 2,
        checkouts: 0,
        ends_in: Span::from_ms(60_000),
    };
    let told = SharedRates::tell_held(&rates, own).await;
    assert!(told.is_ok(), "{told:?}");
    let shield = RedisShield::new(at());
    let zone = Zone {
        ledger: 7,
        event: EventNo(0),
        no: 0,
    };
    let part = Part {
        zone,
        contents: Contents::Seats(vec![UnitNo(1)]),
    };
    let tried = shield.try_units(Who(1), std::slice::from_ref(&part)).await;
    assert_eq!(tried, Tried::Passed);
    assert!(shield.drop_claims(Who(1), &part).await);
    let note = Note {
        number: 1,
        version: 1,
        kind: Kind::Sold,
        left: Span::from_ms(60_000),
        who: Who(1),
    };
    assert!(shield.note(zone, &[note]).await);
    let other = redis.ask_as("soldonce", "word", &["FLUSHALL"]).unwrap();
    assert!(
        other
            .text()
            .is_err_and(|error| error.to_string().contains("NOPERM"))
    );
}

#[tokio::test]
async fn the_nodes_of_a_cluster_share_the_callers() {
    let cluster = RedisCluster::start(FullCoverage::NotRequired).unwrap();
    let addresses: Vec<_> = cluster
        .nodes()
        .iter()
        .map(|node| node.address().to_string())
        .collect();
    let url = format!("redis+cluster://{}", addresses.join(","));
    let servers = [rates(&url), rates(&url)];
    for id in 0..60 {
        assert!(has_passed(answered(&servers[0], key(id), slow(1)).await));
        assert!(!has_passed(answered(&servers[1], key(id), slow(1)).await));
    }
}
