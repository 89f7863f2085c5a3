//! The strategies of the articles, as a team would write them: one file each, on tables of the lab's own.
//! The same code runs on tables without guards and on tables where the database refuses by itself.

mod constraint;
mod lease;
mod naive;
mod nowait;
mod optimistic;
mod pessimistic;
mod redlock;
mod stopped;
mod tables;
mod unsorted;

use std::sync::Arc;

use deadpool_postgres::ClientWrapper;
use deadpool_postgres::tokio_postgres::error::SqlState;
use deadpool_postgres::tokio_postgres::{Error, Row, Statement};
use soldonce_core::{History, OnHold};

use super::contender::{Contender, Doing, Outcome, Pool, Sale};
use super::plan::{Hall, Want};

pub(super) use self::constraint::Constraint;
pub(super) use self::lease::Lease;
pub(super) use self::naive::Naive;
pub(super) use self::nowait::NoWait;
pub(super) use self::optimistic::Optimistic;
pub(super) use self::pessimistic::Pessimistic;
pub(super) use self::redlock::Redlock;
pub(super) use self::stopped::{Scene, Stoppable, stop_the_holder};
pub(super) use self::tables::{Guards, make};
pub(super) use self::unsorted::Unsorted;

/// The refusal of the product, so that both count as one.
const TAKEN: Outcome = Outcome::Refused("unit_unavailable");

/// One way to sell seats.
pub(super) trait Textbook: Send + Sync {
    /// The statements and Redis commands of one buyer of three seats, in order.
    fn statements(&self) -> &'static [&'static str];

    /// Sells `want.seats` to `want.buyer`, or refuses.
    fn buy<'a>(&'a self, pool: &'a Pool, hall: i32, want: &'a Want) -> Bought<'a>;
}

/// What [`Textbook::buy`] returns.
pub(super) type Bought<'a> = Doing<'a, Result<Outcome, Outcome>>;

impl From<Error> for Outcome {
    /// What an error of the database counts as. The guards refuse, which is an ordinary answer.
    fn from(error: Error) -> Self {
        let Some(state) = error.code() else {
            return Self::Failed("connection lost".to_owned());
        };
        let code = state.code();
        match state {
            state if *state == SqlState::UNIQUE_VIOLATION => Self::Refused("sold_already"),
            state if *state == SqlState::CHECK_VIOLATION => Self::Refused("stale_fence"),
            state if *state == SqlState::LOCK_NOT_AVAILABLE => Self::Refused("locked"),
            state if *state == SqlState::T_R_DEADLOCK_DETECTED => {
                Self::Failed(format!("deadlock {code}"))
            }
            state if *state == SqlState::QUERY_CANCELED => Self::Failed(format!("timeout {code}")),
            _ => Self::Failed(code.to_owned()),
        }
    }
}

impl From<redis::RedisError> for Outcome {
    fn from(error: redis::RedisError) -> Self {
        Self::Failed(format!("redis {:?}", error.kind()))
    }
}

/// A strategy on its tables.
pub(super) struct Shop {
    way: Arc<dyn Textbook>,
    pool: Pool,
}

impl Shop {
    /// Opens every connection to the schema that has the tables.
    ///
    /// # Errors
    /// When the database refuses.
    pub(super) async fn open(way: Arc<dyn Textbook>, pool: Pool) -> anyhow::Result<Self> {
        pool.warm().await?;
        Ok(Self { way, pool })
    }
}

impl Contender for Shop {
    fn open_hall<'a>(&'a self, hall: &'a Hall) -> Doing<'a, anyhow::Result<Arc<dyn Sale>>> {
        Box::pin(async move {
            tables::fill(&self.pool, hall).await?;
            Ok(Arc::new(OpenHall {
                way: Arc::clone(&self.way),
                pool: self.pool.clone(),
                hall: hall.clone(),
            }) as Arc<dyn Sale>)
        })
    }

    fn statements(&self) -> &'static [&'static str] {
        self.way.statements()
    }

    fn close(&self) -> Doing<'_, ()> {
        self.pool.close();
        Box::pin(async {})
    }
}

struct OpenHall {
    way: Arc<dyn Textbook>,
    pool: Pool,
    hall: Hall,
}

impl Sale for OpenHall {
    fn ask<'a>(&'a self, want: &'a Want) -> Doing<'a, Outcome> {
        Box::pin(async move {
            let bought = self.way.buy(&self.pool, self.hall.number, want).await;
            bought.unwrap_or_else(|failed| failed)
        })
    }

    fn confirm(&self, _won: OnHold) -> Doing<'_, Result<(), String>> {
        Box::pin(async { Ok(()) })
    }

    fn history(&self) -> Doing<'_, anyhow::Result<History>> {
        Box::pin(tables::history(&self.pool, &self.hall))
    }
}

/// The numbers of a request as the tables have them: the buyer, and the seats in ascending order.
fn sorted(want: &Want) -> (i32, Vec<i32>) {
    let (buyer, mut seats) = as_listed(want);
    seats.sort_unstable();
    (buyer, seats)
}

/// The same, with the seats as the request lists them.
fn as_listed(want: &Want) -> (i32, Vec<i32>) {
    let number = |n: u32| i32::try_from(n).unwrap_or(i32::MAX);
    let seats = want.seats.iter().copied().map(number);
    (number(want.buyer), seats.collect())
}

/// Whether one of these rows `(seat, buyer)` has a buyer.
fn is_taken(rows: &[Row]) -> Result<bool, Error> {
    let mut taken = false;
    for row in rows {
        taken |= row.try_get::<_, Option<i32>>(1)?.is_some();
    }
    Ok(taken)
}

/// A prepared statement of this connection.
async fn prepared(connection: &ClientWrapper, sql: &'static str) -> Result<Statement, Error> {
    connection.prepare_cached(sql).await
}
