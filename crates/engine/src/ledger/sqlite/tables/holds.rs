//! Holds. A hold that is over never changes again.

use rusqlite::{Connection, Row, params};
use soldonce_core::{EventNo, Hold, HoldId, HoldTerms};

use super::summed::RowWriter;
use super::{all_rows, each_row, first_row, summed};
use crate::ledger::Page;
use crate::ledger::rows::holds::{get, put};
use crate::ledger::rows::most;
use crate::ledger::rows::packed::pack;
use crate::ledger::sqlite::fault::Fault;

const TABLE: &str = "holds";

/// Selects holds with their checksums.
macro_rules! select {
    ($name:literal, $which:literal) => {
        concat!(
            $name,
            "\nSELECT",
            hold_columns!(),
            ", checksum FROM holds ",
            $which
        )
    };
}

statements! {
    INSERT_HOLD = "-- insert_hold
INSERT INTO holds (id, event_no, caller, holder, state, booking, reason, fence, units, created_at,
                   expires_at, max_expires_at, together, checksum)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)";

    UPDATE_HOLD = "-- update_hold
UPDATE holds SET state = ?5, booking = ?6, reason = ?7, fence = ?8, units = ?9, expires_at = ?11,
                 checksum = ?14
WHERE id = ?1 AND event_no = ?2 AND caller = ?3 AND holder = ?4 AND created_at = ?10
  AND max_expires_at = ?12 AND together IS ?13 AND state IN (0, 1) AND fence <= ?8";

    HOLD = select!(
        "-- hold",
        "WHERE id = ?1
  AND NOT EXISTS (SELECT 1 FROM dropped_events d WHERE d.event_no = holds.event_no)"
    );

    /// Ids rise with time and no hold lives longer than its cap, so the scan begins at the oldest
    /// hold that still has a unit.
    LIVE_HOLDS = select!(
        "-- live_holds",
        "WHERE id >= ?1 AND state IN (0, 1) ORDER BY id"
    );

    ALL_HOLDS = select!("-- all_holds", "ORDER BY id");

    HOLDS_OF_EVENT = select!("-- holds_of_event", "WHERE event_no = ?1 ORDER BY id");

    HOLDS_AFTER = select!(
        "-- holds_after",
        "WHERE event_no = ?1 AND id > ?2 ORDER BY id LIMIT ?3"
    );
}

/// Inserts the holds in `new`, which is sorted, and updates the others; fails if one of those is
/// missing from the file or over in it.
pub(crate) fn write<'a>(
    connection: &Connection,
    holds: impl Iterator<Item = Result<&'a Hold, Fault>>,
    new: &[HoldId],
) -> Result<(), Fault> {
    let mut insert = RowWriter::new(connection, INSERT_HOLD, TABLE)?;
    let mut update = RowWriter::new(connection, UPDATE_HOLD, TABLE)?;
    for hold in holds {
        let hold = hold?;
        let is_new = new.binary_search(&hold.id).is_ok();
        let writer = if is_new { &mut insert } else { &mut update };
        writer.write(&put(hold, &pack(&hold.units)?))?;
    }
    Ok(())
}

fn read(row: &Row<'_>) -> Result<Hold, Fault> {
    summed::read(row, TABLE, get, |hold| hold.id.to_string())
}

/// Finds a hold by its id; `None` if it is unknown or its event was dropped.
pub(crate) fn find(connection: &Connection, id: HoldId) -> Result<Option<Hold>, Fault> {
    first_row(connection, HOLD, [id.bytes()], read)
}

/// Reads holds of an event, in the order of ids.
pub(crate) fn page(
    connection: &Connection,
    event: EventNo,
    (after, limit): Page<HoldId>,
) -> Result<Vec<Hold>, Fault> {
    let after = after.map_or([0; 16], |id| *id.bytes());
    let values = params![event.0, after, most(limit)];
    all_rows(connection, HOLDS_AFTER, values, read)
}

/// Passes every hold that is not over to `take`, from the id `from` on.
pub(crate) fn each_live(
    connection: &Connection,
    from: HoldId,
    mut take: impl FnMut(Hold) -> Result<(), Fault>,
) -> Result<(), Fault> {
    each_row(connection, LIVE_HOLDS, [from.bytes()], |row| {
        take(read(row)?)
    })
}

/// Passes every hold of the ledger to `take`; a damaged row as its fault, and the scan goes on.
pub(crate) fn each(
    connection: &Connection,
    mut take: impl FnMut(Result<Hold, Fault>),
) -> Result<(), Fault> {
    each_row(connection, ALL_HOLDS, [], |row| {
        take(read(row));
        Ok(())
    })
}

/// Reads the terms of every hold of an event.
pub(crate) fn terms_of(connection: &Connection, event: EventNo) -> Result<Vec<HoldTerms>, Fault> {
    all_rows(connection, HOLDS_OF_EVENT, [event.0], |row| {
        Ok(HoldTerms::from(&read(row)?))
    })
}
