//! An operator's correction of the ledger's clock, with every server stopped (`docs/decisions/0120`): one
//! transaction, in which every time that is still to come moves with the clock. A server that runs all the
//! same has another idea of the time from then on: what it sends is refused until it is started again.

use std::sync::Arc;

use soldonce_clock::{Clock, Entropy};

use super::address::Serves;
use super::bind::bind;
use super::context::Context;
use super::database::{Connection, Database};
use super::event_slot::EventSlot;
use super::failure::Failure;
use super::feed::unnumbered;
use super::limits::{CORRECT_WAIT_MS, NUMBER_EVERY_MS, OPERATOR_ANSWER_MS, SESSION_END_MS};
use super::replica::ToLoad;
use super::write::{Dispatch, Statement};
use super::{OpenError, PostgresLedger, PostgresOptions};
use crate::ledger::Observer;
use crate::ledger::batch::Batch;
use crate::ledger::corrected::{ClockCorrected, Correction};
use crate::ledger::rows::Damaged;
use crate::ledger::rows::reader::Reader;

/// Servers that log in by other roles are known by their name: what kind a process of theirs is may not be visible.
const OTHERS: &str = "-- others
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()
  AND (usename = current_user OR application_name = current_setting('application_name'))
  AND coalesce(backend_type, 'client backend') = 'client backend'";

/// Stops first the numbering of commits, then their storing: every server locks in this order.
const STOP_NUMBERS: &str = "-- stop_numbers
SELECT FROM sequencer WHERE one = 1 FOR UPDATE";
const STOP_CLOCK: &str = "-- stop_clock
LOCK TABLE clock IN ACCESS EXCLUSIVE MODE";

