//! Units.

use soldonce_core::{Unit, UnitState};

use super::Damaged;
use super::codes::StateColumns;
use super::column::Column;
use super::reader::Reader;

/// The number of a unit, and the columns that [`get`] reads.
macro_rules! unit_columns {
    () => {
        "unit_no, state, owner, until, fence, version"
    };
}

/// The columns of a unit's state.
pub(crate) fn put_state(state: UnitState) -> [Column<'static>; 3] {
    let columns = StateColumns::from(state);
    [
        Column::Code(columns.state),
        Column::OptId(columns.owner),
        Column::OptLong(columns.until),
    ]
}

/// The columns of a unit that are its own.
pub(crate) fn put(unit: &Unit) -> [Column<'static>; 5] {
    let [state, owner, until] = put_state(unit.state);
    let (fence, version) = (Column::Count(unit.fence.0), Column::Count(unit.version.0));
    [state, owner, until, fence, version]
}

pub(crate) fn get(row: &mut Reader<'_>) -> Result<Unit, Damaged> {
    Ok(Unit {
        state: row.get()?,
        fence: row.get()?,
        version: row.get()?,
    })
}
