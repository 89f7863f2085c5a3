//! A booking and its lines (model.md 5).

use crate::words::words;
use crate::{
    Amount, BookingId, EventNo, Fence, HeldUnit, HoldId, Holder, Payment, Text, Timestamp, UnitNo,
    Version,
};

words! {
    /// The state of a booking.
    pub BookingState:
    PendingPayment = "pending_payment",
    Confirmed = "confirmed",
    PartlyCancelled = "partly_cancelled",
    Cancelled = "cancelled",
    /// Payment failed or was given up.
    Failed = "failed",
    /// Its hold ended before the money came.
    Expired = "expired",
    /// Money came too late and must go back.
    NeedsRefund = "needs_refund",
    Refunded = "refunded",
}

impl BookingState {
    pub const fn owns_units(self) -> bool {
        matches!(self, Self::Confirmed | Self::PartlyCancelled)
    }
}

words! {
    /// The state of a line of a booking.
    pub LineState:
    /// Its unit is not sold yet, or never was.
    Pending = "pending",
    Sold = "sold",
    /// Its unit was given back.
    Cancelled = "cancelled",
}

/// One unit of a booking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    pub unit: UnitNo,
    /// Frozen when the unit was held.
    pub price: Amount,
    /// The unit's version after the line's last transition.
    pub version: Version,
    pub state: LineState,
}

impl Line {
    /// Returns the line of a unit with the price that it was held for.
    pub(crate) fn of(held: &HeldUnit, state: LineState) -> Self {
        Self {
            unit: held.unit,
            price: held.price,
            version: held.version,
            state,
        }
    }
}

/// A durable sale with its units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Booking {
    pub id: BookingId,
    pub event: EventNo,
    pub holder: Holder,
    /// The hold it came from; `None` for a box-office sale.
    pub hold: Option<HoldId>,
    pub state: BookingState,
    /// The fence under which its units were sold.
    pub fence: Fence,
    /// Its units, in unit order.
    pub lines: Vec<Line>,
    pub reference: Option<Text>,
    /// The payment as the provider has it; `None` without a provider.
    pub payment: Option<Box<Payment>>,
    pub created_at: Timestamp,
    pub confirmed_at: Option<Timestamp>,
}

impl Booking {
    /// Returns the sum of the prices of its lines, cancelled ones too: what was agreed.
    pub fn total(&self) -> Amount {
        Amount::sum(self.lines.iter().map(|line| line.price))
    }

    /// Returns the units of its lines, in unit order.
    pub(crate) fn units(&self) -> Vec<UnitNo> {
        self.lines.iter().map(|line| line.unit).collect()
    }

    /// Returns the line of `unit`, sold ones first: after an exchange a unit may have an old line too.
    pub fn line(&self, unit: UnitNo) -> Option<&Line> {
        let of_unit = || self.lines.iter().filter(|line| line.unit == unit);
        let sold = of_unit().find(|line| line.state == LineState::Sold);
        sold.or_else(|| of_unit().next_back())
    }
}
