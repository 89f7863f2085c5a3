//! Sales on two servers, one PostgreSQL and one Redis, to which everything happens while the seats
//! go: each seat has one winner, everybody else an ordinary refusal, and the shield comes back.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use soldonce_clock::{Clock, SeededEntropy, SystemClock};
use soldonce_core::{Auditor, EventId, HoldId, Rejection};
use soldonce_engine::ledger::postgres::{Durability, PostgresLedger, PostgresOptions, migrate};
use soldonce_engine::ledger::{Fingerprint, Observer, RequestKey, ScopedKey};
use soldonce_engine::limits::REDIS_WAIT_MS;
use soldonce_engine::live::Live;
use soldonce_engine::metrics::Metrics;
use soldonce_engine::shield::{RedisShield, Shield};
use soldonce_engine::{
    Call, Engine, EngineError, OptionalRedis, Reply, World, run_shield_messages,
};
use soldonce_lease::Namespace;
use soldonce_testkit::chaos::{Fault, FaultProxy};
use soldonce_testkit::postgres::Postgres;
use soldonce_testkit::redis::{Data, FullCoverage, Redis, RedisCluster};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::engine::{call, hold, refusals};
use super::redis::{PATIENCE, cluster_url};
use crate::ledgers::new_event;

/// The last seat is not for sale: it is for those who look whether the shield is back.
const ROWS: [char; 11] = ['A', 'B', 'C', 'D', 'E', 'F', 'G', 'H', 'I', 'J', 'K'];
const GRID: &str = r#"{"format":"grid","rows":11,"seats_per_row":11,"category":"Standard"}"#;
const SEATS: usize = 120;
const SPARE: &str = "K-11";
const BUYERS: usize = 24;
/// So many are not sold before every fault has come.
const LAST: usize = 20;

fn seat(number: usize) -> String {
    format!("{}-{}", ROWS[number / 11], number % 11 + 1)
}

/// Two servers on one database, each behind the shield at its address.
struct Hall {
    _database: Postgres,
    servers: Vec<Engine>,
    /// The seats that were sold, each as often as it was.
    sold: Mutex<Vec<usize>>,
    refused: AtomicUsize,
    /// Each sale needs one.
    gate: Semaphore,
    _tasks: JoinSet<()>,
}

impl Hall {
    async fn open(url: &str) -> Arc<Self> {
        Self::split([url, url]).await
    }

    async fn split(urls: [&str; 2]) -> Arc<Self> {
        Self::with(urls, Duration::from_millis(REDIS_WAIT_MS)).await
    }

    /// Two servers that wait so long for an answer of Redis.
    async fn with(urls: [&str; 2], wait: Duration) -> Arc<Self> {
        let database = Postgres::start().unwrap();
        let options = PostgresOptions {
            durability: Durability::Waived,
            ..PostgresOptions::new(database.url())
        };
        migrate(&options).await.unwrap();
        let (mut servers, mut tasks) = (Vec::new(), JoinSet::new());
        for (seed, url) in (1..).zip(urls) {
            let engine = server(&options, (url, wait), seed).await;
            let end = CancellationToken::new();
            tasks.spawn(run_shield_messages(engine.clone(), end));
            servers.push(engine);
        }
        let new = new_event("hamlet-1", GRID, |_| {});
        let chart = Arc::from(GRID.as_bytes());
        servers[0]
            .create_event(&call(None), new, chart)
            .await
            .unwrap();
        let hall = Self {
            _database: database,
            servers,
            sold: Mutex::default(),
            refused: AtomicUsize::new(0),
            gate: Semaphore::new(SEATS - LAST),
            _tasks: tasks,
        };
        hall.until("the other server knows the event", |hall| {
            hall.servers[1].known_event(&hamlet()).is_some()
        })
        .await;
        Arc::new(hall)
    }

    async fn until(&self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let end = SystemClock.boot().plus(PATIENCE);
        while !is_so(self) {
            assert!(SystemClock.boot() < end, "not in time: {what}");
            SystemClock
                .sleep_until(SystemClock.boot().plus(Duration::from_millis(1)))
                .await;
        }
    }

    fn sold(&self) -> usize {
        self.sold.lock().unwrap().len()
    }

    /// Waits until so many seats are sold, and others are not.
    async fn in_mid_sale(&self, seats: usize) {
        assert!(seats <= SEATS - LAST);
        self.until("the sale goes on", |hall| hall.sold() >= seats)
            .await;
    }

