//! The legal transitions: the auditor's own table, so that a wrong line of the rules is found.

use crate::Cause::{
    self, Blocked, Cancelled, Changed, ClockCorrected, Confirmed, Exchanged, Expired, Extended,
    Held, Pinned, Released, Revoked, SoldDirectly, Unblocked, Unpinned,
};
use crate::StateKind;

/// The causes for which a unit may go from one kind of state to another.
const LEGAL: [(StateKind, StateKind, &[Cause]); 11] = [
    (StateKind::Free, StateKind::Held, &[Held, Changed]),
    (StateKind::Free, StateKind::Sold, &[SoldDirectly]),
    (StateKind::Free, StateKind::Blocked, &[Blocked]),
    (
        StateKind::Held,
        StateKind::Held,
        &[Extended, Changed, Pinned, Unpinned, ClockCorrected],
    ),
    (
        StateKind::Held,
        StateKind::Free,
        &[Released, Expired, Revoked, Changed],
    ),
    (StateKind::Held, StateKind::Sold, &[Confirmed, Exchanged]),
    (StateKind::Sold, StateKind::Free, &[Cancelled, Exchanged]),
    (StateKind::Blocked, StateKind::Free, &[Unblocked]),
    (StateKind::Free, StateKind::Free, &[ClockCorrected]),
    (StateKind::Sold, StateKind::Sold, &[ClockCorrected]),
    (StateKind::Blocked, StateKind::Blocked, &[ClockCorrected]),
];

pub(super) fn is_legal(cause: Cause, from: StateKind, to: StateKind) -> bool {
    let mut lines = LEGAL.iter();
    lines.any(|(of, then, causes)| (*of, *then) == (from, to) && causes.contains(&cause))
}
