//! The one statement that stores a batch. It takes its turn with the event, locks every row the
//! decisions rest on, in one order everywhere, and writes nothing unless each still has the version it
//! had and the ledger's clock is where the decisions took it to be.

mod messages;
mod rows;
mod sales;
mod units;

use soldonce_core::{BookingId, HoldId, Timestamp};
use tokio_postgres::types::{ToSql, Type};

use super::batch::{Account, Batch, Written};
use super::database::{Lane, Value};
use super::failure::Failure;
use super::replica::Replica;
use super::tables::units::{self as units_table, Turn};
use super::tables::{Columns, Id, bookings, events, holds, int};
use crate::ledger::rows::policy::policy_to_json;
use crate::ledger::rows::{Damaged, stored};

pub(super) use self::rows::RowTypes;
use self::rows::{RowType, Rows};

/// Stores a batch of holds, or of what becomes of them without a sale: without the part of sales, whose
/// plan would be set up for nothing.
const WRITE_HOLDS: &str = concat!(
    "-- write\n",
    include_str!("turn.sql"),
    include_str!("guard.sql"),
    include_str!("holds.sql"),
    include_str!("end.sql")
);

/// Stores any batch.
const WRITE: &str = concat!(
    "-- write\n",
    include_str!("turn.sql"),
    include_str!("guard.sql"),
    include_str!("holds.sql"),
    include_str!("sales.sql"),
    include_str!("end.sql")
);

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
    /// The holds that it changes, each once, in order.
    pub(super) holds: Vec<HoldId>,
    /// What counts against the holders in it, by key.
    pub(super) accounts: Vec<Account>,
    /// The name of the batch, fresh.
    pub(super) id: Id,
    pub(super) server: Id,
    /// The time it was decided at.
    pub(super) now: Timestamp,
    /// What stands for the database's clock; none is the clock itself.
    pub(super) given: Option<i64>,
    /// How the database numbers the types of rows.
    pub(super) types: RowTypes,
}

/// The values of one statement, in their dispatch.
struct Values {
    each: Vec<Box<dyn ToSql + Sync + Send>>,
    types: Vec<Type>,
    row_types: RowTypes,
    /// The statement that has a place for all of them.
    sql: &'static str,
}

impl Values {
    fn new(row_types: RowTypes) -> Self {
        Self {
            each: Vec::new(),
            types: Vec::new(),
            row_types,
            sql: WRITE_HOLDS,
        }
    }

    fn put_rows(&mut self, rows: Rows, of: RowType) {
        if of.is_of_sales() && !rows.is_empty() {
            self.sql = WRITE;
        }
        let array = self.row_types.array(of);
        self.put(rows, array);
    }

    fn put(&mut self, value: impl ToSql + Sync + Send + 'static, of: Type) {
        self.each.push(Box::new(value));
        self.types.push(of);
    }

    fn of(&self) -> Vec<Value<'_>> {
        let values = self
            .each
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
    turn: Turn,
    /// The units that the batch rests on, in unit order, if lines are rewritten: they are locked first.
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
        let rewritten = holds::booking_ids(rewritten);
        let touched = match rewritten.as_slice() {
            [] => Vec::new(),
            [..] => dispatch.batch.touched_units(replica),
        };
        let touched = touched.into_iter();
        Ok(Self {
            values: values(replica, dispatch)?,
            rewritten,
            turn: Turn {
                event: int(replica.no.0)?,
                renews: dispatch.batch.renews_event(),
            },
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
        let outcome = self.send_within(lane, learn).await;
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
            Err(Failure::Away(_) | Failure::Standby | Failure::Unknown(_)) => outcome,
        }
    }

    /// As [`Statement::send`], in a transaction that goes on.
    pub(super) async fn send_within(
        &self,
        lane: &mut Lane,
        learn: impl Fn(i64),
    ) -> Result<Outcome, Failure> {
        self.delete_lines(lane).await?;
        self.write(lane, learn).await
    }

    async fn delete_lines(&self, lane: &mut Lane) -> Result<(), Failure> {
        if self.rewritten.is_empty() {
            return Ok(());
        }
        // The turn, then units before anything else, as everybody does.
        units_table::lock(lane, self.turn, &self.touched).await?;
        let ids: [Value<'_>; 1] = [(&self.rewritten, Type::BYTEA_ARRAY)];
        lane.rows(bookings::DELETE_LINES, &ids).await?;
        Ok(())
    }

    async fn write(&self, lane: &mut Lane, learn: impl Fn(i64)) -> Result<Outcome, Failure> {
        let rows = lane.rows(self.values.sql, &self.values.of()).await?;
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
    let mut to = Values::new(dispatch.types.clone());
    units::put_guards(&mut to, replica, dispatch)?;
    messages::put(&mut to, &batch.messages)?;
    units::put_holds(&mut to, replica, dispatch)?;
    units::put_audit(&mut to, batch)?;
    sales::put_accounts(&mut to, &dispatch.accounts)?;
    sales::put_bookings(&mut to, replica, batch)?;
    sales::put_records(&mut to, batch)?;
    sales::put_effects(&mut to, batch)?;
    put_batch(&mut to, replica, dispatch)?;
    put_event(&mut to, replica, batch)?;
    units::put_before(&mut to, batch, replica);
    Ok(to)
}

/// $20 to $27: the batch's own row, and the version of the event that it was decided on.
fn put_batch(to: &mut Values, replica: &Replica, dispatch: &Dispatch<'_>) -> Result<(), Failure> {
    let batch = dispatch.batch;
    to.put(dispatch.id, Type::BYTEA);
    to.put(dispatch.server, Type::BYTEA);
    to.put(replica.event_version, Type::INT8);
    let units = batch.steps().map(|step| int(step.unit.0));
    to.put(units.collect::<Result<Vec<_>, _>>()?, Type::INT4_ARRAY);
    let versions = batch.steps().map(|step| stored(step.version.0));
    to.put(versions.collect::<Result<Vec<_>, _>>()?, Type::INT8_ARRAY);
    to.put(
        holds::ids(dispatch.holds.iter().copied()),
        Type::BYTEA_ARRAY,
    );
    to.put(holds::booking_ids(batch.bookings()), Type::BYTEA_ARRAY);
    let keys = dispatch.accounts.iter().map(|account| account.key);
    to.put(keys.collect::<Vec<_>>(), Type::BYTEA_ARRAY);
    Ok(())
}

/// $28 and $29: the event's row, when it changes.
fn put_event(to: &mut Values, replica: &Replica, batch: &Batch) -> Result<(), Failure> {
    let event = replica
        .inventory
        .event(replica.no)
        .filter(|_| batch.renews_event());
    let policy = event
        .map(|event| policy_to_json(&event.policy))
        .transpose()?;
    if policy.is_some() {
        to.sql = WRITE;
    }
    to.put(policy, Type::TEXT);
    let cancelled = event.and_then(|event| events::cancelled(event));
    to.put(cancelled.map(str::to_owned), Type::TEXT);
    Ok(())
}