    /// One buyer: goes round the hall until everything is sold, and buys what is left.
    async fn buy(self: Arc<Self>, buyer: usize) {
        let (engine, who) = (&self.servers[buyer % 2], format!("buyer-{buyer}"));
        let end = SystemClock.boot().plus(2 * PATIENCE);
        // Buyers meet at every seat, from different sides.
        for step in 0.. {
            let number = (step * [7, 11, 13][buyer % 3] + buyer / 6) % SEATS;
            if self.sold() >= SEATS {
                return;
            }
            assert!(SystemClock.boot() < end, "{} seats were sold", self.sold());
            let held = match hold(engine, &call(None), &who, &[&seat(number)]).await {
                Ok(reply) => reply,
                Err(EngineError::Rejected(Rejection::UnitUnavailable(why))) => {
                    assert_eq!(why.conflicts.len(), 1);
                    self.refused.fetch_add(1, Ordering::Relaxed);
                    tokio::task::yield_now().await;
                    continue;
                }
                other => panic!("{other:?}"),
            };
            let hold_id = HoldId::from_bytes(held.stored.subject);
            let key = RequestKey {
                scoped: ScopedKey(held.stored.subject),
                fingerprint: Fingerprint([1; 16]),
            };
            self.gate.acquire().await.unwrap().forget();
            let bought = engine.confirm(&call(Some(key)), hold_id, None, None).await;
            bought.unwrap_or_else(|error| panic!("{error:?}"));
            self.sold.lock().unwrap().push(number);
        }
    }

    fn begin(self: &Arc<Self>) -> JoinSet<()> {
        (0..BUYERS)
            .map(|buyer| Arc::clone(self).buy(buyer))
            .collect()
    }

    /// Waits for the end of the sale and judges it; then sees that the shield is at work.
    async fn end(&self, buyers: JoinSet<()>) {
        self.judge(buyers).await;
        self.refuses_again().await;
    }

    /// Lets the last seats be sold, and waits for the end.
    async fn sell_out(&self, buyers: JoinSet<()>) {
        self.gate.add_permits(LAST);
        buyers.join_all().await;
    }

    /// Waits for the end of the sale and judges it.
    async fn judge(&self, buyers: JoinSet<()>) {
        self.sell_out(buyers).await;
        let mut sold = self.sold.lock().unwrap().clone();
        sold.sort_unstable();
        assert_eq!(sold, (0..SEATS).collect::<Vec<_>>(), "each seat once");
        assert!(
            self.refused.load(Ordering::Relaxed) > 0,
            "no two buyers wanted one seat"
        );
        let history = self.servers[1].ledger().history(hamlet()).await.unwrap();
        let found = Auditor::check(&history);
        assert!(found.is_empty(), "{found:#?}");
    }

    /// Two want the spare seat at the same time on two servers, until the shield between them turns
    /// one away.
    async fn refuses_again(&self) {
        let counted = || self.servers.iter().map(refusals).sum::<u64>();
        let (before, end) = (counted(), SystemClock.boot().plus(PATIENCE));
        while counted() == before {
            assert!(SystemClock.boot() < end, "the shield does not come back");
            let caller = call(None);
            let (ann, bob) = tokio::join!(
                hold(&self.servers[0], &caller, "ann", &[SPARE]),
                hold(&self.servers[1], &caller, "bob", &[SPARE]),
            );
            for (server, held) in self.servers.iter().zip([ann, bob]) {
                give_back(server, &caller, held).await;
            }
        }
    }

    /// Which of these primaries keeps what the shield knows of this hall, and its key there.
    async fn zone(&self, primaries: &[&Redis]) -> (usize, String) {
        let key = |redis: &&Redis| redis.cli(&["KEYS", "sd:*"]).unwrap().trim().to_owned();
        let end = SystemClock.boot().plus(PATIENCE);
        loop {
            assert!(SystemClock.boot() < end, "the shield is told nothing");
            let caller = call(None);
            let held = hold(&self.servers[0], &caller, "ann", &[SPARE]).await;
            let keys = primaries.iter().map(key).enumerate();
            let found = keys.into_iter().find(|(_, key)| !key.is_empty());
            give_back(&self.servers[0], &caller, held).await;
            if let Some(found) = found {
                return found;
            }
        }
    }

