//! Every strategy at once on one database, each on a server of its own: one winner for every seat,
//! whatever keeps commands apart, and whatever becomes of the servers that give leases.

use std::sync::Arc;
use std::time::Duration;

use soldonce_core::{Command, Event, Hold, Rejection};
use soldonce_engine::ledger::Ledger;
use soldonce_engine::ledger::postgres::{PostgresOptions, Strategy};
use soldonce_lease::backend::redis::{RedisConfig, RedlockConfig};
use soldonce_lease::{Builder, Doctor, Locks};
use soldonce_testkit::redis::{Data, Redis};
use soldonce_testkit::{PATIENCE, until};
use tokio::task::JoinSet;
use tokio_postgres::NoTls;

use super::Servers;
use super::races::{race, units_given_once};
use crate::ledgers::{held, on, transaction};

/// Leases in one Redis and in a majority of three.
pub(crate) struct LeaseServers {
    one: Redis,
    nodes: Vec<Redis>,
}

impl LeaseServers {
    pub(crate) fn start() -> Self {
        Self {
            one: Redis::start().unwrap(),
            nodes: Redis::independent(3).unwrap(),
        }
    }

    pub(crate) async fn lease(&self) -> Strategy {
        Strategy::Lease(connect(Locks::redis(self.one.url())).await)
    }

    pub(crate) async fn redlock(&self) -> Strategy {
        let nodes = self.nodes.iter().map(|node| RedisConfig::from(node.url()));
        let config = RedlockConfig::new(nodes.collect()).sit_out(Duration::ZERO);
        Strategy::Redlock(connect(Locks::redlock(config)).await)
    }
}

async fn connect(builder: Builder) -> Locks {
    let builder = builder.namespace("engine").doctor(Doctor::Off);
    builder.connect().await.unwrap()
}

impl Servers {
    /// One more server, with a strategy of its own.
    pub(super) async fn one_more_by(&mut self, strategy: Strategy) {
        let options = PostgresOptions {
            strategy,
            connections: 16,
            ..self.options.clone()
        };
        let ledger = self.one_more(&options).await;
        self.ledgers.push(ledger);
    }

    pub(super) fn deadlocks(&self) -> String {
        let sql = "SELECT sum(deadlocks) FROM pg_stat_database";
        self.database.query(sql).unwrap()
    }

    async fn give_back(&self, server: usize, hold: &Hold) {
        let release = Command::Release { on: on(hold) };
        self.ask(server, release).await.unwrap();
    }
}

/// Each strategy once.
pub(super) async fn every_strategy(leases: &LeaseServers) -> Vec<Strategy> {
    vec![
        Strategy::Queue,
        Strategy::Constraint,
        Strategy::Optimistic,
        Strategy::Pessimistic,
        Strategy::NoWait,
        leases.lease().await,
        leases.redlock().await,
    ]
}

