//! The backend on a cluster whose primaries are killed, stopped and relieved of their slots.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use soldonce_lease::backend::redis::{RedisBackend, RedisConfig};
use soldonce_lease::backend::{AcquireReply, Backend, ReleaseReply, RenewReply};
use soldonce_lease::{BootTime, Clock, FencingToken, SystemClock};
use soldonce_testkit::redis::{FullCoverage, RedisCluster};

use super::site::{
    Numbers, TTL, ask, granted, group, name, one, refused, release, renew, settings, until,
};

/// A name is granted again within this time after its primary was lost (lease.md 11).
const BACK_WITHIN: Duration = Duration::from_secs(8);

/// A loss is noticed as a time without grants of at least this length.
const NOTICED: Duration = Duration::from_secs(1);

struct Site {
    cluster: RedisCluster,
    backend: Arc<RedisBackend>,
}

impl Site {
    async fn start(coverage: FullCoverage) -> Self {
        let cluster = RedisCluster::start(coverage).unwrap();
        let seeds: Vec<RedisConfig> = cluster.urls().into_iter().map(RedisConfig::from).collect();
        let mut settings = settings();
        settings.epochs = Some(Numbers::from(1));
        let backend = RedisBackend::connect_cluster(&seeds, settings)
            .await
            .unwrap();
        let backend = Arc::new(backend);
        Self { cluster, backend }
    }

    /// A name whose primary was made the node at `place`.
    fn name_on(&self, place: usize) -> String {
        let mut names = (0..).map(|i| format!("n:{i}"));
        let lives = |text: &String| self.cluster.home(&key_of(text)).unwrap() == place;
        names.find(lives).unwrap()
    }
}

/// The lease key of a name outside groups, as lease.md 6.1 has it.
fn key_of(text: &str) -> String {
    let crc = text.bytes().fold(0_u16, |crc, byte| {
        (0..8).fold(crc ^ (u16::from(byte) << 8), |crc, _| {
            (crc << 1) ^ if crc & 0x8000 == 0 { 0 } else { 0x1021 }
        })
    });
    format!("sl:{{app.{:02x}}}:l:{text}", crc % 64)
}

#[tokio::test]
async fn names_of_all_slots_are_granted_renewed_and_released() {
    let site = Site::start(FullCoverage::NotRequired).await;
    let mut homes = BTreeSet::new();
    for i in 0..40 {
        let text = format!("report:{i}");
        homes.insert(site.cluster.home(&key_of(&text)).unwrap());
        let mine = ask(one(&text));
        let token = granted(&site.backend, &mine).await;
        let held = refused(&site.backend, &ask(one(&text))).await;
        assert_eq!(held, [text.as_str()]);
        let whole = RenewReply::Renewed { granted: TTL };
        assert_eq!(renew(&site.backend, &mine, token, TTL).await, whole);
        assert!(
            site.backend
                .inspect(None, &name(&text))
                .await
                .unwrap()
                .is_some()
        );
        let outcome = release(&site.backend, &mine, Some(token)).await;
        assert_eq!(outcome, ReleaseReply::Released);
    }
    assert_eq!(homes.len(), 3, "all three primaries took part");
}

#[tokio::test]
async fn group_is_one_slot_by_construction() {
    let site = Site::start(FullCoverage::NotRequired).await;
    let names: Vec<String> = (0..64).map(|i| format!("A-{i}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let whole = ask(group(&names));
    let token = granted(&site.backend, &whole).await;
    assert_eq!(refused(&site.backend, &ask(group(&["A-7"]))).await, ["A-7"]);
    assert_eq!(
        release(&site.backend, &whole, Some(token)).await,
        ReleaseReply::Released
    );
}

#[tokio::test]
async fn a_release_wakes_waiters_on_every_primary() {
    let site = Site::start(FullCoverage::NotRequired).await;
    for place in 0..3 {
        let mine = ask(one(&site.name_on(place)));
        granted(&site.backend, &mine).await;
        let mut wakes = site.backend.wake(&mine.names).await;
        release(&site.backend, &mine, None).await;
        tokio::time::timeout(Duration::from_secs(5), wakes.next())
            .await
            .unwrap();
    }
}

/// How a primary is lost.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Loss {
    Killed,
    Hung,
}

/// Loses the primary of one name while it and a name of another primary are leased in turn, and
/// tells how long each was without a grant. Tokens rise all the while.
async fn lose_a_primary(how: Loss, coverage: FullCoverage) -> [Duration; 2] {
    let mut site = Site::start(coverage).await;
    let backend = Arc::clone(&site.backend);
    let mut stricken = Turns::begin(&backend, site.name_on(0)).await;
    let mut bystander = Turns::begin(&backend, site.name_on(1)).await;
    let key = key_of(&stricken.name);
    let place = site.cluster.primary_of(&key).unwrap();
    let node = site.cluster.node(place).unwrap();
    match how {
        Loss::Killed => node.kill().unwrap(),
        Loss::Hung => node.pause().unwrap(),
    }
    let back = AtomicBool::new(false);
    tokio::join!(
        stricken.take_until_back(&back),
        bystander.take_while_away(&back)
    );
    if how == Loss::Hung {
        site.cluster.node(place).unwrap().resume().unwrap();
        // The old primary still believes for a moment that it is one.
        until("it knows its place", async || {
            stricken.take().await;
            (site.cluster.primary_of(&key).unwrap() != place).then_some(())
        })
        .await;
        until("the name is free again", async || {
            stricken.take().await.then_some(())
        })
        .await;
    }
    [stricken.longest, bystander.longest]
}

/// One name, leased and given back in turn.
struct Turns<'a> {
    backend: &'a RedisBackend,
    name: String,
    last: FencingToken,
    at: BootTime,
    /// Longest time without a grant.
    longest: Duration,
}

