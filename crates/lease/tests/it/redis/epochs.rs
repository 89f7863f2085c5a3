//! Tokens rise through everything that makes a server forget. `lease.md` 4.3, `docs/decisions/0007`.

use std::sync::Arc;
use std::time::Duration;

use soldonce_lease::backend::Backend;
use soldonce_lease::backend::{Acquire, AcquireReply, Fencing, Fut};
use soldonce_lease::{Clock, FenceError, FenceKind, FenceSource, FencingToken, SystemClock};
use soldonce_testkit::redis::{Data, Redis, RedisPair};

use super::site::{
    Numbers, Site, anchored, ask, connect, granted, one, refused, release, settings, until,
};

/// A token of a name, given back at once.
pub(super) async fn token_of(
    backend: &soldonce_lease::backend::redis::RedisBackend,
    text: &str,
) -> FencingToken {
    let mine = ask(one(text));
    let token = granted(backend, &mine).await;
    release(backend, &mine, Some(token)).await;
    token
}

#[tokio::test]
pub(super) async fn tokens_rise_through_flush_restart_and_an_evicted_record() {
    let mut site = Site::on(Redis::options().appendonly().start().unwrap()).await;
    let mut last = token_of(&site.backend, "a").await;
    for incident in ["flush", "restart", "restart without data", "evicted"] {
        match incident {
            "flush" => drop(site.redis.cli(&["FLUSHALL"]).unwrap()),
            "restart" => site.redis.restart(Data::Kept).unwrap(),
            "restart without data" => site.redis.restart(Data::Lost).unwrap(),
            _ => {
                let record = site.redis.cli(&["KEYS", "sl:*:f"]).unwrap();
                site.redis.cli(&["DEL", &record]).unwrap();
            }
        }
        let mine = ask(one("a"));
        let token = until("the server is back", async || {
            match site.backend.acquire(&mine).await {
                AcquireReply::Granted { token, .. } => Some(token),
                _ => None,
            }
        })
        .await;
        assert!(
            token.epoch() > last.epoch(),
            "{incident}: {token:?} after {last:?}"
        );
        release(&site.backend, &mine, Some(token)).await;
        last = token_of(&site.backend, "a").await;
        assert_eq!(last.epoch(), token.epoch(), "one epoch for an incident");
    }
}

#[tokio::test]
async fn grants_lost_in_a_failover_are_given_again_with_higher_tokens() {
    let pair = RedisPair::start().unwrap();
    let epochs = Numbers::from(1);
    let old = anchored(&pair.primary, &epochs).await;
    token_of(&old, "warm").await;
    pair.await_sync().unwrap();
    pair.cut().unwrap();
    let mut lost = Vec::new();
    for i in 0..50 {
        let text = format!("n:{i}");
        lost.push((granted(&old, &ask(one(&text))).await, text));
    }
    pair.promote().unwrap();
    let new = anchored(&pair.replica, &epochs).await;
    for (token, text) in lost {
        let again = granted(&new, &ask(one(&text))).await;
        assert!(again > token, "{text}: {again:?} after {token:?}");
    }
}

#[tokio::test]
pub(super) async fn without_a_source_tokens_follow_the_clock_of_the_server() {
    let mut redis = Redis::start().unwrap();
    let backend = connect(&redis, settings()).await;
    let mut before = token_of(&backend, "a").await;
    let next = token_of(&backend, "a").await;
    assert_eq!(
        next.number(),
        before.number() + 1,
        "counted between two losses"
    );
    for loss in ["flush", "restart"] {
        match loss {
            "flush" => drop(redis.cli(&["FLUSHALL"]).unwrap()),
            _ => redis.restart(Data::Lost).unwrap(),
        }
        let backend = connect(&redis, settings()).await;
        // It tells milliseconds, and all this may happen within one.
        let millis = SystemClock.wall_ms();
        let goes_on = async || (SystemClock.wall_ms() > millis).then_some(());
        until("the clock goes on", goes_on).await;
        let after = token_of(&backend, "a").await;
        assert!(after > before, "{loss}: {after:?} after {before:?}");
        before = after;
    }
}

/// The clock of the server before was ahead: its tokens are a floor for this one.
#[tokio::test]
pub(super) async fn without_a_source_a_floor_of_a_later_epoch_lifts_the_token() {
    let redis = Redis::start().unwrap();
    let backend = connect(&redis, settings()).await;
    let first = token_of(&backend, "a").await;
    for counter in [5, u32::MAX] {
        let floor = FencingToken::from_parts(first.epoch() + 3, counter);
        let lifted = Acquire {
            floor,
            ..ask(one("a"))
        };
        let token = granted(&backend, &lifted).await;
        assert!(Some(token) > floor, "{token:?}");
        release(&backend, &lifted, Some(token)).await;
    }
}

#[tokio::test]
async fn without_epochs_a_restart_that_keeps_the_data_keeps_the_count() {
    let mut redis = Redis::options().appendonly().start().unwrap();
    let backend = connect(&redis, settings()).await;
    let before = token_of(&backend, "a").await;
    redis.restart(Data::Kept).unwrap();
    let backend = connect(&redis, settings()).await;
    assert!(token_of(&backend, "a").await > before);
}

#[tokio::test]
pub(super) async fn a_process_without_epochs_does_not_weaken_a_namespace_that_has_them() {
    let site = Site::start().await;
    token_of(&site.backend, "a").await;
    let plain = connect(&site.redis, settings()).await;
    assert!(token_of(&plain, "a").await.epoch() < 10, "it takes part");
    let record = site.redis.cli(&["KEYS", "sl:*:f"]).unwrap();
    let another = format!("{:016}|{}", 1_u64 << 32, "0".repeat(40));
    site.redis.cli(&["SET", &record, &another]).unwrap();
    let reply = plain.acquire(&ask(one("a"))).await;
    assert!(matches!(reply, AcquireReply::Epoch(_)), "{reply:?}");
    assert!(
        token_of(&site.backend, "a").await.epoch() > 1,
        "who has them goes on"
    );
}

