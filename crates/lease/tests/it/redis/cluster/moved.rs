//! A shard is moved from primary to primary, key by key, while many lease its names: no two hold
//! what another holds, tokens rise, what is held stays held, and everything goes on in time.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use soldonce_lease::backend::{Acquire, AcquireReply, Backend, Names, ReleaseReply, RenewReply};
use soldonce_lease::{BootTime, Clock, FencingToken, ManualClock, Owner, SystemClock};
use soldonce_testkit::PATIENCE;
use soldonce_testkit::redis::{FullCoverage, RedisCluster};
use tokio::task::JoinSet;

use super::{BACK_WITHIN, Site, TTL, ask, granted, group, key_of, one, release, renew};
use crate::awake::Awake;
use crate::redis::site::until;

/// The group whose shard is moved.
const GROUP: &str = "hall";

/// Names outside the group that live in the same shard.
fn neighbours(count: usize) -> Vec<String> {
    let tag = |text: &str| key_of(text).split(":l:").next().unwrap().to_owned();
    let names = (0..).map(|i| format!("n:{i}"));
    names
        .filter(|text| tag(text) == tag(GROUP))
        .take(count)
        .collect()
}

/// What is known of all grants, by a clock that stands still with the machine.
struct Ledger {
    clock: ManualClock,
    tracks: Mutex<BTreeMap<String, Track>>,
}

/// One name.
struct Track {
    holder: Option<Owner>,
    last: FencingToken,
    at: BootTime,
    /// Longest time without a grant.
    longest: Duration,
}

impl Ledger {
    fn by(clock: ManualClock) -> Self {
        let tracks = Mutex::default();
        Self { clock, tracks }
    }

    fn tracks(&self) -> MutexGuard<'_, BTreeMap<String, Track>> {
        self.tracks.lock().unwrap()
    }

    fn granted(&self, ask: &Acquire, token: FencingToken) {
        let (now, mut tracks) = (self.clock.boot(), self.tracks());
        for text in texts(&ask.names) {
            let mut longest = Duration::ZERO;
            if let Some(track) = tracks.get(&text) {
                assert_eq!(track.holder, None, "{text} has two holders");
                assert!(token > track.last, "{text}: {token} after {}", track.last);
                longest = track.longest.max(now.since(track.at));
            }
            let track = Track {
                holder: Some(ask.owner),
                last: token,
                at: now,
                longest,
            };
            tracks.insert(text, track);
        }
    }

    /// To be told before the release is sent.
    fn gives_back(&self, ask: &Acquire) {
        let mut tracks = self.tracks();
        for text in texts(&ask.names) {
            tracks.get_mut(&text).unwrap().holder = None;
        }
    }

    /// Whether every name was granted after `instant`.
    fn is_back_since(&self, instant: BootTime) -> bool {
        self.tracks().values().all(|track| track.at > instant)
    }
}

fn texts(names: &Names) -> Vec<String> {
    let prefix = names.group().map(|group| format!("{group}/"));
    let prefix = prefix.unwrap_or_default();
    let texts = names.as_slice().iter();
    texts.map(|name| format!("{prefix}{name}")).collect()
}

/// Everything that goes on during the moves.
struct Load {
    site: Site,
    ledger: Ledger,
    stop: AtomicBool,
}

impl Load {
    /// Leases `names` and gives them back until told to stop.
    async fn turns(self: Arc<Self>, names: Names) {
        while !self.stop.load(Ordering::Relaxed) {
            let mine = ask(names.clone());
            let reply = self.site.backend.acquire(&mine).await;
            if let AcquireReply::Granted { token, .. } = &reply {
                self.ledger.granted(&mine, *token);
                tokio::task::yield_now().await;
                self.ledger.gives_back(&mine);
            }
            if matches!(
                reply,
                AcquireReply::Granted { .. } | AcquireReply::Failed(_)
            ) {
                self.give_back(&mine).await;
            }
            pause(Duration::from_millis(2)).await;
        }
    }

    async fn give_back(&self, ask: &Acquire) {
        let clock = &self.ledger.clock;
        let end = clock.boot().plus(BACK_WITHIN);
        while let ReleaseReply::Failed(error) = release(&self.site.backend, ask, None).await {
            assert!(clock.boot() < end, "not released: {error}");
            pause(Duration::from_millis(10)).await;
        }
    }

    /// Keeps a lease all the while; the longest time without a confirmed renewal.
    async fn keeps(self: Arc<Self>, held: Acquire, token: FencingToken) -> Duration {
        let clock = &self.ledger.clock;
        let (mut at, mut longest) = (clock.boot(), Duration::ZERO);
        while !self.stop.load(Ordering::Relaxed) {
            match renew(&self.site.backend, &held, token, TTL).await {
                RenewReply::Renewed { .. } => {
                    let now = clock.boot();
                    (longest, at) = (longest.max(now.since(at)), now);
                }
                RenewReply::Failed(_) => {}
                other => panic!("a lease was lost by a move: {other:?}"),
            }
            pause(Duration::from_millis(20)).await;
        }
        longest.max(clock.boot().since(at))
    }
}

async fn pause(span: Duration) {
    SystemClock.sleep_until(SystemClock.boot().plus(span)).await;
}

