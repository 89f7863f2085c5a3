//! One unit and all its transitions (model.md 3). Decides which state may follow which; knows no
//! holds but their ids.

use std::fmt;

use crate::number::{counter, place};
use crate::words::words;
use crate::{BookingId, HoldId, Timestamp};

place! {
    /// The place of a unit in its event's chart, from 0. Every command takes units in this order.
    UnitNo(u32)
}

impl fmt::Debug for UnitNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

counter! {
    /// A number that rises with every change of owner of a unit, never reused. Public: it orders, it
    /// does not authorise.
    Fence
}

counter! {
    /// How many transitions a unit has made.
    Version
}

/// The state of a unit, as the ledger has it written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum UnitState {
    #[default]
    Free,
    /// Claimed by a hold until a point of time; from then on it counts as free (T3).
    Held {
        hold: HoldId,
        until: Timestamp,
    },
    Sold(BookingId),
    Blocked,
}

impl UnitState {
    /// Tells whether a new owner may take it at `now`: free, or held by a hold that is over.
    pub fn is_available(self, now: Timestamp) -> bool {
        match self {
            Self::Free => true,
            Self::Held { until, .. } => until <= now,
            Self::Sold(_) | Self::Blocked => false,
        }
    }

    /// Returns the state without its owner.
    pub fn kind(self) -> StateKind {
        match self {
            Self::Free => StateKind::Free,
            Self::Held { .. } => StateKind::Held,
            Self::Sold(_) => StateKind::Sold,
            Self::Blocked => StateKind::Blocked,
        }
    }
}

/// The owner of a unit, or the one that acts on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    Nobody,
    Hold(HoldId),
    Booking(BookingId),
}

impl From<UnitState> for Owner {
    fn from(state: UnitState) -> Self {
        match state {
            UnitState::Held { hold, .. } => Self::Hold(hold),
            UnitState::Sold(booking) => Self::Booking(booking),
            UnitState::Free | UnitState::Blocked => Self::Nobody,
        }
    }
}

words! {
    /// A unit's state as the public may see it.
    pub StateKind:
    Free = "free",
    Held = "held",
    Sold = "sold",
    Blocked = "blocked",
}

words! {
    /// Why a unit made a transition.
    pub Cause:
    Held = "held",
    Extended = "extended",
    /// Its hold got or lost units.
    Changed = "changed",
    Pinned = "pinned",
    /// Payment failed; the buyer keeps the units.
    Unpinned = "unpinned",
    Released = "released",
    Expired = "expired",
    Revoked = "revoked",
    Confirmed = "confirmed",
    /// Sold without a hold: box office, or late money.
    SoldDirectly = "sold_directly",
    Cancelled = "cancelled",
    /// Swapped inside a booking.
    Exchanged = "exchanged",
    Blocked = "blocked",
    Unblocked = "unblocked",
    /// The ledger's clock was set back: nothing changed but the end of its hold.
    ClockCorrected = "clock_corrected",
}

impl Cause {
    /// Tells whether a unit may go from one kind of state to another for this cause: the table of
    /// model.md 3, and a correction of the clock. Guards about time and ownership are the
    /// commands'.
    pub const fn allows(self, from: StateKind, to: StateKind) -> bool {
        use StateKind::{Blocked, Free, Held, Sold};
        match self {
            Self::Held => matches!((from, to), (Free, Held)),
            Self::Extended | Self::Pinned | Self::Unpinned => matches!((from, to), (Held, Held)),
            Self::Changed => matches!((from, to), (Free | Held, Held) | (Held, Free)),
            Self::Released | Self::Expired | Self::Revoked => matches!((from, to), (Held, Free)),
            Self::Confirmed => matches!((from, to), (Held, Sold)),
            Self::SoldDirectly => matches!((from, to), (Free, Sold)),
            Self::Cancelled => matches!((from, to), (Sold, Free)),
            Self::Exchanged => matches!((from, to), (Sold, Free) | (Held, Sold)),
            Self::Blocked => matches!((from, to), (Free, Blocked)),
            Self::Unblocked => matches!((from, to), (Blocked, Free)),
            Self::ClockCorrected => matches!(
                (from, to),
                (Free, Free) | (Held, Held) | (Sold, Sold) | (Blocked, Blocked)
            ),
        }
    }
}

