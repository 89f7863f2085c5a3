//! Effects: what a commit asks to be done at the provider.

use crate::{Amount, BookingId};

/// A step that must be carried out at the provider, recorded in the same commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Ask the provider for a payment, which the buyer then makes.
    Authorise(BookingId),
    /// Take the authorised money of this booking.
    Capture(BookingId),
    /// Give up the authorisation of this booking.
    Void(BookingId),
    /// Refund money.
    Refund {
        booking: BookingId,
        amount: Amount,
        /// How much is to be refunded in all when it is done. Two effects of a booking are equal if
        /// the money of the first one bounced.
        total: Amount,
    },
    /// The hold ended while payment was open: cancel the intent, then ask what became of it.
    CancelIntent(BookingId),
}

impl Effect {
    pub const fn booking(&self) -> BookingId {
        match *self {
            Self::Authorise(booking)
            | Self::Capture(booking)
            | Self::Void(booking)
            | Self::Refund { booking, .. }
            | Self::CancelIntent(booking) => booking,
        }
    }
}
