//! What a correction of a ledger's clock came to.

use serde::Serialize;
use soldonce_core::{Answer, Applied, Origin, Span, Timestamp};

use crate::limits::CLOCK_LEAST_MS;

/// What one correction did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ClockCorrected {
    /// By how much the ledger's clock was ahead and is set back, milliseconds; 0 if it was not.
    pub set_back_ms: u64,
    /// Events whose history says so.
    pub events: usize,
    /// Holds that keep the time they had left.
    pub holds: usize,
}

impl ClockCorrected {
    /// What the rules made of a correction by `by`.
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

    /// Both together, of the same clock.
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
    /// Of a ledger that has reached `ledger`, by a machine whose clock reads `now`; none if there is nothing
    /// to correct.
    ///
    /// # Errors
    /// In words, when the machine's clock is the one that is wrong.
    pub(super) fn new(ledger: Timestamp, now: Timestamp) -> Result<Option<Self>, String> {
        if now.ms() < CLOCK_LEAST_MS {
            let text = "the clock of this machine is wrong: set it, then correct the ledger's";
            return Err(text.to_owned());
        }
        let by = now.until(ledger);
        Ok((by > Span::default()).then_some(Self { now, by }))
    }

    /// Who made it, for the history.
    pub(super) fn origin() -> Origin {
        Origin::system("clock correction")
    }
}
