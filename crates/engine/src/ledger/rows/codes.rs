//! Enums as the small numbers that the migrations list: each is the index in `ALL`, and a new
//! variant is added at the end.

use soldonce_core::{BookingId, HoldState, Text};

use super::Damaged;

/// Finds the number of `value`, its index in `all`; -1 if it is missing.
pub(crate) fn number<T: PartialEq>(all: &[T], value: &T) -> i64 {
    let at = all.iter().position(|known| known == value);
    at.and_then(|at| i64::try_from(at).ok()).unwrap_or(-1)
}

/// Finds the value with this number; fails with `Damaged` if there is none.
pub(crate) fn value<T: Copy>(all: &[T], number: i64, table: &'static str) -> Result<T, Damaged> {
    let at = usize::try_from(number).ok();
    let found = at.and_then(|at| all.get(at)).copied();
    found.ok_or_else(|| Damaged::new(table, format!("{number} is no state or cause")))
}

/// Converts a stored number to `u64`; fails with `Damaged` if it is negative.
pub(crate) fn unsigned(number: i64, table: &'static str) -> Result<u64, Damaged> {
    u64::try_from(number).map_err(|_| Damaged::new(table, format!("{number} is negative")))
}

/// Converts a stored number of a unit or an event to `u32`; fails with `Damaged` out of range.
pub(crate) fn small(number: i64, table: &'static str) -> Result<u32, Damaged> {
    u32::try_from(number).map_err(|_| Damaged::new(table, format!("{number} is no number")))
}

pub(crate) fn state_number(state: &HoldState) -> i64 {
    match state {
        HoldState::Active => 0,
        HoldState::Pinned(_) => 1,
        HoldState::Consumed(_) => 2,
        HoldState::Released => 3,
        HoldState::Expired => 4,
        HoldState::Revoked(_) => 5,
    }
}

/// Reads a hold's state from its columns; fails with `Damaged` if they contradict each other.
pub(crate) fn state_of(
    number: i64,
    booking: Option<[u8; 16]>,
    reason: Option<Text>,
) -> Result<HoldState, Damaged> {
    match (number, booking.map(BookingId::from_bytes), reason) {
        (0, None, None) => Ok(HoldState::Active),
        (1, Some(booking), None) => Ok(HoldState::Pinned(booking)),
        (2, Some(booking), None) => Ok(HoldState::Consumed(booking)),
        (3, None, None) => Ok(HoldState::Released),
        (4, None, None) => Ok(HoldState::Expired),
        (5, None, Some(reason)) => Ok(HoldState::Revoked(reason)),
        _ => {
            let what = format!("{number} is no state of a hold");
            Err(Damaged::new("holds", what))
        }
    }
}
