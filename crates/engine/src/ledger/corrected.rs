//! The result of a correction of a ledger's clock.

use serde::Serialize;
use soldonce_core::{Answer, Applied, Origin, Span, Timestamp};

use crate::limits::CLOCK_LEAST_MS;

/// What one correction did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ClockCorrected {
    /// By how much the ledger's clock was ahead and is set back, milliseconds; 0 if it was not.
    pub set_back_ms: u64,
    /// Events whose history records the correction.
    pub events: usize,
    /// Holds whose end was moved with the clock, so that they keep the time they had left.
    pub holds: usize,
}

impl ClockCorrected {
    /// Reads the counts from what `core` did for a correction by `by`.
    pub(super) fn of(applied: &Applied, by: Span) -> Self {
        let holds = if let Answer::ClockCorrected(holds) = applied.answer {
            holds
        } else {
            0
        };
        Self {
            set_back_ms: by.ms(),
            events: applied.commits.len(),
            holds,
        }
    }

    /// Adds up two corrections of the same clock: counts are summed, and the larger span is kept.
    #[must_use]
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            set_back_ms: self.set_back_ms.max(other.set_back_ms),
            events: self.events + other.events,
            holds: self.holds + other.holds,
        }
    }
}

/// A correction that is to be made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Correction {
    /// The ledger's clock as it is from then on.
    pub(super) now: Timestamp,
    pub(super) by: Span,
}

impl Correction {
    /// Plans to set a ledger whose clock is at `ledger` back to `now`, the machine's clock; none if
    /// the ledger's is not ahead.
    ///
    /// # Errors
    /// A text for the operator, when the machine's own clock is before [`CLOCK_LEAST_MS`].
    pub(super) fn new(ledger: Timestamp, now: Timestamp) -> Result<Option<Self>, String> {
        if now.ms() < CLOCK_LEAST_MS {
            let text = "the clock of this machine is wrong: set it, then correct the ledger's";
            return Err(text.to_owned());
        }
        let by = now.until(ledger);
        Ok((by > Span::default()).then_some(Self { now, by }))
    }

    /// Returns the origin of the correction for the history.
    pub(super) fn origin() -> Origin {
        Origin::system("clock correction")
    }
}
