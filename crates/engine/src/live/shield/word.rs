//! The state of one seat for the shield in process, in 64 bits.

use soldonce_core::{StateKind, Timestamp, UnitState};

use crate::shield::Who;

/// A seat's word: state (2 bits), tag of its holder (20 bits), end of its hold in milliseconds
/// (42 bits, until the year 2109).
#[derive(Clone, Copy)]
pub(super) struct Word(pub(super) u64);

const UNTIL_BITS: u32 = 42;
const TAG_BITS: u32 = 20;
const UNTIL_MAX: u64 = (1 << UNTIL_BITS) - 1;
const TAG_MAX: u64 = (1 << TAG_BITS) - 1;

impl Word {
    pub(super) fn new(state: UnitState, tag: Tag) -> Self {
        let until = match state {
            UnitState::Held { until, .. } => u64::try_from(until.ms()).unwrap_or(0).min(UNTIL_MAX),
            UnitState::Free | UnitState::Sold(_) | UnitState::Blocked => 0,
        };
        let kind = match state.kind() {
            StateKind::Free => 0,
            StateKind::Held => 1,
            StateKind::Sold => 2,
            StateKind::Blocked => 3,
        };
        Self((kind << (UNTIL_BITS + TAG_BITS)) | (tag.0 << UNTIL_BITS) | until)
    }

    pub(super) fn until(self) -> Timestamp {
        Timestamp::from_ms(i64::try_from(self.0 & UNTIL_MAX).unwrap_or(i64::MAX))
    }

    pub(super) fn tag(self) -> Tag {
        Tag((self.0 >> UNTIL_BITS) & TAG_MAX)
    }

    pub(super) fn kind(self) -> StateKind {
        match self.0 >> (UNTIL_BITS + TAG_BITS) {
            0 => StateKind::Free,
            1 => StateKind::Held,
            2 => StateKind::Sold,
            _ => StateKind::Blocked,
        }
    }

    pub(super) fn is_available(self, now: Timestamp) -> bool {
        match self.kind() {
            StateKind::Free => true,
            StateKind::Held => self.until() <= now,
            StateKind::Sold | StateKind::Blocked => false,
        }
    }
}

/// A few bits of a holder. Equal tags mean "perhaps the same holder": the ledger decides.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Tag(u64);

impl Tag {
    pub(super) fn of(who: Who) -> Self {
        Self((who.0 ^ (who.0 >> 32)) & TAG_MAX)
    }
}