/// The clocks of the ledger and of the machine, and whether a commit waits for its number.
const CLOCKS: &str = concat!(
    "-- clocks
SELECT greatest((SELECT at FROM clock), ledger_clock(ms)), ms, EXISTS (
    SELECT FROM batches b WHERE ",
    unnumbered!(),
    ")
FROM (SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS ms) AS machine"
);

const SET_CLOCK: &str = "-- set_clock
UPDATE clock SET at = $1, meet = 0, ahead = 0 WHERE one = 1";

/// Sets back the times that the batches of the correction leave as they are.
const SET_BACK: [&str; 4] = [
    "-- set_caps_back
UPDATE holds SET max_expires_at = max_expires_at - $1 WHERE state IN (0, 1)",
    "-- set_effects_back
UPDATE outbox SET at = at - $1, taken_until = 0 WHERE done_at IS NULL",
    "-- set_deliveries_back
UPDATE deliveries SET next_at = next_at - $1, taken_until = 0 WHERE state = 0",
    "-- set_endpoints_back
UPDATE webhook_endpoints
SET rotated_at = rotated_at - $1, disabled_at = disabled_at - $1, quiet_until = quiet_until - $1",
];

/// All that came before is numbered, and no server looks there for the latest time any more.
const PASS_OLD: &str = "-- pass_old
UPDATE sequencer SET xid = shifted_xid()::text::bigint WHERE one = 1";

/// Sets the clock of a database's ledger back to the database machine's, if it is ahead. Every hold keeps the
/// time it has left, and the history of every event says so.
///
/// # Errors
/// [`OpenError`]: `Failed` while servers are connected, or when the machine's clock was never set.
///
/// # Cancel safety
/// It is one transaction.
pub async fn correct_clock(
    options: &PostgresOptions,
    clock: Arc<dyn Clock>,
    entropy: &dyn Entropy,
    observer: Arc<dyn Observer>,
) -> Result<ClockCorrected, OpenError> {
    require_no_other_session(options, Arc::clone(&clock)).await?;
    let ledger = PostgresLedger::open(options, clock, entropy, observer).await?;
    let corrected = match ledger.parts.context.catalogue.unreadable() {
        None => correct(&ledger.parts.context).await,
        // Its holds would keep their ends.
        Some(event) => Err(OpenError::Failed(format!(
            "event {} cannot be read: see `soldonce verify`, nothing was changed",
            event.0
        ))),
    };
    crate::ledger::Ledger::close(&ledger).await;
    corrected
}

async fn require_no_other_session(
    options: &PostgresOptions,
    clock: Arc<dyn Clock>,
) -> Result<(), OpenError> {
    let database = Database::new(options, Serves::Primary, Arc::clone(&clock))?;
    let mut connection = database.connection().await?;
    let end = clock.boot().plus_ms(SESSION_END_MS);
    loop {
        let others = connection.one((OTHERS, "pg_stat_activity"), &[]).await?;
        let others: i64 = others.unwrap_or(0);
        if others == 0 {
            return Ok(());
        }
        let now = clock.boot();
        if now >= end {
            return Err(OpenError::Failed(format!(
                "stop every server and pool first: they have {others} connections to the database"
            )));
        }
        clock.sleep_until(now.plus_ms(NUMBER_EVERY_MS)).await;
    }
}

/// Corrects the clock once every commit has its number, or fails after [`CORRECT_WAIT_MS`]. Commits
/// that come meanwhile are of servers that should have been stopped.
async fn correct(context: &Context) -> Result<ClockCorrected, OpenError> {
    let database = context.database.clone().patient(OPERATOR_ANSWER_MS);
    let end = context.clock.boot().plus_ms(CORRECT_WAIT_MS);
    while context.clock.boot() < end {
        let mut connection = database.connection().await?;
        connection.begin_write().await?;
        let corrected = correct_within(context, &mut connection).await;
        if let Ok(Some(done)) = corrected {
            connection.commit().await?;
            return Ok(done);
        }
        connection.roll_back().await;
        drop(connection);
        corrected?;
        let soon = context.clock.boot().plus_ms(NUMBER_EVERY_MS);
        context.clock.sleep_until(soon).await;
    }
    let text = "commits wait for their numbers: see `soldonce doctor`, nothing was changed";
    Err(OpenError::Failed(text.to_owned()))
}

/// Corrects the clock in the transaction that is open. None while a commit has no number.
async fn correct_within(
    context: &Context,
    connection: &mut Connection,
) -> Result<Option<ClockCorrected>, OpenError> {
    connection.rows(STOP_NUMBERS, &[]).await?;
    connection.run(STOP_CLOCK).await?;
    let read = |row: &mut Reader<'_>| Ok((row.get()?, row.get()?, row.get()?));
    let clocks = connection.first((CLOCKS, "clock"), &[], read).await?;
    let missing = || Failure::from(Damaged::new("clock", "its row is missing"));
    let (ledger, now, is_unnumbered) = clocks.ok_or_else(missing)?;
    if is_unnumbered {
        return Ok(None);
    }
    let Some(correction) = Correction::new(ledger, now).map_err(OpenError::Failed)? else {
        return Ok(Some(ClockCorrected::default()));
    };
    let now = correction.now.ms();
    connection.rows(SET_CLOCK, &[bind(&now)]).await?;
    let mut all = ClockCorrected::default();
    for slot in context.catalogue.all() {
        all = all.and(correct_event(context, connection, &slot, correction).await?);
    }
    let by = i64::try_from(correction.by.ms()).unwrap_or(i64::MAX);
    for sql in SET_BACK {
        connection.rows(sql, &[bind(&by)]).await?;
    }
    connection.rows(PASS_OLD, &[]).await?;
    all.set_back_ms = correction.by.ms();
    Ok(Some(all))
}

async fn correct_event(
    context: &Context,
    connection: &mut Connection,
    slot: &EventSlot,
    Correction { now, by }: Correction,
) -> Result<ClockCorrected, OpenError> {
    let mut replica = slot.replica.lock().await;
    replica.forget();
    let mut named = ToLoad::default();
    context
        .refresh(connection, slot, &mut replica, &named)
        .await?;
    named
        .bookings
        .extend(replica.inventory.marked_booking(slot.no));
    context
        .refresh(connection, slot, &mut replica, &named)
        .await?;
    let applied = replica
        .inventory
        .correct_clock(now, by, &Correction::origin())
        .map_err(|rejection| OpenError::Failed(rejection.to_string()))?;
    let done = ClockCorrected::of(&applied, by);
    let mut batch = Batch::default();
    batch.add(applied);
    let dispatch = Dispatch {
        given: Some(now.ms()),
        ..context.dispatch(&replica, &batch, now)
    };
    let statement = Statement::new(&replica, &dispatch)?;
    let sent = statement.send_within(connection).await?;
    replica.forget();
    if sent.stored_at.is_none() {
        let text = format!("event {} has moved meanwhile: try again", slot.no.0);
        return Err(OpenError::Failed(text));
    }
    Ok(done)
}
