//! Wake-ups: hints that a name was released, on few channels, through broken connections.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use soldonce_lease::backend::redis::RedisBackend;
use soldonce_lease::backend::{AcquireReply, Backend, ReleaseReply, RenewReply, WakeStream};
use soldonce_lease::{ManualClock, NoticeKind};
use soldonce_testkit::chaos::{Fault, FaultProxy};
use soldonce_testkit::redis::{Data, Redis};
use tokio::time::timeout;

use super::site::{
    Site, TTL, ask, connect, granted, group, one, refused, release, renew, settings, until,
};
use crate::conformance::HINT_LIMIT;

async fn woken(stream: &mut WakeStream) -> bool {
    timeout(HINT_LIMIT, stream.next()).await.is_ok()
}

#[tokio::test]
async fn a_release_wakes_those_who_wait_for_the_name() {
    let site = Site::start().await;
    let mine = ask(one("a"));
    granted(&site.backend, &mine).await;
    let mut first = site.backend.wake(&mine.names).await;
    let mut second = site.backend.wake(&mine.names).await;
    release(&site.backend, &mine, None).await;
    assert!(woken(&mut first).await && woken(&mut second).await);
}

#[tokio::test]
pub(super) async fn a_release_of_part_of_a_group_wakes_the_group() {
    let site = Site::start().await;
    let part = ask(group(&["A-1"]));
    granted(&site.backend, &part).await;
    let whole = ask(group(&["A-1", "A-2"]));
    refused(&site.backend, &whole).await;
    let mut wakes = site.backend.wake(&whole.names).await;
    release(&site.backend, &part, None).await;
    assert!(woken(&mut wakes).await);
    granted(&site.backend, &whole).await;
    wakes.forget();
    release(&site.backend, &whole, None).await;
    assert!(woken(&mut wakes).await, "a release of several names");
}

#[tokio::test]
async fn works_with_keyspace_events_off() {
    let site = Site::start().await;
    let events = site
        .redis
        .cli(&["CONFIG", "GET", "notify-keyspace-events"])
        .unwrap();
    assert_eq!(events.trim(), "notify-keyspace-events");
    let mine = ask(one("a"));
    granted(&site.backend, &mine).await;
    let mut wakes = site.backend.wake(&mine.names).await;
    release(&site.backend, &mine, None).await;
    assert!(woken(&mut wakes).await);
}

#[tokio::test]
async fn thousand_names_share_one_subscription() {
    let site = Site::start().await;
    let mut waiting = Vec::new();
    for i in 0..1_000 {
        waiting.push(site.backend.wake(&one(&format!("report:{i}"))).await);
    }
    let clients = site.redis.cli(&["CLIENT", "LIST"]).unwrap();
    let subscribed: Vec<u32> = clients
        .lines()
        .filter_map(|client| {
            client
                .split(" ssub=")
                .nth(1)?
                .split(' ')
                .next()?
                .parse()
                .ok()
        })
        .filter(|channels| *channels > 0)
        .collect();
    assert_eq!(subscribed, [16], "{clients}");
    let mine = ask(one("report:7"));
    granted(&site.backend, &mine).await;
    release(&site.backend, &mine, None).await;
    assert!(woken(&mut waiting[7]).await);
}

#[tokio::test]
async fn a_channel_that_nobody_waits_on_is_left() {
    let site = Site::start().await;
    let mine = ask(one("a"));
    drop(site.backend.wake(&mine.names).await);
    let channels = || site.redis.cli(&["PUBSUB", "SHARDCHANNELS"]).unwrap();
    assert!(channels().ends_with(":w"), "{}", channels());
    granted(&site.backend, &mine).await;
    release(&site.backend, &mine, None).await;
    until("the channel is left", async || {
        channels().is_empty().then_some(())
    })
    .await;
    let mut again = site.backend.wake(&mine.names).await;
    granted(&site.backend, &mine).await;
    release(&site.backend, &mine, None).await;
    assert!(woken(&mut again).await);
}

