//! The one statement that stores a batch. It locks every row the decisions rest on, in one order
//! everywhere, and writes nothing unless each still has the version it had and the ledger's clock is
//! where the decisions took it to be.

mod messages;
mod sales;
mod units;

use soldonce_core::{BookingId, Timestamp};
use tokio_postgres::types::{ToSql, Type};

use super::batch::{Account, Batch, Written};
use super::database::{Lane, Value};
use super::failure::Failure;
use super::replica::Replica;
use super::tables::{Columns, Id, bookings, events, holds, int, units as units_table};
use crate::ledger::rows::Damaged;
use crate::ledger::rows::policy::policy_to_json;

pub(super) const WRITE: &str = include_str!("write.sql");

/// What became of a statement.
pub(super) enum Outcome {
    /// It is durable.
    Stored(Written),
    /// A row had moved, or the clock: nothing was written.
    Stale,
}

/// A batch on its way.
pub(super) struct Dispatch<'a> {
    pub(super) batch: &'a Batch,
    /// The name of the batch, fresh.
    pub(super) id: Id,
    pub(super) server: Id,
    /// The time it was decided at.
    pub(super) now: Timestamp,
    /// What stands for the database's clock; none is the clock itself.
    pub(super) given: Option<i64>,
    /// The token of the lease it is written under; 0 without one.
    pub(super) token: i64,
    /// What finds out that a unit which the batch changes has moved.
    pub(super) guard: Guard,
}

/// What finds out that a unit which a batch changes has moved since it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Guard {
    /// The statement: it compares versions.
    Versions,
    /// The database's keys: two transitions of a unit cannot lead to the same version.
    Keys,
}

/// The values of one statement, in their dispatch.
#[derive(Default)]
struct Values {
    values: Vec<Box<dyn ToSql + Sync + Send>>,
    types: Vec<Type>,
}

impl Values {
    fn put(&mut self, value: impl ToSql + Sync + Send + 'static, of: Type) {
        self.values.push(Box::new(value));
        self.types.push(of);
    }

    fn of(&self) -> Vec<Value<'_>> {
        let values = self
            .values
            .iter()
            .map(|value| -> &(dyn ToSql + Sync) { &**value });
        values.zip(self.types.iter().cloned()).collect()
    }
}

/// A batch as the database gets it: built from memory, sent without it.
pub(super) struct Statement {
    values: Values,
    /// Bookings whose lines are written anew.
    rewritten: Vec<Id>,
    /// The event, and the units that the batch rests on, in unit order.
    event: i32,
    touched: Vec<i32>,
}

impl Statement {
    /// Of a batch that was decided on `replica` in a trial that is still open.
    ///
    /// # Errors
    /// `Damaged`, when the memory lacks what the batch changed.
    pub(super) fn new(replica: &Replica, dispatch: &Dispatch<'_>) -> Result<Self, Failure> {
        let is_known = |id: &BookingId| replica.bookings.contains_key(id);
        let rewritten = dispatch.batch.bookings().into_iter().filter(is_known);
        let touched = dispatch.batch.touched_units(replica).into_iter();
        Ok(Self {
            values: values(replica, dispatch)?,
            rewritten: holds::booking_ids(rewritten),
            event: int(replica.no.0)?,
            touched: touched.map(|unit| int(unit.0)).collect::<Result<_, _>>()?,
        })
    }

    /// Stores the batch, in the transaction that is open on this connection, which ends with it, or
    /// in one of its own; tells the database's clock to `learn`.
    ///
    /// # Errors
    /// [`Failure`]: `Refused` wrote nothing, `Unknown` may have been stored.
    pub(super) async fn send(
        &self,
        lane: &mut Lane,
        learn: impl Fn(i64),
    ) -> Result<Outcome, Failure> {
        if !lane.is_open() {
            if self.rewritten.is_empty() {
                return self.write(lane, learn).await;
            }
            lane.begin_write().await?;
        }
        let outcome = match self.delete_lines(lane).await {
            Ok(()) => self.write(lane, learn).await,
            Err(failure) => Err(failure),
        };
        match outcome {
            Ok(Outcome::Stored(written)) => {
                lane.commit().await?;
                Ok(Outcome::Stored(written))
            }
            Ok(Outcome::Stale)
            | Err(Failure::Full(_) | Failure::Refused { .. } | Failure::Damaged(_)) => {
                lane.roll_back().await;
                outcome
            }
            Err(Failure::Away(_) | Failure::Unknown(_)) => outcome,
        }
    }

    async fn delete_lines(&self, lane: &mut Lane) -> Result<(), Failure> {
        if self.rewritten.is_empty() {
            return Ok(());
        }
        // Units before anything else, as everybody does.
        units_table::lock(lane, units_table::LOCK, self.event, &self.touched).await?;
        let ids: [Value<'_>; 1] = [(&self.rewritten, Type::BYTEA_ARRAY)];
        lane.rows(bookings::DELETE_LINES, &ids).await?;
        Ok(())
    }

    async fn write(&self, lane: &mut Lane, learn: impl Fn(i64)) -> Result<Outcome, Failure> {
        let rows = lane.rows(WRITE, &self.values.of()).await?;
        let row = rows
            .first()
            .ok_or_else(|| Damaged::new("batches", "no answer"))?;
        let columns = Columns::new(row, "batches");
        learn(columns.get(1)?);
        let at: Option<i64> = columns.get(0)?;
        Ok(at.map_or(Outcome::Stale, |at| {
            let at = Timestamp::from_ms(at);
            Outcome::Stored(Written { at })
        }))
    }
}

fn values(replica: &Replica, dispatch: &Dispatch<'_>) -> Result<Values, Failure> {
    let batch = dispatch.batch;
    let mut to = Values::default();
    units::put_guards(&mut to, replica, dispatch)?;
    units::put_units(&mut to, replica, dispatch)?;
    units::put_holds(&mut to, replica, batch)?;
    units::put_audit(&mut to, batch)?;
    let accounts = batch.accounts(replica);
    sales::put_accounts(&mut to, &accounts)?;
    sales::put_bookings(&mut to, replica, batch)?;
    sales::put_records(&mut to, batch);
    sales::put_effects(&mut to, batch);
    put_batch(&mut to, dispatch, &accounts);
    put_event(&mut to, replica, batch)?;
    sales::put_payments(&mut to, replica, batch)?;
    messages::put(&mut to, &batch.messages);
    Ok(to)
}

/// $79 to $82.
fn put_batch(to: &mut Values, dispatch: &Dispatch<'_>, accounts: &[Account]) {
    to.put(dispatch.id, Type::BYTEA);
    to.put(dispatch.server, Type::BYTEA);
    to.put(dispatch.batch.renews_event(), Type::BOOL);
    to.put(
        accounts
            .iter()
            .map(|account| account.key)
            .collect::<Vec<_>>(),
        Type::BYTEA_ARRAY,
    );
}

/// $83 and $84: the event's row, when it changes.
fn put_event(to: &mut Values, replica: &Replica, batch: &Batch) -> Result<(), Failure> {
    let event = replica
        .inventory
        .event(replica.no)
        .filter(|_| batch.renews_event());
    let policy = event
        .map(|event| policy_to_json(&event.policy))
        .transpose()?;
    to.put(policy, Type::TEXT);
    let cancelled = event.and_then(|event| events::cancelled(event));
    to.put(cancelled.map(str::to_owned), Type::TEXT);
    Ok(())
}
