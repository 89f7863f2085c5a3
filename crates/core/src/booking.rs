//! A booking and its lines (model.md 5).

use crate::{
    Amount, BookingId, EventNo, Fence, HoldId, Holder, Payment, PaymentState, Text, Timestamp,
    UnitNo, Version,
};

/// A thing with a price.
pub(crate) trait Priced {
    fn price(&self) -> Amount;
}

/// What a booking is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BookingState {
    /// Its hold is pinned and money is on its way.
    PendingPayment,
    /// Its units are sold.
    Confirmed,
    /// Some of its lines are cancelled.
    PartlyCancelled,
    /// All of its lines are cancelled.
    Cancelled,
    /// Payment failed or was given up.
    Failed,
    /// Its hold ended before the money came.
    Expired,
    /// Money came too late and must go back.
    NeedsRefund,
    /// Money went back.
    Refunded,
}

impl BookingState {
    /// Every state.
    pub const ALL: [Self; 8] = [
        Self::PendingPayment,
        Self::Confirmed,
        Self::PartlyCancelled,
        Self::Cancelled,
        Self::Failed,
        Self::Expired,
        Self::NeedsRefund,
        Self::Refunded,
    ];

    /// The word of api.md, in lower case.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::PendingPayment => "pending_payment",
            Self::Confirmed => "confirmed",
            Self::PartlyCancelled => "partly_cancelled",
            Self::Cancelled => "cancelled",
            Self::Failed => "failed",
            Self::Expired => "expired",
            Self::NeedsRefund => "needs_refund",
            Self::Refunded => "refunded",
        }
    }

    /// Whether its lines own units.
    pub const fn owns_units(self) -> bool {
        matches!(self, Self::Confirmed | Self::PartlyCancelled)
    }
}

/// What a line of a booking is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LineState {
    /// Its unit is not sold yet, or never was.
    Pending,
    /// Its unit is sold.
    Sold,
    /// Its unit was given back.
    Cancelled,
}

impl LineState {
    /// Every state.
    pub const ALL: [Self; 3] = [Self::Pending, Self::Sold, Self::Cancelled];

    /// The word for it, in lower case.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Sold => "sold",
            Self::Cancelled => "cancelled",
        }
    }
}

/// One unit of a booking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// Which unit.
    pub unit: UnitNo,
    /// Its price, frozen when it was held.
    pub price: Amount,
    /// Its version after the line's last transition.
    pub version: Version,
    /// What it is.
    pub state: LineState,
}

impl Priced for Line {
    fn price(&self) -> Amount {
        self.price
    }
}

/// The durable sale and its units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Booking {
    /// Its name.
    pub id: BookingId,
    /// The event of all its lines.
    pub event: EventNo,
    /// Who bought.
    pub holder: Holder,
    /// The hold it came from; none for a box-office sale.
    pub hold: Option<HoldId>,
    /// What it is.
    pub state: BookingState,
    /// The fence under which its units were sold.
    pub fence: Fence,
    /// Its units, in unit order.
    pub lines: Vec<Line>,
    /// The caller's own text for it.
    pub reference: Option<Text>,
    /// The provider's view; none without a provider.
    pub payment: Option<Box<Payment>>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When its units were sold.
    pub confirmed_at: Option<Timestamp>,
}

impl Booking {
    /// Whether its payment is not at its end, or its money must go back.
    pub fn is_unsettled(&self) -> bool {
        let is_open = |payment: &Payment| {
            payment.state <= PaymentState::Authorised || payment.state == PaymentState::Declined
        };
        self.state == BookingState::NeedsRefund || self.payment.as_deref().is_some_and(is_open)
    }

    /// The prices of its lines, cancelled ones too: what was agreed.
    pub fn total(&self) -> Amount {
        Amount::sum(self.lines.iter().map(Priced::price))
    }

    /// The line of `unit`, sold ones first: after an exchange a unit may have an old line too.
    pub fn line(&self, unit: UnitNo) -> Option<&Line> {
        let mut of_unit = self.lines.iter().filter(|line| line.unit == unit);
        let first = of_unit.next()?;
        if first.state == LineState::Sold {
            Some(first)
        } else {
            of_unit.next_back().or(Some(first))
        }
    }
}
