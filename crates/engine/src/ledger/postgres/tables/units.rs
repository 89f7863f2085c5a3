//! Units.

use soldonce_core::{Fence, Unit, UnitNo, UnitState, Version};
use tokio_postgres::Row;

use super::{Columns, Id, short};
use crate::ledger::rows::Damaged;
use crate::ledger::rows::codes::StateColumns;

const TABLE: &str = "units";

pub(in super::super) const UNITS_OF_EVENT: &str = "-- units_of_event
SELECT unit_no, state, owner, until, fence, version FROM units
WHERE event_no = $1 AND version > 0 ORDER BY unit_no";

pub(in super::super) const UNITS: &str = "-- units
SELECT unit_no, state, owner, until, fence, version FROM units
WHERE event_no = $1 AND unit_no = ANY ($2)";

pub(in super::super) const ADD_UNITS: &str = "-- add_units
INSERT INTO units (event_no, unit_no) SELECT $1, generate_series(0, $2 - 1)";

/// A unit's state as three columns, as this database stores them.
pub(in super::super) struct State {
    pub(in super::super) kind: i16,
    pub(in super::super) owner: Option<Id>,
    pub(in super::super) until: Option<i64>,
}

impl From<UnitState> for State {
    fn from(state: UnitState) -> Self {
        let columns = StateColumns::from(state);
        Self {
            kind: short(columns.state),
            owner: columns.owner.map(Id),
            until: columns.until,
        }
    }
}

/// The state in three columns from `at` on.
pub(super) fn state(columns: &Columns<'_>, at: usize) -> Result<UnitState, Damaged> {
    let (state, owner): (i16, Option<Id>) = (columns.get(at)?, columns.get(at + 1)?);
    let columns = StateColumns {
        state: state.into(),
        owner: owner.map(|id| id.0),
        until: columns.get(at + 2)?,
    };
    columns.state(TABLE)
}

/// A unit and its number.
pub(in super::super) fn read(row: &Row) -> Result<(UnitNo, Unit), Damaged> {
    let columns = Columns::new(row, TABLE);
    let unit = Unit {
        state: state(&columns, 1)?,
        fence: Fence(columns.unsigned(4)?),
        version: Version(columns.unsigned(5)?),
    };
    Ok((UnitNo(columns.small(0)?), unit))
}
