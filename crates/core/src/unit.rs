//! One unit and all its transitions (model.md 3). Decides which state may follow which; knows no
//! holds but their ids.

use std::fmt;

use crate::{BookingId, HoldId, Timestamp};

/// The place of a unit in its event's chart, from 0. Every command takes units in this order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnitNo(pub u32);

impl UnitNo {
    /// The same as an index.
    pub fn index(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

impl fmt::Debug for UnitNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

/// A number that rises with every change of owner of a unit, never reused. Public: it orders, it
/// does not authorise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Fence(pub u64);

impl Fence {
    /// The next higher fence.
    ///
    /// # Panics
    /// After 2^64 owners.
    #[must_use]
    pub fn next(self) -> Self {
        Self(
            self.0
                .checked_add(1)
                .expect("a unit changes owner less than 2^64 times"),
        )
    }
}

/// How many transitions a unit has made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Version(pub u64);

impl Version {
    /// The version after one more transition.
    ///
    /// # Panics
    /// After 2^64 transitions.
    #[must_use]
    pub fn next(self) -> Self {
        Self(
            self.0
                .checked_add(1)
                .expect("a unit makes less than 2^64 transitions"),
        )
    }
}

/// What a unit is, as the ledger has it written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum UnitState {
    /// Nobody's.
    #[default]
    Free,
    /// Claimed by a hold until a point of time; from then on it counts as free (T3).
    Held {
        /// The owner.
        hold: HoldId,
        /// The hold's `expires_at`.
        until: Timestamp,
    },
    /// Sold to a booking.
    Sold(BookingId),
    /// Taken out of sale by staff.
    Blocked,
}

impl UnitState {
    /// Whether a new owner may take it at `now`: free, or held by a hold that is over.
    pub fn is_available(self, now: Timestamp) -> bool {
        match self {
            Self::Free => true,
            Self::Held { until, .. } => until <= now,
            Self::Sold(_) | Self::Blocked => false,
        }
    }

    /// The state without its owner.
    pub fn kind(self) -> StateKind {
        match self {
            Self::Free => StateKind::Free,
            Self::Held { .. } => StateKind::Held,
            Self::Sold(_) => StateKind::Sold,
            Self::Blocked => StateKind::Blocked,
        }
    }
}

/// Who owns a unit, or acts on it.
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

/// A unit's state as the public may see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StateKind {
    /// Can be held.
    Free,
    /// In somebody's hold.
    Held,
    /// In somebody's booking.
    Sold,
    /// Not for sale.
    Blocked,
}

impl StateKind {
    /// Every kind, in the order of its number.
    pub const ALL: [Self; 4] = [Self::Free, Self::Held, Self::Sold, Self::Blocked];

    /// The word of model.md, in lower case.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Free => "free",
            Self::Held => "held",
            Self::Sold => "sold",
            Self::Blocked => "blocked",
        }
    }
}

/// Why a unit made a transition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// A new hold.
    Held,
    /// A hold was extended.
    Extended,
    /// A hold got or lost units.
    Changed,
    /// Payment began.
    Pinned,
    /// Payment failed; the buyer keeps the units.
    Unpinned,
    /// The holder gave it up.
    Released,
    /// The clock ended the hold.
    Expired,
    /// Staff ended the hold.
    Revoked,
    /// The hold became a booking.
    Confirmed,
    /// Sold without a hold: box office, or late money.
    SoldDirectly,
    /// A line was cancelled.
    Cancelled,
    /// Swapped inside a booking.
    Exchanged,
    /// Staff took it out of sale.
    Blocked,
    /// Staff put it back on sale.
    Unblocked,
    /// The ledger's clock was set back: nothing changed but the end of its hold.
    ClockCorrected,
}

impl Cause {
    /// Every cause.
    pub const ALL: [Self; 15] = [
        Self::Held,
        Self::Extended,
        Self::Changed,
        Self::Pinned,
        Self::Unpinned,
        Self::Released,
        Self::Expired,
        Self::Revoked,
        Self::Confirmed,
        Self::SoldDirectly,
        Self::Cancelled,
        Self::Exchanged,
        Self::Blocked,
        Self::Unblocked,
        Self::ClockCorrected,
    ];

    /// The word for it in the audit and in answers.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Extended => "extended",
            Self::Changed => "changed",
            Self::Pinned => "pinned",
            Self::Unpinned => "unpinned",
            Self::Released => "released",
            Self::Expired => "expired",
            Self::Revoked => "revoked",
            Self::Confirmed => "confirmed",
            Self::SoldDirectly => "sold_directly",
            Self::Cancelled => "cancelled",
            Self::Exchanged => "exchanged",
            Self::Blocked => "blocked",
            Self::Unblocked => "unblocked",
            Self::ClockCorrected => "clock_corrected",
        }
    }

    /// Whether a unit may go from one kind of state to another for this cause: the table of
    /// model.md 3. Guards about time and ownership are the commands' business.
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

/// One unit as it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Unit {
    /// What it is.
    pub state: UnitState,
    /// Rises with every change of owner.
    pub fence: Fence,
    /// Rises with every transition.
    pub version: Version,
}

/// One step of one unit: a row of the audit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transition {
    /// Which unit.
    pub unit: UnitNo,
    /// Its state before.
    pub from: UnitState,
    /// Its state after.
    pub to: UnitState,
    /// Its fence after.
    pub fence: Fence,
    /// Its version after.
    pub version: Version,
    /// Why.
    pub cause: Cause,
    /// The hold in whose name it was done; none for staff and bookings.
    pub hold: Option<HoldId>,
}

/// Where a unit goes: the arguments of [`Unit::step`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) to: UnitState,
    pub(crate) fence: Fence,
    pub(crate) cause: Cause,
    /// In whose name.
    pub(crate) by: Owner,
}

impl Unit {
    /// Makes one transition and tells it. The units of a hold are exactly those whose state names it, and
    /// those of a booking likewise: only their owner gives them up, and a hold takes units for itself.
    ///
    /// # Panics
    /// When the table of model.md 3 has no such step, another owns the unit, or the fence would fall: the
    /// caller's checks are wrong, and stopping is better than selling twice.
    pub(crate) fn step(&mut self, unit: UnitNo, step: Step) -> Transition {
        let from = self.state;
        assert!(
            step.cause.allows(from.kind(), step.to.kind()),
            "{unit:?}: no step from {from:?} to {:?} for {:?}",
            step.to,
            step.cause
        );
        let is_owner = |owner: Owner| owner == Owner::Nobody || owner == step.by;
        let for_itself = match step.to {
            UnitState::Held { .. } => is_owner(step.to.into()),
            UnitState::Free | UnitState::Sold(_) | UnitState::Blocked => true,
        };
        assert!(
            is_owner(from.into()) && for_itself,
            "{unit:?}: {:?} takes it from {from:?} to {:?} for {:?}",
            step.by,
            step.to,
            step.cause
        );
        assert!(
            step.fence >= self.fence,
            "{unit:?}: fence falls to {:?}",
            step.fence
        );
        *self = Unit {
            state: step.to,
            fence: step.fence,
            version: self.version.next(),
        };
        let Step {
            to,
            fence,
            cause,
            by,
        } = step;
        Transition {
            unit,
            from,
            to,
            fence,
            version: self.version,
            cause,
            hold: match by {
                Owner::Hold(hold) => Some(hold),
                Owner::Nobody | Owner::Booking(_) => None,
            },
        }
    }
}
