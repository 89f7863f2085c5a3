//! The columns of the rows that remain of dropped events.

use soldonce_core::EventNo;

use super::Damaged;
use super::chain::put_origin;
use super::column::Column;
use super::reader::Reader;
use crate::ledger::Tombstone;

/// The columns that [`get`] reads.
macro_rules! dropped_columns {
    () => {
        " d.event_no, d.at, d.actor, d.request, d.seq, d.hash"
    };
}

/// The columns that [`get_counts`] reads.
macro_rules! dropped_counts {
    () => {
        " d.units, d.bookings, d.transitions, d.is_cleared"
    };
}

pub(crate) fn put(event: EventNo, tombstone: &Tombstone) -> [Column<'_>; 6] {
    let [actor, request] = put_origin(&tombstone.origin);
    [
        Column::Small(event.0),
        Column::Long(tombstone.at.ms()),
        actor,
        request,
        Column::Count(tombstone.seq.0),
        Column::Bytes(&tombstone.hash),
    ]
}

/// Reads the number of the event and its row as it was written at the drop, its counts 0.
pub(crate) fn get(row: &mut Reader<'_>) -> Result<(EventNo, Tombstone), Damaged> {
    let event = row.get()?;
    let (at, origin, end) = (row.get()?, row.get()?, (row.get()?, row.get()?));
    Ok((event, Tombstone::new(at, origin, end)))
}

/// Reads the counts of rows deleted since the drop into `written`.
pub(crate) fn get_counts(row: &mut Reader<'_>, written: Tombstone) -> Result<Tombstone, Damaged> {
    Ok(Tombstone {
        units: row.get()?,
        bookings: row.get()?,
        transitions: row.get()?,
        is_cleared: row.get::<Option<bool>>()?.unwrap_or_default(),
        ..written
    })
}
