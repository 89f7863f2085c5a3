//! Enums as the small numbers that the migration lists: each is its place in `ALL`, and a new word
//! goes to the end.

use soldonce_core::{BookingId, HoldId, StateKind, Timestamp, UnitState};

use crate::ledger::sqlite::checksum::Checksum;
use crate::ledger::sqlite::fault::Fault;

/// The number of `value`.
pub(super) fn number<T: PartialEq>(all: &[T], value: &T) -> i64 {
    let at = all
        .iter()
        .position(|known| known == value)
        .unwrap_or(usize::MAX);
    i64::try_from(at).unwrap_or(-1)
}

/// The value of `number`.
pub(super) fn value<T: Copy>(all: &[T], number: i64, table: &'static str) -> Result<T, Fault> {
    let at = usize::try_from(number).ok();
    let found = at.and_then(|at| all.get(at)).copied();
    found.ok_or_else(|| Fault::damaged(table, format!("{number} is no state or cause")))
}

/// A unit's state as three columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StateColumns {
    pub(super) state: i64,
    pub(super) owner: Option<[u8; 16]>,
    pub(super) until: Option<i64>,
}

impl From<UnitState> for StateColumns {
    fn from(state: UnitState) -> Self {
        let (owner, until) = match state {
            UnitState::Free | UnitState::Blocked => (None, None),
            UnitState::Held { hold, until } => (Some(*hold.bytes()), Some(until.ms())),
            UnitState::Sold(booking) => (Some(*booking.bytes()), None),
        };
        Self {
            state: number(&StateKind::ALL, &state.kind()),
            owner,
            until,
        }
    }
}

impl StateColumns {
    /// The state that these columns say.
    pub(super) fn state(self, table: &'static str) -> Result<UnitState, Fault> {
        let kind = value(&StateKind::ALL, self.state, table)?;
        match (kind, self.owner, self.until) {
            (StateKind::Free, None, None) => Ok(UnitState::Free),
            (StateKind::Blocked, None, None) => Ok(UnitState::Blocked),
            (StateKind::Sold, Some(id), None) => Ok(UnitState::Sold(BookingId::from_bytes(id))),
            (StateKind::Held, Some(id), Some(until)) => Ok(UnitState::Held {
                hold: HoldId::from_bytes(id),
                until: Timestamp::from_ms(until),
            }),
            (StateKind::Free | StateKind::Blocked | StateKind::Sold | StateKind::Held, ..) => Err(
                Fault::damaged(table, format!("{self:?} is no state of a unit")),
            ),
        }
    }

    pub(super) fn sum(self, checksum: Checksum) -> Checksum {
        let owner = self.owner.as_ref().map(<[u8; 16]>::as_slice);
        checksum
            .int(self.state)
            .opt_bytes(owner)
            .opt_int(self.until)
    }
}

/// A number as it was before it was stored.
pub(super) fn unsigned(number: i64, table: &'static str) -> Result<u64, Fault> {
    u64::try_from(number).map_err(|_| Fault::damaged(table, format!("{number} is negative")))
}

/// As [`unsigned`], for unit and event numbers.
pub(super) fn small(number: i64, table: &'static str) -> Result<u32, Fault> {
    u32::try_from(number).map_err(|_| Fault::damaged(table, format!("{number} is no number")))
}

/// Passes a row whose checksum is that of its values.
pub(super) fn require_sum(
    table: &'static str,
    sum: Checksum,
    stored: i64,
    row: impl FnOnce() -> String,
) -> Result<(), Fault> {
    if sum.stored() == stored {
        return Ok(());
    }
    Err(Fault::damaged(
        table,
        format!("the checksum of {} does not fit", row()),
    ))
}
