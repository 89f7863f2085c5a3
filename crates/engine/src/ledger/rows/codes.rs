//! Enums as the small numbers that the migrations list: each is its place in `ALL`, and a new word
//! goes to the end.

use soldonce_core::{BookingId, HoldState, Text};

use super::Damaged;

/// The number of `value`.
pub(crate) fn number<T: PartialEq>(all: &[T], value: &T) -> i64 {
    let at = all
        .iter()
        .position(|known| known == value)
        .unwrap_or(usize::MAX);
    i64::try_from(at).unwrap_or(-1)
}

/// The value of `number`.
pub(crate) fn value<T: Copy>(all: &[T], number: i64, table: &'static str) -> Result<T, Damaged> {
    let at = usize::try_from(number).ok();
    let found = at.and_then(|at| all.get(at)).copied();
    found.ok_or_else(|| Damaged::new(table, format!("{number} is no state or cause")))
}

/// A number as it was before it was stored.
pub(crate) fn unsigned(number: i64, table: &'static str) -> Result<u64, Damaged> {
    u64::try_from(number).map_err(|_| Damaged::new(table, format!("{number} is negative")))
}

/// As [`unsigned`], for unit and event numbers.
pub(crate) fn small(number: i64, table: &'static str) -> Result<u32, Damaged> {
    u32::try_from(number).map_err(|_| Damaged::new(table, format!("{number} is no number")))
}

const HOLDS: &str = "holds";
const ACTIVE: i64 = 0;
const PINNED: i64 = 1;
const CONSUMED: i64 = 2;
const RELEASED: i64 = 3;
const EXPIRED: i64 = 4;
const REVOKED: i64 = 5;

/// The number of a hold's state.
pub(crate) fn state_number(state: &HoldState) -> i64 {
    match state {
        HoldState::Active => ACTIVE,
        HoldState::Pinned(_) => PINNED,
        HoldState::Consumed(_) => CONSUMED,
        HoldState::Released => RELEASED,
        HoldState::Expired => EXPIRED,
        HoldState::Revoked(_) => REVOKED,
    }
}

/// The hold's state that these columns say.
pub(crate) fn state_of(
    number: i64,
    booking: Option<[u8; 16]>,
    reason: Option<Text>,
) -> Result<HoldState, Damaged> {
    match (number, booking.map(BookingId::from_bytes), reason) {
        (ACTIVE, None, None) => Ok(HoldState::Active),
        (PINNED, Some(booking), None) => Ok(HoldState::Pinned(booking)),
        (CONSUMED, Some(booking), None) => Ok(HoldState::Consumed(booking)),
        (RELEASED, None, None) => Ok(HoldState::Released),
        (EXPIRED, None, None) => Ok(HoldState::Expired),
        (REVOKED, None, Some(reason)) => Ok(HoldState::Revoked(reason)),
        _ => Err(Damaged::new(
            HOLDS,
            format!("{number} is no state of a hold"),
        )),
    }
}
