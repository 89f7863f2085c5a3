//! What a commit has to have done at the provider.

use crate::{Amount, BookingId};

/// What must be done outside, recorded in the same commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Ask the provider for a payment, which the buyer then makes.
    Authorise(BookingId),
    /// Take the authorised money of this booking.
    Capture(BookingId),
    /// Give up the authorisation of this booking.
    Void(BookingId),
    /// Send money back.
    Refund {
        booking: BookingId,
        amount: Amount,
        /// How much is to have gone back in all when it is done. Two of a booking are equal if the
        /// money of the first one came back.
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
