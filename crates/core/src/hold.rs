//! A hold and what may happen to it (model.md 4). All its states and guards share this file.

use crate::number::count;
use crate::{
    Amount, BookingId, Event, EventNo, Fence, HoldId, Holder, Rejection, Text, Timestamp, UnitNo,
    Version,
};

/// One unit of a hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldUnit {
    pub unit: UnitNo,
    /// Its price, frozen when it was taken.
    pub price: Amount,
    /// Its version after the hold's last transition.
    pub version: Version,
}

/// The state of a hold. Every state but the first two is final.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HoldState {
    Active,
    /// Payment of this booking has begun.
    Pinned(BookingId),
    Consumed(BookingId),
    Released,
    Expired,
    Revoked(Text),
}

impl HoldState {
    pub const WORDS: [&'static str; 6] = [
        "active", "pinned", "consumed", "released", "expired", "revoked",
    ];

    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Active => Self::WORDS[0],
            Self::Pinned(_) => Self::WORDS[1],
            Self::Consumed(_) => Self::WORDS[2],
            Self::Released => Self::WORDS[3],
            Self::Expired => Self::WORDS[4],
            Self::Revoked(_) => Self::WORDS[5],
        }
    }

    /// Tells whether no command can change it any more.
    pub const fn is_terminal(&self) -> bool {
        !matches!(self, Self::Active | Self::Pinned(_))
    }

    /// Returns the booking it is or was meant for.
    pub const fn booking(&self) -> Option<BookingId> {
        match self {
            Self::Pinned(booking) | Self::Consumed(booking) => Some(*booking),
            Self::Active | Self::Released | Self::Expired | Self::Revoked(_) => None,
        }
    }

    /// Returns why staff ended it.
    pub const fn reason(&self) -> Option<&Text> {
        match self {
            Self::Revoked(reason) => Some(reason),
            Self::Active | Self::Pinned(_) | Self::Consumed(_) | Self::Released | Self::Expired => {
                None
            }
        }
    }
}

/// An exclusive, timed claim of a holder on one or more units of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hold {
    pub id: HoldId,
    pub event: EventNo,
    pub holder: Holder,
    pub state: HoldState,
    /// `1 + max(fence of its units)` when it last took or dropped one, those it dropped among them
    /// (T6): it never falls.
    pub fence: Fence,
    /// Its units, in unit order. Kept after its end, for the record.
    pub units: Vec<HeldUnit>,
    pub created_at: Timestamp,
    /// From this time on it is no longer live.
    pub expires_at: Timestamp,
    /// No extension goes beyond it.
    pub max_expires_at: Timestamp,
    /// For units that the engine chose: whether they are neighbours.
    pub together: Option<bool>,
}

impl Hold {
    /// Tells whether it is live at `now`. T2: `now == expires_at` is expired, everywhere.
    pub fn is_live(&self, now: Timestamp) -> bool {
        !self.state.is_terminal() && now < self.expires_at
    }

    /// Returns its state at `now`: one that is not terminal is expired from the end of its time on,
    /// even before that is written down (T3).
    pub fn state_at(&self, now: Timestamp) -> &HoldState {
        const EXPIRED: &HoldState = &HoldState::Expired;
        if self.state.is_terminal() || self.is_live(now) {
            &self.state
        } else {
            EXPIRED
        }
    }

    /// Returns its state at `now` as [`Hold::state_at`] does, but one that is live is revoked with its `event`, even
    /// before that is written down.
    pub fn state_in(&self, event: &Event, now: Timestamp) -> HoldState {
        match event.cancelled().filter(|_| self.is_live(now)) {
            Some(reason) => HoldState::Revoked(reason.clone()),
            None => self.state_at(now).clone(),
        }
    }

    /// Returns the sum of the prices of its units.
    pub fn total(&self) -> Amount {
        Amount::sum(self.units.iter().map(|held| held.price))
    }

    /// Returns its units, in unit order.
    pub(crate) fn unit_nos(&self) -> impl DoubleEndedIterator<Item = UnitNo> {
        self.units.iter().map(|held| held.unit)
    }

    pub fn count(&self) -> u32 {
        count(self.units.len())
    }

    pub fn has(&self, unit: UnitNo) -> bool {
        let place = self.units.binary_search_by_key(&unit, |held| held.unit);
        place.is_ok()
    }

    /// Checks that the hold is live and the fence is right. The order of checks is part of the
    /// contract: terminal state, then expiry, then fence (api.md 7).
    ///
    /// # Errors
    /// The state that was reached, `HoldExpired`, or `StaleFence`.
    pub(crate) fn require_live(
        &self,
        now: Timestamp,
        offered: Option<Fence>,
    ) -> Result<(), Rejection> {
        match self.state_at(now) {
            HoldState::Active | HoldState::Pinned(_) => {}
            HoldState::Consumed(booking) => return Err(Rejection::HoldConsumed(*booking)),
            HoldState::Released => return Err(Rejection::HoldReleased),
            HoldState::Expired => return Err(Rejection::HoldExpired),
            HoldState::Revoked(reason) => return Err(Rejection::HoldRevoked(reason.clone())),
        }
        match offered {
            Some(fence) if fence != self.fence => Err(Rejection::StaleFence(self.fence)),
            Some(_) | None => Ok(()),
        }
    }

    /// Checks as [`Hold::require_live`], for commands that a payment in progress forbids.
    pub(crate) fn require_active(
        &self,
        now: Timestamp,
        offered: Option<Fence>,
    ) -> Result<(), Rejection> {
        self.require_live(now, offered)?;
        match self.state {
            HoldState::Pinned(booking) => Err(Rejection::PaymentInProgress(booking)),
            HoldState::Active
            | HoldState::Consumed(_)
            | HoldState::Released
            | HoldState::Expired
            | HoldState::Revoked(_) => Ok(()),
        }
    }
}