impl<'a> Turns<'a> {
    async fn begin(backend: &'a RedisBackend, name: String) -> Self {
        let last = take_turn(backend, &name).await.unwrap();
        let (at, longest) = (SystemClock.boot(), Duration::ZERO);
        Self {
            backend,
            name,
            last,
            at,
            longest,
        }
    }

    async fn take(&mut self) -> bool {
        let token = take_turn(self.backend, &self.name).await;
        if let Some(token) = token {
            assert!(
                token > self.last,
                "{}: {token:?} after {:?}",
                self.name,
                self.last
            );
            self.last = token;
            self.longest = self.longest.max(self.away());
            self.at = SystemClock.boot();
        }
        let pause = SystemClock.boot().plus(Duration::from_millis(20));
        SystemClock.sleep_until(pause).await;
        token.is_some()
    }

    fn away(&self) -> Duration {
        SystemClock.boot().since(self.at)
    }

    async fn take_until_back(&mut self, back: &AtomicBool) {
        while !self.take().await || self.longest < NOTICED {
            assert!(
                self.away() < BACK_WITHIN,
                "{}: {:?}",
                self.name,
                self.away()
            );
        }
        back.store(true, Ordering::Relaxed);
    }

    async fn take_while_away(&mut self, back: &AtomicBool) {
        while !back.load(Ordering::Relaxed) {
            self.take().await;
        }
        self.longest = self.longest.max(self.away());
    }
}

/// A grant, given back; nothing when it was not granted.
async fn take_turn(backend: &RedisBackend, text: &str) -> Option<FencingToken> {
    let mine = ask(one(text));
    let reply = backend.acquire(&mine).await;
    release(backend, &mine, None).await;
    match reply {
        AcquireReply::Granted { token, .. } => Some(token),
        _ => None,
    }
}

fn assert_back([stricken, elsewhere]: [Duration; 2]) {
    assert!(stricken < BACK_WITHIN, "{stricken:?} without its primary");
    // Without full coverage the others hardly notice; with it they stop while the vote runs.
    assert!(
        elsewhere < stricken,
        "{elsewhere:?} elsewhere, {stricken:?} without its primary"
    );
}

#[tokio::test]
async fn a_killed_primary_is_replaced() {
    assert_back(lose_a_primary(Loss::Killed, FullCoverage::NotRequired).await);
}

#[tokio::test]
async fn a_hung_primary_is_replaced() {
    assert_back(lose_a_primary(Loss::Hung, FullCoverage::NotRequired).await);
}

#[tokio::test]
async fn a_killed_primary_is_replaced_with_full_coverage() {
    assert_back(lose_a_primary(Loss::Killed, FullCoverage::Required).await);
}

#[tokio::test]
async fn a_hung_primary_is_replaced_with_full_coverage() {
    assert_back(lose_a_primary(Loss::Hung, FullCoverage::Required).await);
}

/// Moves a slot with all its keys from one primary to another, key by key, under load.
#[tokio::test]
async fn a_shard_can_be_moved_under_load() {
    let site = Site::start(FullCoverage::NotRequired).await;
    let text = site.name_on(0);
    let held = ask(one(&text));
    let token = granted(&site.backend, &held).await;
    let (from, to) = (&site.cluster.nodes()[0], &site.cluster.nodes()[1]);
    let slot = from.cli(&["CLUSTER", "KEYSLOT", &key_of(&text)]).unwrap();
    let (from_id, to_id) = (
        from.cli(&["CLUSTER", "MYID"]).unwrap(),
        to.cli(&["CLUSTER", "MYID"]).unwrap(),
    );
    to.cli(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", &from_id])
        .unwrap();
    from.cli(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", &to_id])
        .unwrap();
    let renewed = async || {
        let reply = renew(&site.backend, &held, token, TTL).await;
        reply == RenewReply::Renewed { granted: TTL }
    };
    assert!(renewed().await, "where it was");
    let keys = from
        .cli(&["CLUSTER", "GETKEYSINSLOT", &slot, "100"])
        .unwrap();
    let port = to.address().port().to_string();
    for key in keys.lines() {
        from.cli(&["MIGRATE", "127.0.0.1", &port, key, "0", "1000"])
            .unwrap();
    }
    assert!(renewed().await, "where it is going, by ASK");
    for node in site.cluster.nodes().iter().take(3) {
        node.cli(&["CLUSTER", "SETSLOT", &slot, "NODE", &to_id])
            .unwrap();
    }
    assert!(renewed().await, "where it is, by MOVED");
    assert_eq!(
        release(&site.backend, &held, Some(token)).await,
        ReleaseReply::Released
    );
    let after = until("granted there", async || {
        take_turn(&site.backend, &text).await
    })
    .await;
    assert!(
        after.epoch() > token.epoch(),
        "another server counts: {after:?} after {token:?}"
    );
}