#[tokio::test]
pub(super) async fn a_full_counter_asks_for_the_next_epoch() {
    let site = Site::start().await;
    let first = token_of(&site.backend, "a").await;
    let record = site.redis.cli(&["KEYS", "sl:*:f"]).unwrap();
    let nearly = first.number() - u64::from(first.counter()) + u64::from(u32::MAX - 1);
    let nearly = format!("{nearly:016}");
    site.redis
        .cli(&["SETRANGE", &record, "0", &nearly])
        .unwrap();
    let last = token_of(&site.backend, "a").await;
    assert_eq!((last.epoch(), last.counter()), (first.epoch(), u32::MAX));
    let next = token_of(&site.backend, "a").await;
    assert_eq!((next.epoch(), next.counter()), (first.epoch() + 1, 1));
}

/// The script counts up the lower nine digits alone.
#[tokio::test]
pub(super) async fn a_count_goes_on_where_its_lower_digits_run_over() {
    let site = Site::start().await;
    let first = token_of(&site.backend, "a").await;
    let record = site.redis.cli(&["KEYS", "sl:*:f"]).unwrap();
    // The first number of this epoch whose lower digits are all zero.
    let even = first.number().next_multiple_of(1_000_000_000);
    let nearly = format!("{:016}", even - 2);
    site.redis
        .cli(&["SETRANGE", &record, "0", &nearly])
        .unwrap();
    for number in [even - 1, even, even + 1] {
        let token = token_of(&site.backend, "a").await;
        assert_eq!(token.number(), number);
        assert_eq!(token.epoch(), first.epoch(), "one epoch all along");
    }
    // A floor of the same epoch with other upper digits.
    let lifted = Acquire {
        floor: FencingToken::from_parts(first.epoch(), 3_000_000_000),
        ..ask(one("a"))
    };
    let token = granted(&site.backend, &lifted).await;
    assert_eq!(
        (token.epoch(), token.counter()),
        (first.epoch(), 3_000_000_001)
    );
}

#[tokio::test]
async fn ten_processes_race_to_install_and_all_are_served() {
    let redis = Redis::start().unwrap();
    let epochs = Numbers::from(1);
    let mut racing = tokio::task::JoinSet::new();
    for i in 0..10 {
        let backend = anchored(&redis, &epochs).await;
        racing.spawn(async move { token_of(&backend, &format!("n:{i}")).await });
    }
    let mut tokens = racing.join_all().await;
    tokens.sort_unstable();
    assert!(tokens.iter().all(|token| token.epoch() > 0), "{tokens:?}");
}

/// A source that takes as long as a slow disk.
struct Disk(Arc<Numbers>);

impl FenceSource for Disk {
    fn next<'a>(
        &'a self,
        _: FenceKind,
        namespace: &'a str,
        above: u64,
    ) -> Fut<'a, Result<u64, FenceError>> {
        Box::pin(async move {
            let written = SystemClock.boot().plus(Duration::from_millis(250));
            SystemClock.sleep_until(written).await;
            self.0.next(FenceKind::Epoch, namespace, above).await
        })
    }
}

#[tokio::test]
async fn one_incident_costs_a_burst_few_epochs() {
    let redis = Redis::start().unwrap();
    let epochs = Numbers::from(1);
    let mut settings = settings();
    settings.fencing = Fencing::Source(Arc::new(Disk(Arc::clone(&epochs))));
    let backend = Arc::new(connect(&redis, settings).await);
    let mut burst = tokio::task::JoinSet::new();
    for i in 0..200 {
        let backend = Arc::clone(&backend);
        burst.spawn(async move { token_of(&backend, &format!("report:{i}")).await });
    }
    assert_eq!(burst.join_all().await.len(), 200);
    assert!(
        epochs.given() <= 16,
        "{} epochs for 64 shards",
        epochs.given()
    );
}

#[tokio::test]
async fn a_source_that_fails_stops_acquire_and_nothing_else() {
    struct Broken;
    impl FenceSource for Broken {
        fn next<'a>(
            &'a self,
            _: FenceKind,
            _: &'a str,
            _: u64,
        ) -> Fut<'a, Result<u64, FenceError>> {
            let error = FenceError::Unavailable("no disk".to_owned());
            Box::pin(std::future::ready(Err(error)))
        }
    }
    let site = Site::start().await;
    let mine = ask(one("a"));
    let token = granted(&site.backend, &mine).await;
    let mut broken = settings();
    broken.fencing = Fencing::Source(Arc::new(Broken));
    let broken = connect(&site.redis, broken).await;
    let record = site.redis.cli(&["KEYS", "sl:*:f"]).unwrap();
    site.redis.cli(&["DEL", &record]).unwrap();
    let free = ask(one("a"));
    assert_eq!(
        refused(&broken, &free).await,
        ["a"],
        "a conflict needs no epoch"
    );
    let renewed = super::site::renew(&broken, &mine, token, super::site::TTL).await;
    assert!(matches!(
        renewed,
        soldonce_lease::backend::RenewReply::Renewed { .. }
    ));
    release(&broken, &mine, Some(token)).await;
    let reply = broken.acquire(&Acquire { ..free }).await;
    assert!(
        matches!(reply, AcquireReply::Epoch(FenceError::Unavailable(_))),
        "{reply:?}"
    );
}
