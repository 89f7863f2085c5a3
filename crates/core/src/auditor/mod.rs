//! Turns the history of one event into the list of what is wrong with it. Uses none of the code that
//! decides, nor the table of transitions that this code asks: it has its own (`legal`).
//!
//! It finds what a history can show: a unit sold twice (I1), two live holds of a unit (I2), states
//! that do not follow from each other (I3), a confirm that was late or fenced out (I4), half a hold
//! (I5), fences that do not rise (I6), a foreign hold ended (I7), a life beyond the cap (I8), a
//! budget overrun (I9), a unit that is not in the chart (I10), gaps (I20), time going back (I21) but for a
//! correction of the clock that keeps what each hold has left.

mod bounds;
mod check;
mod correction;
mod legal;
mod live;
mod step;

use std::fmt;

pub use check::Auditor;

use crate::words::words;
use crate::{Commit, Hold, HoldId, Holder, Policy, Seq, Timestamp, UnitNo};

/// The terms of a hold that its transitions do not show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HoldTerms {
    pub id: HoldId,
    pub holder: Holder,
    /// The cap: no extension goes beyond it.
    pub max_expires_at: Timestamp,
}

impl From<&Hold> for HoldTerms {
    fn from(hold: &Hold) -> Self {
        Self {
            id: hold.id,
            holder: hold.holder.clone(),
            max_expires_at: hold.max_expires_at,
        }
    }
}

/// All that happened to the units of one event, in the order of the commits.
#[derive(Clone, Debug, Default)]
pub struct History {
    pub units: u32,
    /// The terms of the event; `None` when they changed, or may have changed.
    pub terms: Option<Policy>,
    pub holds: Vec<HoldTerms>,
    pub commits: Vec<Commit>,
}

words! {
    /// An invariant (assurance.md 3.1), with its number and name.
    pub Invariant:
    I1SoldTwice = "I1 sold-twice",
    I2HeldTwice = "I2 held-twice",
    /// States follow from each other.
    I3BrokenState = "I3 broken-state",
    /// A confirm needs a live hold with the newest fence.
    I4LateConfirm = "I4 late-confirm",
    /// A hold has all of its units or none.
    I5PartialHold = "I5 partial-hold",
    /// Fences rise with every change of owner.
    I6FenceNotRising = "I6 fence-not-rising",
    /// Only its owner ends a hold.
    I7ForeignHold = "I7 foreign-hold",
    /// No hold lives beyond its cap.
    I8BeyondCap = "I8 beyond-cap",
    /// No holder holds more than the budget.
    I9OverBudget = "I9 over-budget",
    /// Units are those of the chart.
    I10UnknownUnit = "I10 unknown-unit",
    /// Commits and versions have no gap.
    I20Gap = "I20 gap",
    I21TimeWentBack = "I21 time-went-back",
}

/// One broken invariant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    pub invariant: Invariant,
    pub seq: Seq,
    pub unit: Option<UnitNo>,
    pub detail: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (invariant, seq) = (self.invariant.as_str(), self.seq.0);
        write!(f, "VIOLATION {invariant} seq={seq}")?;
        if let Some(unit) = self.unit {
            write!(f, " unit={unit:?}")?;
        }
        write!(f, " {}", self.detail)
    }
}
