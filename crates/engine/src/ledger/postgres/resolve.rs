//! Finds out whether a batch without an answer was stored, on every server that has to have it. The batch's
//! own id decides. A server that gives the batch up writes a row with the same id first, which waits for a
//! transaction that is still running; after that the batch can never be stored.

use std::sync::Arc;

use soldonce_clock::Clock;
use soldonce_core::Timestamp;

use super::bind::bind;
use super::database::{Connection, Database};
use super::failure::Failure;
use super::limits::{RESOLVE_EVERY_MS, RESOLVE_MS, RESOLVE_TRIES};
use super::tables::Id;
use crate::ledger::rows::reader::Reader;

/// Takes the id of a batch, unless the batch has it. It writes in either case: its own commit waits for the
/// synchronous standbys, and so for the batch's.
const GIVE_UP: &str = "-- give_up
INSERT INTO batches (id, event_no, server, place, at, commands, renews, units, versions, holds,
                     bookings, holders)
VALUES ($1, -1, $2, 0, 0, 0, false, '{}', '{}', '{}', '{}', '{}')
ON CONFLICT (id) DO UPDATE SET server = batches.server";

const BATCH: &str = "-- batch
SELECT at, event_no FROM batches WHERE id = $1";

/// Returns the time at which the batch was stored. None if it was not and never will be.
///
/// # Errors
/// `Unknown`, when the database did not answer in time.
pub(super) async fn resolve(
    database: &Database,
    clock: &Arc<dyn Clock>,
    batch: (Id, Id),
) -> Result<Option<Timestamp>, Failure> {
    let until = clock.boot().plus_ms(RESOLVE_MS);
    // A caller waits for this. A query that is given up may still run: it does no harm.
    tokio::select! {
        biased;
        known = try_often(database, clock, batch) => known,
        () = clock.sleep_until(until) => {
            Err(Failure::Unknown(format!("no answer in {RESOLVE_MS} ms")))
        }
    }
}

async fn try_often(
    database: &Database,
    clock: &Arc<dyn Clock>,
    (batch, server): (Id, Id),
) -> Result<Option<Timestamp>, Failure> {
    let mut last = Failure::Unknown("no query was sent".to_owned());
    for _ in 0..RESOLVE_TRIES {
        let resolving =
            async { resolve_once(&mut database.connection().await?, batch, server).await };
        match resolving.await {
            Ok(known) => return Ok(known),
            Err(failure) => last = failure,
        }
        let next = clock.boot().plus_ms(RESOLVE_EVERY_MS);
        clock.sleep_until(next).await;
    }
    Err(Failure::Unknown(last.to_string()))
}

/// Finds out the same as [`resolve`], with one attempt on this connection.
pub(super) async fn resolve_once(
    connection: &mut Connection,
    batch: Id,
    server: Id,
) -> Result<Option<Timestamp>, Failure> {
    let values = [bind(&batch), bind(&server)];
    connection.rows(GIVE_UP, &values).await?;
    let read = |row: &mut Reader<'_>| Ok((row.get()?, row.get::<i64>()?));
    let by_id = [bind(&batch)];
    let found = connection.first((BATCH, "batches"), &by_id, read).await?;
    let missing = || Failure::Unknown("a batch that was given up is not there".to_owned());
    let (at, event): (Timestamp, _) = found.ok_or_else(missing)?;
    Ok((event >= 0).then_some(at))
}
