//! Servers behind one `PgBouncer` in transaction mode: every statement may meet another session, and
//! what a strategy relies on lives in its transaction or nowhere.

use soldonce_core::{Event, Rejection};
use soldonce_engine::ledger::postgres::{PostgresOptions, Strategy};
use soldonce_testkit::postgres::PgBouncer;

use super::Servers;
use super::melee::{COMMANDS, melee};
use super::races::{race, units_given_once};
use super::strategies::{LeaseServers, every_strategy};

/// Servers of one strategy.
const SERVERS: usize = 3;
/// What each of them may use, as without a pool.
const CONNECTIONS: usize = 8;

impl Servers {
    /// One more server, behind the pool.
    async fn one_more_behind(&mut self, pool: &PgBouncer, strategy: Strategy) {
        let options = PostgresOptions {
            strategy,
            connections: CONNECTIONS,
            ..self.unprepared_at(pool.url_of("postgres"))
        };
        let ledger = self.one_more(&options).await;
        self.ledgers.push(ledger);
    }
}

/// A pool that gives so many servers as many connections as they were told to use.
fn pool(servers: &Servers, count: usize) -> PgBouncer {
    let connections = u32::try_from(count * CONNECTIONS).unwrap();
    PgBouncer::start(&servers.database, connections).unwrap()
}

/// How many sets of three seats were given to buyers who name them in opposite orders.
async fn sets_in_opposite_orders(servers: &Servers, event: &Event) -> usize {
    let ring = ["A-3", "A-4", "A-5", "B-1", "B-2", "B-4"];
    let answers = race(servers, event, 42, |n| {
        let mut set = vec![ring[n % 6], ring[(n + 1) % 6], ring[(n + 2) % 6]];
        if n % 2 == 0 {
            set.reverse();
        }
        (format!("other-{n}"), set)
    })
    .await;
    units_given_once(&answers) / 3
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn behind_a_pool_every_seat_has_one_winner_by_every_strategy() {
    let leases = LeaseServers::start();
    for strategy in every_strategy(&leases).await {
        let name = strategy.name();
        let mut servers = Servers::start(0).await;
        let pool = pool(&servers, SERVERS);
        for _ in 0..SERVERS {
            servers.one_more_behind(&pool, strategy.clone()).await;
        }
        let event = servers.event(|_| {}).await;
        let seats = ["A-1", "A-2", "B-3"];
        let answers = race(&servers, &event, 60, |n| {
            // Not by the number of servers: each seat is wanted at each of them.
            (format!("buyer-{n}"), vec![seats[n / SERVERS % 3]])
        })
        .await;
        let winners = answers.iter().filter(|answer| answer.is_ok()).count();
        assert_eq!(winners, 3, "{name}");
        for answer in &answers {
            let is_told = matches!(answer, Ok(_) | Err(Rejection::UnitUnavailable(_)));
            assert!(is_told, "{name}: {answer:?}");
        }
        let given = sets_in_opposite_orders(&servers, &event).await;
        assert!((1..=2).contains(&given), "{name}: {given}");
        assert_eq!(servers.deadlocks(), "0", "{name}");
        assert_eq!(servers.judge(2, &event.id).await, 3 + given, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn behind_a_pool_any_commands_on_all_strategies_make_one_history() {
    let leases = LeaseServers::start();
    let mut servers = Servers::start(0).await;
    let strategies = every_strategy(&leases).await;
    let pool = pool(&servers, strategies.len());
    for strategy in strategies {
        servers.one_more_behind(&pool, strategy).await;
    }
    let answers = melee(&servers, 4).await;
    assert!(answers["done"] > COMMANDS / 10, "{answers:?}");
    assert_eq!(answers.get("overloaded"), None, "{answers:?}");
    assert_eq!(servers.deadlocks(), "0");
}
