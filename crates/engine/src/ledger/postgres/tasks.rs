//! The tasks of a ledger: they advance its clock, register new events and delete old idempotency
//! records. The feed has its own tasks.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio_util::sync::CancellationToken;

use super::bind::bind;
use super::context::Context;
use super::failure::Failure;
use super::feed::{self, FeedPosition};
use super::limits::{CLOCK_EVERY_MS, CLOCK_OFF_MS, FOLLOW_EVERY_MS};
use super::tables::idempotency;
use super::{Parts, PostgresLedger};
use crate::catch_panic::catch_panic;
use crate::ledger::AgeClock;
use crate::limits::IDEMPOTENCY_MS;
use crate::trouble::Trouble;

/// Advances the clock row and reads it. A row that is locked is being advanced by another server.
/// When the machine's clock has stepped back, the two clocks meet again after twice the step.
const PUSH_CLOCK: &str = "-- push_clock
WITH machine AS (
    SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS ms
), wall AS (
    SELECT coalesce($1::bigint, ledger_clock(ms)) AS at, ms FROM machine
), free AS (
    SELECT one FROM clock FOR UPDATE SKIP LOCKED
), pushed AS (
    UPDATE clock
    SET at = greatest(clock.at, wall.at),
        meet = CASE WHEN $1::bigint IS NULL AND clock.at - wall.at > $2::bigint
                    THEN 2 * clock.at - wall.ms ELSE clock.meet END
    FROM wall, free WHERE clock.one = free.one
)
SELECT greatest((SELECT at FROM clock), (SELECT at FROM wall),
                (SELECT at FROM batches ORDER BY xid DESC LIMIT 1))";

/// Advances the ledger's clock, and sets this server's `time` by it.
pub(super) async fn push_clock(context: &Context) -> Result<(), Failure> {
    let given = context.time.given();
    let values = [bind(&given), bind(&CLOCK_OFF_MS)];
    let mut connection = context.database.connection().await?;
    if let Some(at) = connection.one((PUSH_CLOCK, "clock"), &values).await? {
        context.time.learn(at);
        context.time.reached(soldonce_core::Timestamp::from_ms(at));
    }
    Ok(())
}

/// Deletes some of the idempotency records that are older than [`IDEMPOTENCY_MS`].
async fn forget_records(context: &Context, ages: AgeClock) -> Result<(), Failure> {
    let now = ages.at(context.time.now(), &*context.clock);
    let before = now.ms().saturating_sub(IDEMPOTENCY_MS);
    let values = [bind(&before)];
    let database = &context.database;
    let rows = database.rows(idempotency::FORGET_RECORDS, &values).await;
    rows.map(drop)
}

impl PostgresLedger {
    /// Starts all tasks. `known` is where the ledger ended before the first event was read.
    pub(super) fn start_tasks(&self, known: FeedPosition) {
        let (context, shutdown) = (Arc::clone(&self.parts.context), self.shutdown.clone());
        let ages = AgeClock::starting_at(context.time.now(), &*context.clock);
        let timed = keep_time(context, ages, shutdown);
        self.parts.tasks().spawn(timed);
        let (parts, shutdown) = (Arc::clone(&self.parts), self.shutdown.clone());
        self.parts.tasks().spawn(find_events(parts, shutdown));
        let context = &self.parts.context;
        feed::start(&mut self.parts.tasks(), context, &self.shutdown, known);
    }
}

/// Registers new events of other servers, again and again until `shutdown`.
async fn find_events(parts: Arc<Parts>, shutdown: CancellationToken) {
    let mut trouble = Trouble::default();
    while parts.context.pause(&shutdown, FOLLOW_EVERY_MS).await {
        match catch_panic(parts.discover()).await {
            Some(Ok(())) if trouble.ends() => tracing::info!("new events are taken up again"),
            None | Some(Ok(())) => {}
            Some(Err(failure))
                if parts.context.is_reachable()
                    && !failure.is_full()
                    && trouble.lasts(parts.context.clock.boot()) =>
            {
                tracing::warn!(%failure, "new events cannot be taken up");
            }
            Some(Err(failure)) => tracing::debug!(%failure, "new events were not taken up"),
        }
    }
}

async fn keep_time(context: Arc<Context>, ages: AgeClock, shutdown: CancellationToken) {
    let mut trouble = Trouble::default();
    while context.pause(&shutdown, CLOCK_EVERY_MS).await {
        match catch_panic(push_clock(&context)).await {
            None => {}
            Some(Ok(())) => {
                context.is_reachable.store(true, Ordering::Release);
                if trouble.ends() {
                    tracing::info!("the database takes commands again");
                }
                if let Some(Err(failure)) = catch_panic(forget_records(&context, ages)).await {
                    tracing::debug!(%failure, "old idempotency records were not forgotten");
                }
            }
            // Those who write fill the connections or are in the way: then it does answer.
            Some(Err(failure)) if failure.is_contention() || failure.is_full() => {
                tracing::debug!(%failure, "the ledger's clock was not pushed on");
            }
            Some(Err(failure)) => {
                context.is_reachable.store(false, Ordering::Release);
                if trouble.lasts(context.clock.boot()) {
                    tracing::warn!(%failure, "no commands are taken until the database does");
                }
            }
        }
    }
}
