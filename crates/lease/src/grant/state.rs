//! What a lease is at one instant. `lease.md` 1.2.

use std::time::Duration;

use crate::LostReason;

/// The state of a lease at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LeaseState {
    /// Ours, and renewed in time.
    Held {
        /// Until the deadline.
        remaining: Duration,
    },
    /// Ours, with a renewal overdue: start nothing long.
    Suspect {
        /// Until the deadline.
        remaining: Duration,
    },
    /// Not ours any more. Final.
    Lost(LostReason),
    /// Given back. Final.
    Released,
}

impl LeaseState {
    /// Whether it is ours: held or suspect.
    pub const fn is_live(self) -> bool {
        matches!(self, LeaseState::Held { .. } | LeaseState::Suspect { .. })
    }

    /// Whether two states differ by more than the time left.
    pub(crate) fn same_kind(self, other: LeaseState) -> bool {
        std::mem::discriminant(&self) == std::mem::discriminant(&other)
    }
}
