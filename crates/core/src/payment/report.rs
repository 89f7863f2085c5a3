//! Reports of the provider about a payment.

use crate::{Amount, Booking, BookingId, Currency, Effect, Intent, PaymentState};

/// The state of a booking's payment, as the provider reports it. Amounts are totals, so that a report may
/// come twice, late and out of order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PaymentReport {
    pub booking: BookingId,
    pub state: PaymentState,
    /// The amount the buyer was asked for.
    pub amount: Amount,
    pub currency: Currency,
    /// The amount taken so far.
    pub captured: Amount,
    /// The amount sent back so far, in every try.
    pub refunded: Amount,
    /// The part of that which came back again.
    pub bounced: Amount,
    pub intent: Option<Intent>,
    /// The effect that is done by this.
    pub settles: Option<Effect>,
}

impl PaymentReport {
    /// Builds the report of a provider that moves whole amounts only: all of `booking`'s money is
    /// in `state`; in `PartlyRefunded`, half of it was refunded.
    pub fn whole(booking: &Booking, currency: Currency, state: PaymentState) -> Self {
        let payment = booking.payment.as_deref();
        let amount = payment.map_or_else(|| booking.total(), |payment| payment.amount);
        let (captured, refunded) = match state {
            PaymentState::Captured => (amount, Amount::ZERO),
            PaymentState::PartlyRefunded => (amount, Amount::from_minor(amount.minor() / 2)),
            PaymentState::Refunded => (amount, amount),
            PaymentState::Created
            | PaymentState::ActionRequired
            | PaymentState::Processing
            | PaymentState::Authorised
            | PaymentState::Failed
            | PaymentState::Voided
            | PaymentState::Lapsed
            | PaymentState::Declined => (Amount::ZERO, Amount::ZERO),
        };
        Self {
            booking: booking.id,
            state,
            amount,
            currency,
            captured,
            refunded,
            bounced: Amount::ZERO,
            intent: None,
            settles: None,
        }
    }
}