/// A server for each strategy, `queue` first.
pub(super) async fn all_strategies(leases: &LeaseServers) -> Servers {
    let mut servers = Servers::start(0).await;
    for strategy in every_strategy(leases).await {
        servers.one_more_by(strategy).await;
    }
    servers
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_seat_has_one_winner_over_all_strategies() {
    let leases = LeaseServers::start();
    let servers = all_strategies(&leases).await;
    let event = servers.event(|_| {}).await;
    let seats = ["A-1", "A-2", "B-3"];
    let count = servers.ledgers.len();
    let answers = race(&servers, &event, 15 * count, |n| {
        (format!("buyer-{n}"), vec![seats[n / count % 3]])
    })
    .await;
    let winners = answers.iter().filter(|answer| answer.is_ok()).count();
    assert_eq!(winners, 3);
    for answer in &answers {
        assert!(
            matches!(answer, Ok(_) | Err(Rejection::UnitUnavailable(_))),
            "{answer:?}"
        );
    }
    assert_eq!(servers.judge(0, &event.id).await, 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sets_in_opposite_orders_lock_nobody_out_over_all_strategies() {
    let leases = LeaseServers::start();
    let servers = all_strategies(&leases).await;
    let event = servers.event(|_| {}).await;
    let ring = ["A-1", "A-2", "A-3", "A-4", "A-5", "B-1"];
    let answers = race(&servers, &event, 84, |n| {
        let mut set = vec![ring[n % 6], ring[(n + 1) % 6], ring[(n + 2) % 6]];
        if n % 2 == 0 {
            set.reverse();
        }
        (format!("buyer-{n}"), set)
    })
    .await;
    let count = units_given_once(&answers);
    assert!((1..=2).contains(&(count / 3)), "{count}");
    assert_eq!(servers.deadlocks(), "0");
    servers.judge(0, &event.id).await;
}

/// How often Redis ran this command.
fn ran(redis: &Redis, command: &str) -> u64 {
    let text = redis.cli(&["INFO", "commandstats"]).unwrap();
    let line = |line: &&str| line.starts_with(&format!("cmdstat_{command}:calls="));
    let calls = text.lines().find(line).map(|line| {
        let after = line.split_once('=').unwrap().1;
        after.split_once(',').unwrap().0.parse().unwrap()
    });
    calls.unwrap_or(0)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leased_hold_is_two_round_trips_to_redis_and_one_commit() {
    let leases = LeaseServers::start();
    let mut servers = Servers::start(0).await;
    let strategy = leases.lease().await;
    servers.one_more_by(strategy).await;
    let event = servers.event(|_| {}).await;
    // The first calls load the scripts and draw an epoch.
    let seats = ["A-1", "A-2", "B-1"];
    let first = servers.hold(0, &event, "ann", &seats).await.unwrap();
    servers.give_back(0, &first).await;
    let batches = || {
        let sql = "SELECT count(*) FROM batches WHERE event_no >= 0";
        servers.database.query(sql).unwrap().parse::<u64>().unwrap()
    };
    let calls = || ran(&leases.one, "evalsha") + ran(&leases.one, "eval");
    let before = (calls(), batches());
    servers.hold(0, &event, "bob", &seats).await.unwrap();
    assert_eq!(calls() - before.0, 2);
    assert_eq!(batches() - before.1, 1);
}

async fn hold_and_give_back(servers: &Servers, event: &Event, who: &str) {
    let hold = servers.hold(0, event, who, &["A-1"]).await.unwrap();
    servers.give_back(0, &hold).await;
}

fn token(servers: &Servers) -> i64 {
    let sql = "SELECT max(token) FROM units";
    servers.database.query(sql).unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_never_fall_though_redis_forgets_them() {
    let leases = LeaseServers::start();
    let mut servers = Servers::start(0).await;
    // Without a source of epochs tokens begin again when Redis loses its data.
    let strategy = leases.lease().await;
    servers.one_more_by(strategy).await;
    let event = servers.event(|_| {}).await;
    for _ in 0..5 {
        hold_and_give_back(&servers, &event, "ann").await;
    }
    let before = token(&servers);
    assert!(before > 1, "{before}");
    leases.one.cli(&["FLUSHALL"]).unwrap();
    // Refused once by the ledger, which tells the lease's servers where to go on.
    hold_and_give_back(&servers, &event, "bob").await;
    let after = token(&servers);
    assert!(after > before, "{after} follows {before}");
    servers.judge(0, &event.id).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leases_that_are_away_cost_time_and_nothing_else() {
    let mut leases = LeaseServers::start();
    let mut servers = Servers::start(0).await;
    for strategy in [leases.lease().await, leases.redlock().await] {
        servers.one_more_by(strategy).await;
    }
    let event = servers.event(|_| {}).await;
    hold_and_give_back(&servers, &event, "ann").await;
    leases.one.pause().unwrap();
    for node in &mut leases.nodes[1..] {
        node.kill().unwrap();
    }
    let answers = race(&servers, &event, 20, |n| {
        (format!("buyer-{n}"), vec![["B-1", "B-2"][n / 2 % 2]])
    })
    .await;
    let winners = answers.iter().filter(|answer| answer.is_ok()).count();
    assert_eq!(winners, 2, "{answers:?}");
    let refused =
        |answer: &Result<Hold, Rejection>| matches!(answer, Err(Rejection::UnitUnavailable(_)));
    assert_eq!(answers.iter().filter(|answer| refused(answer)).count(), 18);
    leases.one.resume().unwrap();
    for node in &mut leases.nodes[1..] {
        node.restart(Data::Lost).unwrap();
    }
    hold_and_give_back(&servers, &event, "bob").await;
    servers.judge(1, &event.id).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_that_stays_locked_is_waited_for_in_the_end() {
    let mut servers = Servers::start(0).await;
    servers.one_more_by(Strategy::NoWait).await;
    let event = servers.event(|_| {}).await;
    let url = servers.database.url();
    let (slow, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move { drop(connection.await) });
    let lock = "BEGIN; SELECT 1 FROM units FOR UPDATE";
    slow.batch_execute(lock).await.unwrap();
    let wish = servers.wish(&event, "ann", &["A-1"]);
    let ledger = Arc::clone(&servers.ledgers[0]);
    let mut buyer = JoinSet::new();
    buyer.spawn(async move { held(ledger.transact(transaction(wish, None)).await) });
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
    let one_waits = || {
        servers
            .database
            .query(waiting)
            .is_ok_and(|count| count == "1")
    };
    until("the buyer has looked often enough", PATIENCE, one_waits).unwrap();
    slow.batch_execute("COMMIT").await.unwrap();
    buyer.join_next().await.unwrap().unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_who_goes_away_leaves_nothing_half_done() {
    let leases = LeaseServers::start();
    let servers = all_strategies(&leases).await;
    let event = servers.event(|_| {}).await;
    for server in 0..servers.ledgers.len() {
        let command = servers.wish(&event, "ann", &["B-1", "B-2"]);
        let ledger = &servers.ledgers[server];
        let asked = ledger.transact(transaction(command, None));
        // Polled once, so it is on its way.
        let gone = tokio::time::timeout(Duration::ZERO, asked).await;
        drop(gone);
        let hold = servers.hold(server, &event, "ann", &["B-1", "B-2"]).await;
        servers.give_back(server, &hold.unwrap()).await;
    }
    servers.judge(0, &event.id).await;
}