#[tokio::test]
async fn waiters_are_woken_when_the_connection_is_back() {
    let mut site = Site::start().await;
    let mine = ask(one("a"));
    let mut wakes = site.backend.wake(&mine.names).await;
    site.redis.restart(Data::Lost).unwrap();
    assert!(
        woken(&mut wakes).await,
        "a release may have been missed: try at once"
    );
    until("a grant", async || {
        let reply = site.backend.acquire(&mine).await;
        matches!(reply, AcquireReply::Granted { .. }).then_some(())
    })
    .await;
    release(&site.backend, &mine, None).await;
    assert!(woken(&mut wakes).await, "and it listens again");
}

/// As through a router that forgot it: neither end is told, and the connections for calls are well. On a clock that
/// the test moves, no other silence is one.
#[tokio::test]
async fn a_subscription_that_fell_silent_is_replaced() {
    let redis = Redis::start().unwrap();
    let proxy = FaultProxy::to(redis.address()).unwrap();
    let url = format!("redis://{}", proxy.address());
    let (clock, mut settings) = (ManualClock::at(0), settings());
    settings.clock = Arc::new(clock.clone());
    let backend = RedisBackend::connect(&url.into(), settings).await;
    let backend = backend.unwrap();
    let mine = ask(one("a"));
    granted(&backend, &mine).await;
    let before = proxy.connections();
    let mut wakes = backend.wake(&mine.names).await;
    assert_eq!(proxy.connections(), before + 1);
    proxy.set_for(before + 1, Fault::HalfOpen);
    until("another subscription", async || {
        clock.advance(Duration::from_millis(100));
        (proxy.connections() > before + 1).then_some(())
    })
    .await;
    assert!(woken(&mut wakes).await, "a release may have been missed");
    release(&backend, &mine, None).await;
    assert!(woken(&mut wakes).await);
}

#[tokio::test]
async fn replaced_connections_are_told() {
    let redis = Redis::start().unwrap();
    let settings = settings();
    let mut notices = settings.notices.listen();
    let backend = connect(&redis, settings).await;
    let mine = ask(one("a"));
    granted(&backend, &mine).await;
    let wakes = backend.wake(&mine.names).await;
    let mut told = std::iter::from_fn(|| notices.try_next());
    assert_eq!(told.find(|told| told.what == NoticeKind::LinkRebuilt), None);
    for kind in ["normal", "pubsub"] {
        redis.cli(&["CLIENT", "KILL", "TYPE", kind]).unwrap();
    }
    let mut reasons = BTreeSet::new();
    until("both are told", async || {
        // The first one may meet the end of the connection.
        backend.acquire(&ask(one("a"))).await;
        let told = std::iter::from_fn(|| notices.try_next());
        let rebuilt = told.filter(|told| told.what == NoticeKind::LinkRebuilt);
        reasons.extend(rebuilt.map(|told| told.reason.clone()));
        (reasons.len() == 2).then_some(())
    })
    .await;
    let calls = format!("calls to {}", redis.address());
    assert_eq!(reasons, BTreeSet::from([calls, "wake-ups".to_owned()]));
    drop(wakes);
}

#[tokio::test]
async fn renewal_survives_reconnect_and_ends_with_release() {
    let site = Site::start().await;
    let mine = ask(one("a"));
    let token = granted(&site.backend, &mine).await;
    let whole = RenewReply::Renewed { granted: TTL };
    assert_eq!(renew(&site.backend, &mine, token, TTL).await, whole);
    site.redis
        .cli(&["CLIENT", "KILL", "TYPE", "normal"])
        .unwrap();
    until("renewed on a new connection", async || {
        (renew(&site.backend, &mine, token, TTL).await == whole).then_some(())
    })
    .await;
    until("released on a new connection", async || {
        let released = release(&site.backend, &mine, Some(token)).await;
        (released == ReleaseReply::Released).then_some(())
    })
    .await;
    let after = renew(&site.backend, &mine, token, TTL).await;
    assert_eq!(after, RenewReply::Gone);
    assert_eq!(site.redis.cli(&["KEYS", "sl:*:l:a"]).unwrap(), "");
}
