//! Units.

use soldonce_core::{Fence, Unit, UnitNo, UnitState, Version};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::{Columns, Id, short};
use crate::ledger::postgres::database::{Lane, Value};
use crate::ledger::postgres::failure::Failure;
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

/// The turn, then the units in their order.
const LOCK: &str = concat!(
    "-- lock\n",
    include_str!("../write/turn.sql"),
    "-- in_unit_order
     SELECT unit_no FROM units
     WHERE event_no = $1 AND unit_no = ANY ($3) AND (SELECT is_taken FROM turn)
     ORDER BY unit_no FOR UPDATE"
);

/// The turn alone.
const TAKE_TURN: &str = concat!(
    "-- lock_event\n",
    include_str!("../write/turn.sql"),
    "-- taken\nSELECT is_taken FROM turn"
);

/// An event, and whose turn with it this is: of one who renews it, or of one among many.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Turn {
    pub(in super::super) event: i32,
    pub(in super::super) renews: bool,
}

/// Locks units in unit order. The turn is taken before any of them, as by the statement that writes.
pub(in super::super) async fn lock(
    lane: &mut Lane,
    turn: Turn,
    units: &[i32],
) -> Result<(), Failure> {
    let values: [Value<'_>; 3] = [
        (&turn.event, Type::INT4),
        (&turn.renews, Type::BOOL),
        (&units, Type::INT4_ARRAY),
    ];
    lane.rows(LOCK, &values).await.map(drop)
}

/// Takes the turn until the end of the transaction that is open on this connection.
pub(in super::super) async fn take_turn(lane: &mut Lane, turn: Turn) -> Result<(), Failure> {
    let values: [Value<'_>; 2] = [(&turn.event, Type::INT4), (&turn.renews, Type::BOOL)];
    lane.rows(TAKE_TURN, &values).await.map(drop)
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::postgres::limits::{LOCK_MS, TURN_MS};

    #[test]
    fn the_turn_and_the_rows_are_waited_for_as_long_as_the_bounds_say() {
        for (n, wait) in [TURN_MS, LOCK_MS].iter().enumerate() {
            let set = format!("set_config('lock_timeout', '{wait}', true)");
            for sql in [LOCK, TAKE_TURN] {
                let first = sql.find("pg_advisory").unwrap();
                let at = sql.find(&set).unwrap();
                assert_eq!(at < first, n == 0, "{set}");
            }
        }
    }
}