/// Moves the slot of `key` with all it has, as `redis-cli --cluster reshard` does.
fn move_slot(cluster: &RedisCluster, key: &str, (from, to): (usize, usize)) {
    let nodes = cluster.nodes();
    let slot = nodes[to].cli(&["CLUSTER", "KEYSLOT", key]).unwrap();
    let id = |place: usize| nodes[place].cli(&["CLUSTER", "MYID"]).unwrap();
    let (from_id, to_id) = (id(from), id(to));
    let set = |place: usize, how: &str, id: &str| {
        let command = ["CLUSTER", "SETSLOT", &slot, how, id];
        nodes[place].cli(&command).unwrap();
    };
    set(to, "IMPORTING", &from_id);
    set(from, "MIGRATING", &to_id);
    let port = nodes[to].address().port().to_string();
    loop {
        let list = ["CLUSTER", "GETKEYSINSLOT", &slot, "100"];
        let keys = nodes[from].cli(&list).unwrap();
        if keys.is_empty() {
            break;
        }
        for key in keys.lines() {
            // One that has ended meanwhile answers `NOKEY`.
            let migrate = ["MIGRATE", "127.0.0.1", &port, key, "0", "10000"];
            nodes[from].cli(&migrate).unwrap();
        }
    }
    for place in [to, from, 3 - to - from] {
        set(place, "NODE", &to_id);
    }
}

async fn a_shard_is_moved_round_under_load(coverage: FullCoverage) {
    let (site, awake) = (Site::start(coverage).await, Awake::start());
    let (home, bystander) = (
        site.cluster.node_of(&key_of(GROUP)).unwrap(),
        site.name_on(1),
    );
    let names = neighbours(4);
    let kept = ask(one(&names[3]));
    let token = granted(&site.backend, &kept).await;
    let seats = hold_seats(&site, 200).await;
    let waited = names[0].clone();
    let mut wakes = site.backend.wake(&one(&waited)).await;
    let load = Arc::new(Load {
        site,
        ledger: Ledger::by(awake.clock()),
        stop: AtomicBool::new(false),
    });
    let mut tasks = JoinSet::new();
    let alone = names[..3].iter().chain([&bystander]).map(|text| one(text));
    let grouped = [&["A-1", "A-2"], &["A-2", "A-3"]].map(|texts| group(texts));
    for names in alone.chain(grouped) {
        for _ in 0..2 {
            tasks.spawn(Arc::clone(&load).turns(names.clone()));
        }
    }
    let mut keeper = JoinSet::new();
    keeper.spawn(Arc::clone(&load).keeps(kept, token));
    let all = || load.ledger.tracks().len() == 3 + 1 + 3;
    until("all have begun", async || all().then_some(())).await;
    for step in 0..3 {
        let (from, to) = ((home + step) % 3, (home + step + 1) % 3);
        let mut moving = JoinSet::new();
        let moved = Arc::clone(&load);
        moving.spawn_blocking(move || {
            move_slot(&moved.site.cluster, &key_of(GROUP), (from, to));
        });
        moving.join_next().await.unwrap().unwrap();
        let done = awake.clock().boot();
        until("all are granted again", async || {
            load.ledger.is_back_since(done).then_some(())
        })
        .await;
        until("it listens where the shard is", async || {
            (load.site.listeners(to, &waited) > 0).then_some(())
        })
        .await;
        wakes.forget();
        let woken = tokio::time::timeout(PATIENCE, wakes.next()).await;
        assert!(woken.is_ok(), "no word from where the shard is");
    }
    load.stop.store(true, Ordering::Relaxed);
    tasks.join_all().await;
    for (seat, token) in &seats {
        let reply = renew(&load.site.backend, seat, *token, TTL).await;
        let kept = matches!(reply, RenewReply::Renewed { .. });
        assert!(kept, "{:?}: {reply:?}", seat.names);
    }
    let without_renewal = keeper.join_next().await.unwrap().unwrap();
    assert!(without_renewal < BACK_WITHIN, "{without_renewal:?}");
    for (text, track) in &*load.ledger.tracks() {
        assert!(track.longest < BACK_WITHIN, "{text}: {:?}", track.longest);
        assert_eq!(track.holder, None, "{text}");
    }
}

/// Leases that only lie in the shard, so that moving it takes a while.
async fn hold_seats(site: &Site, count: usize) -> Vec<(Acquire, FencingToken)> {
    let mut seats = Vec::new();
    for seat in 0..count {
        let mut ask = ask(group(&[&format!("B-{seat}")]));
        ask.ttl = TTL * 6;
        let token = granted(&site.backend, &ask).await;
        seats.push((ask, token));
    }
    seats
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shard_is_moved_under_load() {
    a_shard_is_moved_round_under_load(FullCoverage::NotRequired).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shard_is_moved_under_load_with_full_coverage() {
    a_shard_is_moved_round_under_load(FullCoverage::Required).await;
}

fn grant_of(text: &str, counter: u32) -> (Acquire, FencingToken) {
    let token = FencingToken::from_parts(1, counter).unwrap();
    (ask(one(text)), token)
}

#[test]
#[should_panic(expected = "a has two holders")]
fn two_holders_are_seen() {
    let ledger = Ledger::by(ManualClock::at(0));
    for counter in [1, 2] {
        let (ask, token) = grant_of("a", counter);
        ledger.granted(&ask, token);
    }
}

#[test]
#[should_panic(expected = "after 0000004294967298")]
fn a_token_that_falls_is_seen() {
    let ledger = Ledger::by(ManualClock::at(0));
    for counter in [2, 1] {
        let (ask, token) = grant_of("a", counter);
        ledger.granted(&ask, token);
        ledger.gives_back(&ask);
    }
}
