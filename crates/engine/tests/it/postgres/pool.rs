//! Servers behind one `PgBouncer` in transaction mode: every statement may meet another session, and
//! what a command relies on lives in its transaction or nowhere.

use soldonce_core::{Event, Rejection};
use soldonce_engine::ledger::postgres::PostgresOptions;
use soldonce_testkit::postgres::PgBouncer;

use super::Servers;
use super::melee::{COMMANDS, melee};
use super::races::race;
use crate::ledgers::units_given_once;

/// Servers of one test.
const SERVERS: usize = 3;
/// What each of them may use, as without a pool.
const CONNECTIONS: usize = 8;

impl Servers {
    /// One more server, behind the pool.
    async fn one_more_behind(&mut self, pool: &PgBouncer) {
        let options = PostgresOptions {
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

async fn behind_a_pool() -> (Servers, PgBouncer) {
    let mut servers = Servers::start(0).await;
    let pool = pool(&servers, SERVERS);
    for _ in 0..SERVERS {
        servers.one_more_behind(&pool).await;
    }
    (servers, pool)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn behind_a_pool_every_seat_has_one_winner() {
    let (servers, _pool) = behind_a_pool().await;
    let event = servers.event(|_| {}).await;
    let seats = ["A-1", "A-2", "B-3"];
    let answers = race(&servers, &event, 60, |n| {
        // Not by the number of servers: each seat is wanted at each of them.
        (format!("buyer-{n}"), vec![seats[n / SERVERS % 3]])
    })
    .await;
    let winners = answers.iter().filter(|answer| answer.is_ok()).count();
    assert_eq!(winners, 3);
    for answer in &answers {
        let is_told = matches!(answer, Ok(_) | Err(Rejection::UnitUnavailable(_)));
        assert!(is_told, "{answer:?}");
    }
    let given = sets_in_opposite_orders(&servers, &event).await;
    assert!((1..=2).contains(&given), "{given}");
    assert_eq!(servers.deadlocks(), "0");
    assert_eq!(servers.judge(2, &event.id).await, 3 + given);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn behind_a_pool_any_commands_make_one_history() {
    let (servers, _pool) = behind_a_pool().await;
    let answers = melee(&servers, 4).await;
    assert!(answers["done"] > COMMANDS / 10, "{answers:?}");
    assert_eq!(answers.get("overloaded"), None, "{answers:?}");
    assert_eq!(servers.deadlocks(), "0");
}