    /// The primary of a cluster that keeps it.
    async fn place_of_zone(&self, cluster: &RedisCluster) -> usize {
        let primaries: Vec<&Redis> = cluster.nodes().iter().take(3).collect();
        self.zone(&primaries).await.0
    }

    /// Wants the spare seat until a request finds no shield: the sale alone may be over before one
    /// meets the fault.
    async fn misses(&self) {
        let misses = |server: &Engine| server.metrics().shield_misses.get();
        let end = SystemClock.boot().plus(PATIENCE);
        while self.servers.iter().map(misses).sum::<u64>() == 0 {
            assert!(SystemClock.boot() < end, "the shield is not missed");
            let caller = call(None);
            for server in &self.servers {
                let held = hold(server, &caller, "ann", &[SPARE]).await;
                give_back(server, &caller, held).await;
            }
        }
    }
}

/// Ends a hold, if there is one.
async fn give_back(server: &Engine, caller: &Call, held: Result<Reply, EngineError>) {
    if let Ok(reply) = held {
        let hold_id = HoldId::from_bytes(reply.stored.subject);
        server.release(caller, hold_id, None).await.unwrap();
    }
}

fn hamlet() -> EventId {
    EventId::parse("hamlet-1").unwrap()
}

async fn server(options: &PostgresOptions, (redis, wait): (&str, Duration), seed: u64) -> Engine {
    let metrics = Arc::new(Metrics::default());
    let namespace = Namespace::new("test").unwrap();
    let redis = OptionalRedis::at(redis, &namespace, Arc::new(SystemClock)).unwrap();
    let shield = RedisShield::new(redis.wait(wait));
    let live = Live::new(Arc::clone(&metrics)).behind(Arc::new(shield) as Arc<dyn Shield>);
    let live = Arc::new(live);
    let entropy = SeededEntropy::new(seed);
    let observer = Arc::clone(&live) as Arc<dyn Observer>;
    let ledger = PostgresLedger::open(options, Arc::new(SystemClock), &entropy, observer);
    let ledger = Arc::new(ledger.await.unwrap());
    let world = World {
        clock: Arc::new(SystemClock),
        entropy: Arc::new(entropy),
    };
    Engine::new(ledger, live, metrics, world).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn losers_are_turned_away_by_the_shield() {
    let redis = Redis::start().unwrap();
    // A note without an answer is dropped: here Redis has time for each, however busy the machine is.
    let url = redis.url();
    let hall = Hall::with([&url, &url], PATIENCE).await;
    hall.end(hall.begin()).await;
    let zones = redis.cli(&["KEYS", "*"]).unwrap();
    assert_eq!(zones.lines().count(), 1, "{zones}");
    let noted = |_: &Hall| {
        let entries = redis.cli(&["HVALS", zones.trim()]).unwrap();
        entries.lines().filter(|it| it.starts_with("s|")).count() == SEATS
    };
    hall.until("every sale is noted", noted).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_is_flushed_during_a_sale() {
    let redis = Redis::start().unwrap();
    let hall = Hall::open(&redis.url()).await;
    let buyers = hall.begin();
    for seats in [5, 20, 40, 60, 80] {
        hall.in_mid_sale(seats).await;
        redis.cli(&["FLUSHALL"]).unwrap();
    }
    hall.end(buyers).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_is_killed_and_comes_back_empty_during_a_sale() {
    let mut redis = Redis::start().unwrap();
    let hall = Hall::open(&redis.url()).await;
    let buyers = hall.begin();
    hall.in_mid_sale(20).await;
    redis.kill().unwrap();
    hall.in_mid_sale(60).await;
    hall.misses().await;
    redis.restart(Data::Lost).unwrap();
    hall.end(buyers).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_is_stopped_during_a_sale_and_what_was_sent_to_it_runs_late() {
    let mut redis = Redis::start().unwrap();
    let hall = Hall::open(&redis.url()).await;
    let buyers = hall.begin();
    hall.in_mid_sale(20).await;
    redis.pause().unwrap();
    hall.in_mid_sale(60).await;
    hall.misses().await;
    redis.resume().unwrap();
    hall.end(buyers).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_is_slow_cut_off_and_loses_answers_during_a_sale() {
    let redis = Redis::start().unwrap();
    let proxy = FaultProxy::to(redis.address()).unwrap();
    let hall = Hall::open(&proxy.url(&redis.url(), redis.address())).await;
    let buyers = hall.begin();
    hall.in_mid_sale(10).await;
    proxy.set(Fault::Delay(Duration::from_millis(200)));
    hall.in_mid_sale(40).await;
    proxy.set(Fault::Cut);
    hall.in_mid_sale(60).await;
    hall.misses().await;
    proxy.heal();
    for _ in 0..10 {
        proxy.next(Fault::DropReply);
        proxy.next(Fault::Twice);
    }
    hall.in_mid_sale(80).await;
    proxy.heal();
    hall.end(buyers).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_server_is_split_from_redis_during_a_sale() {
    let redis = Redis::start().unwrap();
    let proxy = FaultProxy::to(redis.address()).unwrap();
    let apart = proxy.url(&redis.url(), redis.address());
    let hall = Hall::split([&redis.url(), &apart]).await;
    let buyers = hall.begin();
    hall.in_mid_sale(20).await;
    // What this one frees or sells, the other's shield does not hear, and the other way round.
    proxy.set(Fault::Cut);
    hall.in_mid_sale(80).await;
    hall.misses().await;
    proxy.heal();
    hall.end(buyers).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_server_sees_another_redis_during_a_sale() {
    let (left, right) = (Redis::start().unwrap(), Redis::start().unwrap());
    let hall = Hall::split([&left.url(), &right.url()]).await;
    hall.judge(hall.begin()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_primary_of_the_cluster_is_stopped_during_a_sale() {
    let mut cluster = RedisCluster::start(FullCoverage::NotRequired).unwrap();
    let hall = Hall::open(&cluster_url(&cluster)).await;
    let place = hall.place_of_zone(&cluster).await;
    let buyers = hall.begin();
    hall.in_mid_sale(20).await;
    cluster.fail_soon().unwrap();
    cluster.node(place).unwrap().pause().unwrap();
    hall.in_mid_sale(60).await;
    hall.misses().await;
    cluster.node(place).unwrap().resume().unwrap();
    hall.end(buyers).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_primary_of_the_cluster_is_killed_during_a_sale() {
    let mut cluster = RedisCluster::start(FullCoverage::NotRequired).unwrap();
    let hall = Hall::open(&cluster_url(&cluster)).await;
    // Asked before the sale: a shield that is too slow to be heard knows nothing yet.
    let place = hall.place_of_zone(&cluster).await;
    let buyers = hall.begin();
    hall.in_mid_sale(20).await;
    cluster.fail_soon().unwrap();
    cluster.node(place).unwrap().kill().unwrap();
    hall.misses().await;
    hall.end(buyers).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shield_full_of_lies_only_delays() {
    let redis = Redis::start().unwrap();
    let hall = Hall::open(&redis.url()).await;
    let zone = hall.zone(&[&redis]).await.1;
    let now = SystemClock.wall_ms();
    let lies = [
        format!("c|0|{}|7", now + 2_000),
        format!("s|0|{}|0", now + 600_000),
        format!("h|0|{}|7", now + 600_000),
        "no entry".to_owned(),
        format!("f|0|{}|7", now + 600_000),
        // Well formed, newer than what the servers know, and for a day.
        format!("h|9|{}|7", now + 86_300_000),
    ];
    for number in 0..SEATS {
        let (field, lie) = (number.to_string(), &lies[number % lies.len()]);
        redis.cli(&["HSET", &zone, &field, lie]).unwrap();
    }
    hall.sell_out(hall.begin()).await;
    let sold: BTreeSet<usize> = hall.sold.lock().unwrap().iter().copied().collect();
    assert_eq!((sold.len(), hall.sold()), (SEATS, SEATS));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_double_click_on_two_servers_gets_one_hold() {
    let redis = Redis::start().unwrap();
    let hall = Hall::open(&redis.url()).await;
    for number in 0..10 {
        let (caller, who, wanted) = (call(None), format!("ann-{number}"), seat(number));
        let wanted = [wanted.as_str()];
        let (one, other) = tokio::join!(
            hold(&hall.servers[0], &caller, &who, &wanted),
            hold(&hall.servers[1], &caller, &who, &wanted),
        );
        let (one, other) = (one.unwrap(), other.unwrap());
        assert_eq!(one.stored.subject, other.stored.subject);
    }
}
