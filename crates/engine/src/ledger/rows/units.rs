//! Units.

use soldonce_core::{BookingId, HoldId, StateKind, Unit, UnitState};

use super::Damaged;
use super::codes::number;
use super::column::Column;
use super::reader::{Get, Reader};

/// The number of a unit, and the columns that [`get`] reads.
macro_rules! unit_columns {
    () => {
        "unit_no, state, owner, until, fence, version"
    };
}

/// Returns the columns of a unit's state: `state, owner, until`.
pub(crate) fn put_state(state: UnitState) -> [Column<'static>; 3] {
    let (owner, until) = match state {
        UnitState::Free | UnitState::Blocked => (None, None),
        UnitState::Held { hold, until } => (Some(*hold.bytes()), Some(until.ms())),
        UnitState::Sold(booking) => (Some(*booking.bytes()), None),
    };
    let kind = number(&StateKind::ALL, &state.kind());
    [
        Column::Code(kind),
        Column::OptId(owner),
        Column::OptLong(until),
    ]
}

impl<'a> Get<'a> for UnitState {
    fn get(row: &mut Reader<'a>) -> Result<Self, Damaged> {
        match (row.code(&StateKind::ALL)?, row.get()?, row.get()?) {
            (StateKind::Free, None, None) => Ok(Self::Free),
            (StateKind::Blocked, None, None) => Ok(Self::Blocked),
            (StateKind::Sold, Some(id), None) => Ok(Self::Sold(BookingId::from_bytes(id))),
            (StateKind::Held, Some(id), Some(until)) => Ok(Self::Held {
                hold: HoldId::from_bytes(id),
                until,
            }),
            (StateKind::Free | StateKind::Blocked | StateKind::Sold | StateKind::Held, ..) => {
                Err(row.illegal("state"))
            }
        }
    }
}

/// Returns the columns of a unit without its event and number.
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
