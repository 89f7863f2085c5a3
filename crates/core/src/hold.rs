//! A hold and what may happen to it (model.md 4). All its states and guards share this file.

use crate::booking::Priced;
use crate::{
    Amount, BookingId, EventNo, Fence, HoldId, Holder, Rejection, Text, Timestamp, UnitNo, Version,
};

/// One unit of a hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldUnit {
    /// Which unit.
    pub unit: UnitNo,
    /// Its price, frozen when it was taken.
    pub price: Amount,
    /// Its version after the hold's last transition.
    pub version: Version,
}

impl Priced for HeldUnit {
    fn price(&self) -> Amount {
        self.price
    }
}

/// What a hold is. Every state but the first two is final.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HoldState {
    /// Waiting for its holder.
    Active,
    /// Payment of this booking has begun.
    Pinned(BookingId),
    /// Became this booking.
    Consumed(BookingId),
    /// Given up by its holder.
    Released,
    /// Ended by the clock.
    Expired,
    /// Ended by staff, with a reason.
    Revoked(Text),
}

impl HoldState {
    /// The word of every state.
    pub const WORDS: [&'static str; 6] = [
        "active", "pinned", "consumed", "released", "expired", "revoked",
    ];

    /// The word of api.md, in lower case.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Pinned(_) => "pinned",
            Self::Consumed(_) => "consumed",
            Self::Released => "released",
            Self::Expired => "expired",
            Self::Revoked(_) => "revoked",
        }
    }

    /// Whether no command can change it any more.
    pub const fn is_terminal(&self) -> bool {
        !matches!(self, Self::Active | Self::Pinned(_))
    }

    /// The booking it is or was meant for.
    pub const fn booking(&self) -> Option<BookingId> {
        match self {
            Self::Pinned(booking) | Self::Consumed(booking) => Some(*booking),
            Self::Active | Self::Released | Self::Expired | Self::Revoked(_) => None,
        }
    }
}

/// An exclusive, timed claim of a holder on one or more units of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hold {
    /// Its name.
    pub id: HoldId,
    /// The event of all its units.
    pub event: EventNo,
    /// Who holds.
    pub holder: Holder,
    /// What it is.
    pub state: HoldState,
    /// `1 + max(fence of its units)` when it last took or dropped one, those it dropped among them
    /// (T6): it never falls.
    pub fence: Fence,
    /// Its units, in unit order. Kept after its end, for the record.
    pub units: Vec<HeldUnit>,
    /// When it was made.
    pub created_at: Timestamp,
    /// From this point of time on it is over.
    pub expires_at: Timestamp,
    /// No extension goes beyond it.
    pub max_expires_at: Timestamp,
    /// For units that the engine chose: whether they are neighbours.
    pub together: Option<bool>,
}

impl Hold {
    /// T2: `now == expires_at` is expired, everywhere.
    pub fn is_live(&self, now: Timestamp) -> bool {
        !self.state.is_terminal() && now < self.expires_at
    }

    /// What it is at `now`: a hold that is over says so before anybody wrote it down (T3).
    pub fn state_at(&self, now: Timestamp) -> &HoldState {
        const EXPIRED: &HoldState = &HoldState::Expired;
        if self.state.is_terminal() || self.is_live(now) {
            &self.state
        } else {
            EXPIRED
        }
    }

    /// The prices of its units.
    pub fn total(&self) -> Amount {
        Amount::sum(self.units.iter().map(|held| held.price))
    }

    /// How many units it has.
    pub fn count(&self) -> u32 {
        u32::try_from(self.units.len()).unwrap_or(u32::MAX)
    }

    /// Whether `unit` is one of its units.
    pub fn has(&self, unit: UnitNo) -> bool {
        self.units
            .binary_search_by_key(&unit, |held| held.unit)
            .is_ok()
    }

    /// Passes a live hold with the right fence. The order of checks is part of the contract:
    /// terminal state, then expiry, then fence (api.md 7).
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

    /// As [`Hold::require_live`], for commands that payment in progress forbids.
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
