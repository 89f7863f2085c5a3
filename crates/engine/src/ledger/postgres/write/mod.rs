//! A batch as one call of the database's function `store_batch_12`
//! (`migrations/postgres/V12__store_batch.sql`), which says what is locked, compared and written, in which
//! order. This module makes the values of its parameters, each with its name.

mod rows;
mod sales;
mod units;

use std::sync::{Arc, OnceLock};

use soldonce_clock::Clock;
use soldonce_core::{Event, HoldId, Timestamp};
use tokio_postgres::types::{ToSql, Type};

use super::bind::{Bind, Value, bind};
use super::database::Connection;
use super::failure::Failure;
use super::limits::{CHANGE_OFF_MS, CLOCK_OFF_MS};
use super::read_set::ReadSet;
use super::replica::Replica;
use super::tables::events::DESCRIBE_EVENT;
use super::tables::{Id, int};
use super::time::Time;
use crate::ledger::batch::Batch;
use crate::ledger::rows::Damaged;
use crate::ledger::rows::policy::policy_to_json;
use crate::ledger::rows::reader::Reader;

pub(super) use self::rows::RowTypes;
use self::rows::{RowType, Rows};

/// A batch to be stored, and what its call needs.
pub(super) struct Dispatch<'a> {
    pub(super) batch: &'a Batch,
    /// What its decisions rest on.
    pub(super) read_set: ReadSet,
    /// The holds that it changes, each once, in order.
    pub(super) holds: Vec<HoldId>,
    /// The id of the batch, fresh.
    pub(super) id: Id,
    pub(super) server: Id,
    /// The time it was decided at.
    pub(super) now: Timestamp,
    /// The time that replaces the database's clock, milliseconds; None is the clock itself.
    pub(super) given: Option<i64>,
    /// The types of rows, by their OIDs in this database.
    pub(super) types: RowTypes,
}

/// The values of the call, each with the name of its parameter.
struct Values {
    names: Vec<&'static str>,
    each: Vec<Box<dyn ToSql + Sync + Send>>,
    types: Vec<Type>,
    row_types: RowTypes,
}

impl Values {
    fn put<T: Bind + Send + 'static>(&mut self, name: &'static str, value: T) {
        self.put_as(name, value, T::TYPE);
    }

    fn put_as(&mut self, name: &'static str, value: impl ToSql + Sync + Send + 'static, of: Type) {
        self.names.push(name);
        self.each.push(Box::new(value));
        self.types.push(of);
    }

    fn put_rows(&mut self, name: &'static str, rows: Rows, of: RowType) {
        self.put_as(name, rows, self.row_types.array(of));
    }

    fn of(&self) -> Vec<Value<'_>> {
        let values = self.each.iter();
        let values = values.map(|value| -> &(dyn ToSql + Sync) { &**value });
        values.zip(self.types.iter().cloned()).collect()
    }

    /// Returns the call with these names: `batch_id => $1, ..`. They are the same for every batch.
    fn call(&self) -> &'static str {
        static CALL: OnceLock<String> = OnceLock::new();
        CALL.get_or_init(|| {
            let names = (1..).zip(&self.names);
            let each: Vec<String> = names.map(|(n, name)| format!("{name} => ${n}")).collect();
            let each = each.join(", ");
            format!("-- store_batch\nSELECT stored_at, wall FROM store_batch_12({each})")
        })
    }
}

/// A batch as the database gets it: built from memory, sent without it.
pub(super) struct Statement {
    values: Values,
    /// The event, if the batch changes it: its name and start are written by a second statement.
    changed: Option<Arc<Event>>,
    /// The last end of a hold that was taken to be over: the clock itself must have passed it, too.
    over_since: i64,
    /// Whether the clock may be before that. Then both are compared before the batch is committed.
    rests_on_recent_end: bool,
}

/// What the database answered.
pub(super) struct Sent {
    /// When the batch was stored, on the ledger's clock; None if nothing was written.
    pub(super) stored_at: Option<Timestamp>,
    /// What the ledger's clock reads.
    wall: i64,
}

impl Statement {
    /// Builds the call for a batch that was decided on `replica` in a trial that is still open.
    ///
    /// # Errors
    /// `Damaged`, when the memory lacks what the batch changed.
    pub(super) fn new(replica: &Replica, dispatch: &Dispatch<'_>) -> Result<Self, Failure> {
        let mut to = Values {
            names: Vec::new(),
            each: Vec::new(),
            types: Vec::new(),
            row_types: dispatch.types.clone(),
        };
        let batch = dispatch.batch;
        to.put("event", int(replica.no.0)?);
        put_batch(&mut to, dispatch);
        put_event(&mut to, replica, batch)?;
        units::put_units(&mut to, replica, &dispatch.read_set)?;
        units::put_holds(&mut to, replica, dispatch)?;
        units::put_audit(&mut to, batch)?;
        sales::put_accounts(&mut to, &dispatch.read_set.accounts)?;
        sales::put_bookings(&mut to, replica, &dispatch.read_set)?;
        sales::put_records(&mut to, batch)?;
        sales::put_effects(&mut to, batch)?;
        sales::put_messages(&mut to, &batch.messages)?;
        let over_since = dispatch.read_set.over_since;
        Ok(Self {
            values: to,
            changed: changed_event(replica, batch).cloned(),
            over_since,
            rests_on_recent_end: over_since > dispatch.now.ms().saturating_sub(CLOCK_OFF_MS),
        })
    }