/// One unit as it is now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Unit {
    pub state: UnitState,
    /// Rises with every change of owner.
    pub fence: Fence,
    /// Rises with every transition.
    pub version: Version,
}

/// One step of one unit: a row of the audit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transition {
    pub unit: UnitNo,
    pub from: UnitState,
    pub to: UnitState,
    /// The fence after the step.
    pub fence: Fence,
    /// The version after the step.
    pub version: Version,
    pub cause: Cause,
    /// The hold in whose name it was done; `None` for staff and bookings.
    pub hold: Option<HoldId>,
}

/// The target of a step of a unit: the arguments of [`Unit::step`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) to: UnitState,
    pub(crate) fence: Fence,
    pub(crate) cause: Cause,
    pub(crate) by: Owner,
}

impl Unit {
    /// Makes one transition and returns it. The units of a hold are exactly those whose state names it, and
    /// those of a booking likewise: only their owner gives them up, and a hold takes units for itself.
    ///
    /// # Panics
    /// When the table of model.md 3 has no such step, another owns the unit, or the fence would fall: the
    /// caller's checks are wrong, and stopping is better than selling twice.
    pub(crate) fn step(&mut self, unit: UnitNo, step: Step) -> Transition {
        let (from, by) = (self.state, step.by);
        let Step {
            to, fence, cause, ..
        } = step;
        let is_owner = |owner: Owner| owner == Owner::Nobody || owner == by;
        let for_itself = match to {
            UnitState::Held { .. } => is_owner(to.into()),
            UnitState::Free | UnitState::Sold(_) | UnitState::Blocked => true,
        };
        let keeps_owner = Owner::from(from) == to.into();
        assert!(
            cause.allows(from.kind(), to.kind()),
            "{unit:?}: no step from {from:?} to {to:?} for {cause:?}"
        );
        assert!(
            is_owner(from.into()) && for_itself && (cause != Cause::ClockCorrected || keeps_owner),
            "{unit:?}: {by:?} takes it from {from:?} to {to:?} for {cause:?}"
        );
        assert!(fence >= self.fence, "{unit:?}: fence falls to {fence:?}");
        let version = self.version.next();
        *self = Unit {
            state: to,
            fence,
            version,
        };
        Transition {
            unit,
            from,
            to,
            fence,
            version,
            cause,
            hold: match by {
                Owner::Hold(hold) => Some(hold),
                Owner::Nobody | Owner::Booking(_) => None,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;

    use super::*;

    #[test]
    fn only_the_owner_gives_a_unit_up_and_its_fence_never_falls() {
        let [ann, bob] = [1, 2].map(HoldId::from_bits);
        let [sale, other] = [3, 4].map(BookingId::from_bits);
        let held = |hold| UnitState::Held {
            hold,
            until: Timestamp::from_ms(1),
        };
        let passes = |state, cause, to, by, fence| {
            let [before, fence] = [2, fence].map(Fence);
            let step = Step {
                to,
                fence,
                cause,
                by,
            };
            let mut unit = Unit {
                state,
                fence: before,
                version: Version(1),
            };
            catch_unwind(move || unit.step(UnitNo(0), step)).is_ok()
        };
        let (ann_by, bob_by) = (Owner::Hold(ann), Owner::Hold(bob));
        let confirmed = UnitState::Sold(sale);
        assert!(passes(held(ann), Cause::Confirmed, confirmed, ann_by, 2));
        assert!(!passes(held(ann), Cause::Confirmed, confirmed, bob_by, 2));
        assert!(!passes(held(ann), Cause::Confirmed, confirmed, ann_by, 1));
        let (free, sold) = (UnitState::Free, UnitState::Sold(sale));
        assert!(passes(
            sold,
            Cause::Cancelled,
            free,
            Owner::Booking(sale),
            3
        ));
        assert!(!passes(
            sold,
            Cause::Cancelled,
            free,
            Owner::Booking(other),
            3
        ));
        assert!(!passes(free, Cause::Held, held(bob), ann_by, 3));
        assert!(!passes(sold, Cause::Confirmed, confirmed, ann_by, 3));
    }
}
