//! Units that ever changed. Every change is guarded by the version and the owner it goes out from: a memory
//! that is ahead of the file, behind it or wrong stops the ledger instead of selling twice.

use rusqlite::{Connection, Row, params};
use soldonce_core::{EventNo, Fence, Inventory, Unit, UnitNo, UnitState, Version};

use super::codes::{require_sum, sum_state};
use crate::ledger::rows::codes::{StateColumns, small, unsigned};
use crate::ledger::sqlite::checksum::Checksum;
use crate::ledger::sqlite::fault::{Fault, one_row, stored};

const TABLE: &str = "units";

// OR FAIL here and with lines and audit: what a guard refuses ends the whole transaction. With the default, ABORT,
// SQLite keeps a journal of each statement that fires a trigger, to undo it alone.
const INSERT_UNIT: &str = "-- insert_unit
INSERT OR FAIL INTO units (event_no, unit_no, state, owner, until, fence, version, checksum)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";

const UPDATE_UNIT: &str = "-- update_unit
UPDATE OR FAIL units SET state = ?3, owner = ?4, until = ?5, fence = ?6, version = ?7, checksum = ?8
WHERE event_no = ?1 AND unit_no = ?2 AND version = ?9 AND fence <= ?6
  AND state = ?10 AND owner IS ?11";

const ALL_UNITS: &str = "-- all_units
SELECT event_no, unit_no, state, owner, until, fence, version, checksum
FROM units ORDER BY event_no, unit_no";

const UNITS_OF_EVENT: &str = "-- units_of_event
SELECT event_no, unit_no, state, owner, until, fence, version, checksum
FROM units WHERE event_no = ?1 ORDER BY unit_no";

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[INSERT_UNIT, UPDATE_UNIT, ALL_UNITS, UNITS_OF_EVENT];

/// A unit that one or more commands of a batch changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChangedUnit {
    /// Of which event.
    pub(crate) event: EventNo,
    /// Which unit.
    pub(crate) unit: UnitNo,
    /// Its version in the file.
    pub(crate) before: Version,
    /// Its state in the file.
    pub(crate) state: UnitState,
}

/// Which units are written: those that the batch leaves sold, or the others.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct IsSold(pub(crate) bool);

/// Writes the state in which the batch leaves each unit.
pub(crate) fn write(
    connection: &Connection,
    inventory: &Inventory,
    changed: &[ChangedUnit],
    written: IsSold,
) -> Result<(), Fault> {
    let mut insert = connection.prepare_cached(INSERT_UNIT)?;
    let mut update = connection.prepare_cached(UPDATE_UNIT)?;
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
        let columns = StateColumns::from(unit.state);
        let (fence, version) = (stored(unit.fence.0)?, stored(unit.version.0)?);
        let StateColumns {
            state,
            owner,
            until,
        } = columns;
        let sum = checksum(*event, *no, unit)?.stored();
        if *before == Version::default() {
            let values = params![event.0, no.0, state, owner, until, fence, version, sum];
            one_row("insert_unit", insert.execute(values)?)?;
        } else {
            let (before, was) = (stored(before.0)?, StateColumns::from(*was));
            let values = params![
                event.0, no.0, state, owner, until, fence, version, sum, before, was.state,
                was.owner
            ];
            one_row("update_unit", update.execute(values)?)?;
        }
    }
    Ok(())
}

fn checksum(event: EventNo, no: UnitNo, unit: &Unit) -> Result<Checksum, Fault> {
    let sum = Checksum::of(TABLE)
        .int(i64::from(event.0))
        .int(i64::from(no.0));
    let sum = sum_state(sum, StateColumns::from(unit.state));
    Ok(sum.int(stored(unit.fence.0)?).int(stored(unit.version.0)?))
}

/// One row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnitRow {
    /// Of which event.
    pub(crate) event: EventNo,
    /// Which unit.
    pub(crate) no: UnitNo,
    /// What it is.
    pub(crate) unit: Unit,
}

impl UnitRow {
    fn read(row: &Row<'_>) -> Result<Self, Fault> {
        let event = EventNo(small(row.get(0)?, TABLE)?);
        let no = UnitNo(small(row.get(1)?, TABLE)?);
        let columns = StateColumns {
            state: row.get(2)?,
            owner: row.get(3)?,
            until: row.get(4)?,
        };
        let unit = Unit {
            state: columns.state(TABLE)?,
            fence: Fence(unsigned(row.get(5)?, TABLE)?),
            version: Version(unsigned(row.get(6)?, TABLE)?),
        };
        let name = || format!("unit {} of event {}", no.0, event.0);
        require_sum(TABLE, checksum(event, no, &unit)?, row.get(7)?, name)?;
        Ok(Self { event, no, unit })
    }
}

/// Every row, in the order of events and units.
pub(crate) fn each(
    connection: &Connection,
    mut take: impl FnMut(UnitRow) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let mut statement = connection.prepare(ALL_UNITS)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        take(UnitRow::read(row)?)?;
    }
    Ok(())
}

/// Every row of one event. A damaged row is given as the fault it is, and the walk goes on.
pub(crate) fn each_of(
    connection: &Connection,
    event: EventNo,
    mut take: impl FnMut(Result<UnitRow, Fault>),
) -> Result<(), Fault> {
    let mut statement = connection.prepare(UNITS_OF_EVENT)?;
    let mut rows = statement.query([event.0])?;
    while let Some(row) = rows.next()? {
        take(UnitRow::read(row));
    }
    Ok(())
}
