//! An operator's correction of the clock of a stopped ledger (`docs/decisions/0120`): one
//! transaction that sets every time in the future back with the clock.

use rusqlite::{Connection, TransactionBehavior};
use soldonce_clock::{Clock, Entropy};
use soldonce_core::{BookingId, EventNo, Inventory, Timestamp};

use super::batch::{self, Tails};
use super::fault::Fault;
use super::folder::Folder;
use super::tables::{bookings, deliveries, endpoints, execute};
use super::{OpenError, SqliteOptions, connection, rebuild};
use crate::ledger::batch::Batch;
use crate::ledger::corrected::{ClockCorrected, Correction};

/// Sets back the caps of live holds; the batch writes their other columns and checksums.
const SET_CAPS_BACK: &str = "-- set_caps_back
UPDATE holds SET max_expires_at = max_expires_at - ?1 WHERE state IN (0, 1)";

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[SET_CAPS_BACK];

/// Sets the clock of a folder's ledger back to the machine's, if it is ahead. Every hold keeps the
/// time it has left, and the history of every event records the correction.
///
/// # Errors
/// [`OpenError`]: `Missing` when there is no ledger, `Locked` while a server has it, `Failed` when
/// the machine's clock was never set.
pub fn correct_clock(
    options: &SqliteOptions,
    clock: &dyn Clock,
    entropy: &dyn Entropy,
) -> Result<ClockCorrected, OpenError> {
    let folder = Folder::new(&options.folder);
    if !folder.has_database()? {
        return Err(OpenError::Missing {
            folder: options.folder.clone(),
        });
    }
    let lock = folder.take()?;
    let rebuild::OpenLedger {
        mut connection,
        checkpointer,
        mut inventory,
        mut tails,
        high_water,
        ..
    } = rebuild::open(&folder, options, entropy)?;
    let now = Timestamp::from_ms(clock.wall_ms());
    let wanted = Correction::new(tails.head.clock, now).map_err(OpenError::Failed)?;
    let Some(correction) = wanted else {
        return Ok(ClockCorrected::default());
    };
    let inventory = &mut inventory;
    for booking in marked_bookings(inventory) {
        let found = bookings::find(&connection, booking)?;
        let missing = || Fault::damaged("bookings", format!("{booking} is missing"));
        inventory.restore_booking(found.ok_or_else(missing)?);
    }
    let Correction { now, by } = correction;
    let applied = inventory.correct_clock(now, by, &Correction::origin());
    let applied = applied.map_err(|rejection| OpenError::Failed(rejection.to_string()))?;
    let done = ClockCorrected::of(&applied, by);
    let mut batch = Batch::default();
    batch.add(applied);
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    write(&transaction, inventory, &batch, &mut tails, correction)?;
    transaction.commit()?;
    high_water.write(&tails.head)?;
    drop(checkpointer);
    connection::final_checkpoint(&connection)?;
    drop((connection, lock));
    Ok(done)
}

fn marked_bookings(inventory: &Inventory) -> Vec<BookingId> {
    let events: Vec<EventNo> = inventory.events().map(|event| event.no).collect();
    let marked = events
        .into_iter()
        .filter_map(|no| inventory.marked_booking(no));
    marked
        .filter(|booking| inventory.booking(*booking).is_none())
        .collect()
}

fn write(
    connection: &Connection,
    inventory: &Inventory,
    batch: &Batch,
    tails: &mut Tails,
    Correction { now, by }: Correction,
) -> Result<(), Fault> {
    let span = i64::try_from(by.ms()).unwrap_or(i64::MAX);
    execute(connection, SET_CAPS_BACK, [span])?;
    batch::write(connection, inventory, batch, tails, now)?;
    deliveries::set_back(connection, by)?;
    tails.endpoints = endpoints::set_back(connection, by)?;
    tails.head = tails.head.set_back(now);
    tails.head.write_set_back(connection)
}
