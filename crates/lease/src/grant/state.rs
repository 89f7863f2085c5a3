//! The state of a lease at one instant. `lease.md` 1.2.

use std::time::Duration;

use crate::LostReason;

/// The state of a lease at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LeaseState {
    /// Held, and renewed in time.
    Held {
        /// Time until the deadline.
        remaining: Duration,
    },
    /// Held, with a renewal overdue: start nothing long.
    Suspect {
        /// Time until the deadline.
        remaining: Duration,
    },
    /// Not held any more. Final.
    Lost(LostReason),
    /// Released. Final.
    Released,
}

impl LeaseState {
    /// Tells whether the lease is held or suspect.
    pub const fn is_live(self) -> bool {
        matches!(self, LeaseState::Held { .. } | LeaseState::Suspect { .. })
    }
}