    /// Stores the batch, in the transaction that is open on this connection, which it ends, or in
    /// one of its own. Passes the database's clock to `time`. Returns since when, on the ledger's
    /// clock, the batch is durable; None if a row had another version, the clock was too far off, or
    /// a hold was over: then nothing was written.
    ///
    /// # Errors
    /// [`Failure`]: `Refused` wrote nothing, `Unknown` may have been stored.
    pub(super) async fn send(
        &self,
        connection: &mut Connection,
        (time, clock): (&Time, &dyn Clock),
    ) -> Result<Option<Timestamp>, Failure> {
        let has_more = self.rests_on_recent_end || self.changed.is_some();
        if has_more && !connection.in_transaction() {
            connection.begin_write().await?;
        }
        let is_within = connection.in_transaction();
        let sent = self.send_within(connection).await;
        if let Ok(sent) = &sent {
            time.learn(sent.wall);
        }
        if !is_within {
            return sent.map(|sent| sent.stored_at);
        }
        match sent {
            Ok(Sent {
                stored_at: Some(at),
                wall,
            }) if wall >= self.over_since => {
                // Other servers take the time of a commit for theirs, and theirs may not be as far ahead.
                let ahead = at
                    .ms()
                    .saturating_sub(wall)
                    .saturating_sub(CLOCK_OFF_MS / 2);
                let ahead = u64::try_from(ahead).unwrap_or_default();
                clock.sleep_until(clock.boot().plus_ms(ahead)).await;
                connection.commit().await?;
                Ok(Some(at))
            }
            sent => {
                connection.roll_back().await;
                sent.map(|_| None)
            }
        }
    }

    /// Runs the call. A transaction that is open stays open, unlike with [`Statement::send`].
    pub(super) async fn send_within(&self, connection: &mut Connection) -> Result<Sent, Failure> {
        let (call, values) = ((self.values.call(), "batches"), self.values.of());
        let read = |row: &mut Reader<'_>| {
            Ok(Sent {
                stored_at: row.get()?,
                wall: row.get()?,
            })
        };
        let answer = connection.first(call, &values, read).await?;
        let sent = answer.ok_or_else(|| Damaged::new("batches", "no answer"))?;
        if let Some(event) = self.changed.as_ref().filter(|_| sent.stored_at.is_some()) {
            let (no, name) = (int(event.no.0)?, event.name.as_str());
            let starts_at = event.starts_at.map(Timestamp::ms);
            let values = [bind(&no), bind(&name), bind(&starts_at)];
            connection.rows(DESCRIBE_EVENT, &values).await?;
        }
        Ok(sent)
    }
}

/// Adds the batch itself, and when it was decided.
fn put_batch(to: &mut Values, dispatch: &Dispatch<'_>) {
    let (batch, read_set) = (dispatch.batch, &dispatch.read_set);
    to.put("batch_id", dispatch.id);
    to.put("server_id", dispatch.server);
    let commands = batch.applied.iter().map(|applied| applied.commits.len());
    let commands = i32::try_from(commands.sum::<usize>()).unwrap_or(i32::MAX);
    to.put("commands", commands);
    to.put("decided_at", dispatch.now.ms());
    to.put("good_until", read_set.good_until);
    let clock_off = if batch.renews_event() {
        CHANGE_OFF_MS
    } else {
        CLOCK_OFF_MS
    };
    to.put("clock_off", clock_off);
    to.put("given_clock", dispatch.given);
    to.put("event_seen", read_set.event_version);
}

fn changed_event<'a>(replica: &'a Replica, batch: &Batch) -> Option<&'a Arc<Event>> {
    let event = replica.inventory.event(replica.no);
    event.filter(|_| batch.renews_event())
}

/// Adds the event's policy and cancellation: nulls when the event's row does not change.
fn put_event(to: &mut Values, replica: &Replica, batch: &Batch) -> Result<(), Failure> {
    let event = changed_event(replica, batch);
    let policy = event.map(|event| policy_to_json(&event.policy));
    to.put("new_policy", policy.transpose()?);
    let cancelled = event.and_then(|event| event.cancelled());
    to.put("new_cancelled", cancelled.map(ToString::to_string));
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::ledger::postgres::limits::{EVENT_LOCK_MS, LOCK_MS};

    const STORE: &str = include_str!("../../../../migrations/postgres/V12__store_batch.sql");

    #[test]
    fn the_events_lock_and_the_rows_are_waited_for_as_long_as_the_bounds_say() {
        let waits = STORE.match_indices("SET LOCAL lock_timeout = ");
        let waits = waits.map(|(at, set)| STORE[at + set.len()..].split(';').next().unwrap());
        let bounds = [EVENT_LOCK_MS.to_string(), LOCK_MS.to_string()];
        assert_eq!(waits.collect::<Vec<_>>(), bounds);
    }
}
