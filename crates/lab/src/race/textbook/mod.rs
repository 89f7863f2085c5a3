//! The strategies of the articles, as a team would write them, on tables of the lab's own. The same code
//! runs on tables without guards and on tables where the database refuses by itself.

mod constraint;
mod lease;
mod naive;
mod optimistic;
mod redlock;
mod row_locks;
mod stopped;
mod tables;

use std::time::Duration;

use deadpool_postgres::tokio_postgres::{Error, Row};
use redis::AsyncConnectionConfig;
use redis::aio::MultiplexedConnection;

use super::outcome::Outcome;
use super::plan::{Hall, Want};
use super::pool::Pool;
use crate::limits::RACE_ANSWER_MS;

pub(super) use self::stopped::{Scene, stop_the_holder};
#[cfg(test)]
pub(super) use self::tables::history_of;
pub(super) use self::tables::{Guards, make};

use self::lease::Lease;

/// The refusal of the product, so that both count as one.
const TAKEN: Outcome = Outcome::Refused("unit_unavailable");

/// How seats are sold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
    Naive,
    Unsorted,
    Pessimistic,
    NoWait,
    Optimistic,
    Constraint,
    Lease,
    Redlock,
    Queue,
}

/// A strategy with its connections.
pub(super) struct Textbook {
    method: Method,
    pool: Pool,
    redis: Vec<MultiplexedConnection>,
}

/// What one buyer wants, as the tables have it.
#[derive(Clone, Debug)]
struct Purchase {
    hall: i32,
    buyer: i32,
    /// As the request lists them.
    listed: Vec<i32>,
    /// The same in ascending order.
    seats: Vec<i32>,
}

impl Purchase {
    fn new(hall: &Hall, want: &Want) -> Self {
        let number = |n: u32| i32::try_from(n).unwrap_or(i32::MAX);
        let listed: Vec<i32> = want.seats.iter().copied().map(number).collect();
        let mut seats = listed.clone();
        seats.sort_unstable();
        Self {
            hall: hall.number,
            buyer: number(want.buyer),
            listed,
            seats,
        }
    }
}

impl Textbook {
    pub(super) async fn open(method: Method, pool: Pool, redis: &[String]) -> anyhow::Result<Self> {
        pool.warm().await?;
        let wait = Some(Duration::from_millis(RACE_ANSWER_MS));
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(wait)
            .set_response_timeout(wait);
        let mut connections = Vec::new();
        for url in redis {
            let client = redis::Client::open(url.as_str())?;
            let connection = client.get_multiplexed_async_connection_with_config(&config);
            connections.push(connection.await?);
        }
        Ok(Self {
            method,
            pool,
            redis: connections,
        })
    }

    /// Returns the statements and Redis commands of one buyer of three seats, in order.
    pub(super) fn statements(&self) -> &'static [&'static str] {
        match self.method {
            Method::Naive => naive::STATEMENTS,
            Method::Pessimistic => row_locks::PESSIMISTIC,
            Method::NoWait => row_locks::NOWAIT,
            Method::Unsorted => row_locks::UNSORTED,
            Method::Optimistic => optimistic::STATEMENTS,
            Method::Constraint => constraint::STATEMENTS,
            Method::Lease => lease::STATEMENTS,
            Method::Redlock => redlock::STATEMENTS,
            Method::Queue => &[],
        }
    }

    /// Sells `want.seats` to `want.buyer`, or refuses.
    pub(super) async fn buy(&self, hall: &Hall, want: &Want) -> Outcome {
        let (pool, redis) = (&self.pool, self.redis.as_slice());
        let purchase = &Purchase::new(hall, want);
        let bought = match (self.method, redis) {
            (Method::Naive, _) => naive::buy(pool, purchase).await,
            (Method::Pessimistic, _) => row_locks::pessimistic(pool, purchase).await,
            (Method::NoWait, _) => row_locks::nowait(pool, purchase).await,
            (Method::Unsorted, _) => row_locks::unsorted(pool, purchase).await,
            (Method::Optimistic, _) => optimistic::buy(pool, purchase).await,
            (Method::Constraint, _) => constraint::buy(pool, purchase).await,
            (Method::Lease, [redis]) => lease::buy(pool, redis, purchase).await,
            (Method::Redlock, nodes) => redlock::buy(pool, nodes, purchase).await,
            (Method::Lease | Method::Queue, _) => Err(Outcome::Failed("not open".to_owned())),
        };
        bought.unwrap_or_else(|failed| failed)
    }

    /// Takes a lease on seats; none when another holder has it.
    async fn acquire(&self, wanted: &Purchase, ttl: Duration) -> Result<Option<Lease>, Outcome> {
        match (self.method, self.redis.as_slice()) {
            (Method::Redlock, nodes) => redlock::acquire(nodes, wanted, ttl).await,
            (_, [redis, ..]) => lease::acquire(redis, wanted, ttl).await,
            (_, []) => Ok(None),
        }
    }

    pub(super) fn close(&self) {
        self.pool.close();
    }
}

/// Tells whether one of these rows `(seat, buyer)` has a buyer.
fn is_taken(rows: &[Row]) -> Result<bool, Error> {
    let mut taken = false;
    for row in rows {
        taken |= row.try_get::<_, Option<i32>>(1)?.is_some();
    }
    Ok(taken)
}
