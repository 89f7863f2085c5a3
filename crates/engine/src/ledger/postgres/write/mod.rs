//! The one statement that stores a batch. It locks every row the decisions rest on, in one order
//! everywhere, and writes nothing unless each still has the version it had and the ledger's clock is
//! where the decisions took it to be.

mod sales;
mod units;

use soldonce_core::Timestamp;
use tokio_postgres::types::{ToSql, Type};

use super::batch::{Account, Batch, Written};
use super::database::{Lane, Value};
use super::failure::Failure;
use super::replica::Replica;
use super::tables::{Columns, Id, events};
use crate::ledger::rows::Damaged;
use crate::ledger::rows::policy::policy_to_json;

const WRITE: &str = include_str!("write.sql");

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

/// Stores a batch on a connection; tells the database's clock to `learn`.
///
/// # Errors
/// [`Failure`]: `Refused` wrote nothing, `Unknown` may have been stored.
pub(super) async fn store(
    lane: &mut Lane,
    replica: &Replica,
    dispatch: &Dispatch<'_>,
    learn: impl Fn(i64),
) -> Result<Outcome, Failure> {
    let values = values(replica, dispatch)?;
    let rows = lane.rows(WRITE, &values.of()).await?;
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
