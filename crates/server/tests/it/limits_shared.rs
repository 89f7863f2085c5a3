//! Two servers with one Redis grant one quota; without it requests go on, and sharing comes back by
//! itself.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use axum::http::StatusCode;
use soldonce_clock::{Clock, ManualClock, SystemClock};
use soldonce_engine::OptionalRedis;
use soldonce_engine::limits::REDIS_PAUSE_MS;
use soldonce_engine::rate::{Quota, RedisRates};
use soldonce_lease::Namespace;
use soldonce_server::{HeldLimits, Peer, RateLimits};
use soldonce_testkit::redis::{Data, Redis};

use serde_json::json;

use crate::harness::{Answer, Held, TestApp};

/// How long a test waits for what takes milliseconds on an idle machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// A server that shares its reads, 10 in a day, through this Redis. `clock` paces its pauses.
async fn server(redis: &Redis, clock: &ManualClock) -> TestApp {
    let namespace = Namespace::new("test").unwrap();
    let shared = OptionalRedis::at(&redis.url(), &namespace, Arc::new(clock.clone())).unwrap();
    let rates = RateLimits {
        reads: Quota::new(10, 86_400).ok(),
        held: HeldLimits {
            units: Some(10),
            ..HeldLimits::default()
        },
        shared: Some(Arc::new(RedisRates::new(shared.wait(PATIENCE)))),
        ..RateLimits::off()
    };
    TestApp::open_with(|settings| settings.rates = rates).await
}

async fn read(app: &TestApp) -> Answer {
    app.get("/v1/events").send().await
}

/// How many requests were not counted with the others, this one too, which comes from an address that
/// has read nothing before.
async fn unshared(app: &TestApp) -> u64 {
    static READ: AtomicU32 = AtomicU32::new(1);
    let address = Ipv4Addr::from_bits(0xc633_6400 + READ.fetch_add(1, Ordering::Relaxed));
    let peer = Peer((address, 4000).into());
    let text = app.get("/metrics").with(peer).send().await.text();
    let name = "soldonce_rate_limits_unshared_total ";
    let count = text.lines().find_map(|line| line.strip_prefix(name));
    count.unwrap().parse().unwrap()
}

#[tokio::test]
async fn two_servers_grant_one_quota() {
    let (redis, clock) = (Redis::start().unwrap(), ManualClock::at(0));
    let servers = [server(&redis, &clock).await, server(&redis, &clock).await];
    for number in 0..10 {
        let answer = read(&servers[number % 2]).await.expect(StatusCode::OK);
        let left = format!("\"reads\";r={};", 9 - number);
        assert!(answer.header("ratelimit").starts_with(&left), "{left}");
    }
    for server in &servers {
        let calls = || redis.info("total_commands_processed").unwrap();
        read(server).await.refused(429, "rate_limited");
        let before: u64 = calls().unwrap().parse().unwrap();
        for _ in 0..100 {
            read(server).await.refused(429, "rate_limited");
        }
        let after: u64 = calls().unwrap().parse().unwrap();
        assert_eq!(after - before, 1, "but for the question itself, none");
        assert_eq!(unshared(server).await, 0);
    }
}

#[tokio::test]
async fn while_redis_is_dead_requests_go_on_and_then_are_shared_again() {
    let (mut redis, clock) = (Redis::start().unwrap(), ManualClock::at(0));
    let app = server(&redis, &clock).await;
    read(&app).await.expect(StatusCode::OK);
    redis.kill().unwrap();
    for _ in 0..5 {
        read(&app).await.expect(StatusCode::OK);
    }
    assert_eq!(unshared(&app).await, 6);
    redis.restart(Data::Lost).unwrap();
    let end = SystemClock.boot().plus(PATIENCE);
    loop {
        clock.advance(Duration::from_millis(REDIS_PAUSE_MS));
        let before = unshared(&app).await;
        // A day is over for this server's own count: what is asked next is asked of Redis too.
        app.clock.advance(Duration::from_hours(24));
        read(&app).await.expect(StatusCode::OK);
        if unshared(&app).await == before {
            break;
        }
        assert!(SystemClock.boot() < end, "it did not come back");
    }
}

#[tokio::test]
async fn what_an_address_holds_is_one_sum_over_all_servers() {
    let (redis, clock) = (Redis::start().unwrap(), ManualClock::at(0));
    let one = server(&redis, &clock).await.with_hall(3).await;
    let other = server(&redis, &clock).await.with_hall(3).await;
    let hold = async |app: &TestApp, by: &str, quantity: u32| {
        let body = json!({"best": {"quantity": quantity}});
        let ask = app.post("/v1/events/hall/holds").by(by).json(&body);
        ask.send().await
    };
    let (ann, ben) = (one.shopper().await, other.shopper().await);
    let held = hold(&one, &ann, 6).await.expect(StatusCode::CREATED);
    let answer = hold(&other, &ben, 4).await.expect(StatusCode::CREATED);
    assert!(answer.header("ratelimit").starts_with("\"held\";r=0;"));
    hold(&other, &ben, 1).await.refused(429, "rate_limited");
    hold(&one, &ann, 1).await.refused(429, "rate_limited");
    let held = Held::of(&held);
    let released = one.delete(&held.path()).by(&ann).send().await;
    released.expect(StatusCode::OK);
    hold(&other, &ben, 6).await.expect(StatusCode::CREATED);
    hold(&one, &ann, 1).await.refused(429, "rate_limited");
}
