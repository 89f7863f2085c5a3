//! Units that ever changed. Every update requires that the row has the version and the owner that
//! it starts from: a memory that is ahead of the file, behind it or wrong stops the ledger instead
//! of selling twice.

use rusqlite::{Connection, Row};
use soldonce_core::{EventNo, Inventory, Unit, UnitNo, UnitState, Version};

use super::summed::RowWriter;
use super::{each_row, summed};
use crate::ledger::rows::column::Column;
use crate::ledger::rows::reader::Reader;
use crate::ledger::rows::units::{get, put, put_state};
use crate::ledger::sqlite::fault::Fault;

const TABLE: &str = "units";

/// Selects units with their checksums.
macro_rules! select {
    ($name:literal, $which:literal) => {
        concat!(
            $name,
            "\nSELECT event_no, ",
            unit_columns!(),
            ", checksum FROM units ",
            $which
        )
    };
}

statements! {
    // OR FAIL here and with lines and audit: what a guard refuses ends the transaction. With the
    // default, ABORT, SQLite keeps a journal of each statement that fires a trigger, to undo it
    // alone.
    INSERT_UNIT = "-- insert_unit
INSERT OR FAIL INTO units (event_no, unit_no, state, owner, until, fence, version, checksum)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";

    UPDATE_UNIT = "-- update_unit
UPDATE OR FAIL units SET state = ?3, owner = ?4, until = ?5, fence = ?6, version = ?7, checksum = ?8
WHERE event_no = ?1 AND unit_no = ?2 AND version = ?9 AND fence <= ?6
  AND state = ?10 AND owner IS ?11";

    ALL_UNITS = select!("-- all_units", "ORDER BY event_no, unit_no");

    UNITS_OF_EVENT = select!("-- units_of_event", "WHERE event_no = ?1 ORDER BY unit_no");
}

/// A unit that one or more commands of a batch changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChangedUnit {
    pub(crate) event: EventNo,
    pub(crate) unit: UnitNo,
    pub(crate) before: Version,
    pub(crate) state: UnitState,
}

/// Which units are written: those that the batch leaves sold, or the others.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct IsSold(pub(crate) bool);

/// Writes the units that the batch leaves sold, or the others, in their state after it.
pub(crate) fn write(
    connection: &Connection,
    inventory: &Inventory,
    changed: &[ChangedUnit],
    written: IsSold,
) -> Result<(), Fault> {
    let mut insert = RowWriter::new(connection, INSERT_UNIT, TABLE)?;
    let mut update = RowWriter::new(connection, UPDATE_UNIT, TABLE)?;
    for ChangedUnit {
        event,
        unit: no,
        before,
        state: was,
    } in changed
    {
        let seating = inventory.seating(*event);
        let unit = seating.and_then(|seating| seating.units().get(no.index()));
        let unit = unit.ok_or_else(|| Fault::damaged(TABLE, format!("{no:?} is not in memory")))?;
        if matches!(unit.state, UnitState::Sold(_)) != written.0 {
            continue;
        }
        let [state, owner, until, fence, version] = put(unit);
        let (event, no) = (Column::Small(event.0), Column::Small(no.0));
        let row = [event, no, state, owner, until, fence, version];
        if *before == Version::default() {
            insert.write(&row)?;
        } else {
            let [state, owner, _] = put_state(*was);
            let seen = [Column::Count(before.0), state, owner];
            update.write_with(&row, &seen)?;
        }
    }
    Ok(())
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct UnitRow {
    pub(crate) event: EventNo,
    pub(crate) no: UnitNo,
    pub(crate) unit: Unit,
}

impl UnitRow {
    fn read(row: &Row<'_>) -> Result<Self, Fault> {
        let name = |row: &Self| format!("unit {} of event {}", row.no.0, row.event.0);
        let get = |row: &mut Reader<'_>| {
            let (event, no, unit) = (row.get()?, row.get()?, get(row)?);
            Ok(Self { event, no, unit })
        };
        summed::read(row, TABLE, get, name)
    }
}

/// Passes every row to `take`, in the order of events and units.
pub(crate) fn each(
    connection: &Connection,
    mut take: impl FnMut(UnitRow) -> Result<(), Fault>,
) -> Result<(), Fault> {
    each_row(connection, ALL_UNITS, [], |row| take(UnitRow::read(row)?))
}

/// Passes every row of one event to `take`; a damaged row as its fault, and the scan goes on.
pub(crate) fn each_of(
    connection: &Connection,
    event: EventNo,
    mut take: impl FnMut(Result<UnitRow, Fault>),
) -> Result<(), Fault> {
    each_row(connection, UNITS_OF_EVENT, [event.0], |row| {
        take(UnitRow::read(row));
        Ok(())
    })
}
