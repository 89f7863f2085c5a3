//! A payment: the mirror of what the provider did, never ahead of it (model.md 6).

use std::cmp::Ordering;
use std::fmt;

use crate::{Amount, Booking, BookingId, Currency, Effect, Text};

/// Mirror of the provider, never ahead of it (model.md 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PaymentState {
    /// An intent exists.
    Created,
    /// The buyer must do something, such as 3-D Secure.
    ActionRequired,
    /// The provider works on it.
    Processing,
    /// The money is reserved.
    Authorised,
    /// The money is taken.
    Captured,
    /// Some of it went back.
    PartlyRefunded,
    /// All of it went back.
    Refunded,
    /// Nothing was reserved.
    Failed,
    /// The reservation was given up.
    Voided,
    /// The reservation ran out.
    Lapsed,
}

impl PaymentState {
    /// Every state.
    pub const ALL: [Self; 10] = [
        Self::Created,
        Self::ActionRequired,
        Self::Processing,
        Self::Authorised,
        Self::Captured,
        Self::PartlyRefunded,
        Self::Refunded,
        Self::Failed,
        Self::Voided,
        Self::Lapsed,
    ];

    /// The word of model.md, in lower case.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::ActionRequired => "action_required",
            Self::Processing => "processing",
            Self::Authorised => "authorised",
            Self::Captured => "captured",
            Self::PartlyRefunded => "partly_refunded",
            Self::Refunded => "refunded",
            Self::Failed => "failed",
            Self::Voided => "voided",
            Self::Lapsed => "lapsed",
        }
    }

    /// Whether the provider may report `next` after this: the arrows of model.md 6, and longer ways
    /// along them, since events get lost and reordered. Never back.
    pub const fn may_become(self, next: Self) -> bool {
        use PaymentState as P;
        match self {
            P::Created | P::ActionRequired | P::Processing => !matches!(next, P::Created),
            // A declined intent may be paid with another card until it is cancelled.
            P::Failed => next.has_come() || matches!(next, P::Voided),
            P::Authorised => matches!(
                next,
                P::Captured | P::PartlyRefunded | P::Refunded | P::Voided | P::Lapsed
            ),
            P::Captured => matches!(next, P::PartlyRefunded | P::Refunded),
            P::PartlyRefunded => matches!(next, P::PartlyRefunded | P::Refunded),
            P::Refunded | P::Voided | P::Lapsed => false,
        }
    }

    /// Whether the buyer's money was reserved or taken, whatever became of it later.
    pub const fn has_come(self) -> bool {
        matches!(
            self,
            Self::Authorised | Self::Captured | Self::PartlyRefunded | Self::Refunded
        )
    }

    /// Whether some of the buyer's money is reserved or taken now.
    pub const fn has_money(self) -> bool {
        matches!(
            self,
            Self::Authorised | Self::Captured | Self::PartlyRefunded
        )
    }
}

/// What a provider calls a payment, and what the buyer's browser needs to pay it.
#[derive(Clone, PartialEq, Eq)]
pub struct Intent {
    /// Which provider.
    pub provider: Text,
    /// Its name for the payment.
    pub id: Text,
    /// Whoever has it may pay the intent: for the buyer alone.
    pub client_secret: Text,
}

impl fmt::Debug for Intent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Intent")
            .field("provider", &self.provider)
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

/// The money of a booking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payment {
    /// What the provider said last.
    pub state: PaymentState,
    /// What the buyer is to pay: the prices of the lines when payment began.
    pub amount: Amount,
    /// What was taken, as the provider says.
    pub captured: Amount,
    /// What was sent back, as the provider says, in every try.
    pub refunded: Amount,
    /// What of that came back again: refunds that failed at the buyer's bank.
    pub bounced: Amount,
    /// What is to go back in all.
    pub returned: Amount,
    /// The payment at the provider, once it is known.
    pub intent: Option<Intent>,
}

impl Payment {
    /// A payment of `amount` that nobody has heard of yet.
    pub const fn new(amount: Amount) -> Self {
        Self {
            state: PaymentState::Created,
            amount,
            captured: Amount::ZERO,
            refunded: Amount::ZERO,
            bounced: Amount::ZERO,
            returned: Amount::ZERO,
            intent: None,
        }
    }

    /// What may still be sent back.
    pub fn left(&self) -> Amount {
        self.amount.checked_sub(self.returned).unwrap_or_default()
    }

    /// What the buyer has back.
    pub fn given_back(&self) -> Amount {
        self.refunded.checked_sub(self.bounced).unwrap_or_default()
    }

    /// Whether a report is about this payment: the same amount, and the same intent if one is known.
    pub(crate) fn is_meant_by(&self, report: &PaymentReport) -> bool {
        let is_same = |(known, told): (&Intent, &Intent)| {
            known.provider == told.provider && known.id == told.id
        };
        let intents = self.intent.as_ref().zip(report.intent.as_ref());
        report.amount == self.amount && intents.is_none_or(is_same)
    }

    /// The payment after a report. It only moves forward: what was said before is believed again
    /// in any order, and changes nothing.
    #[must_use]
    pub(crate) fn after(&self, report: &PaymentReport) -> Self {
        // Money that came back again moves a payment back, the only thing that does; a report that
        // does not know of it is older.
        let state = match report.bounced.cmp(&self.bounced) {
            Ordering::Greater if report.state.has_come() => report.state,
            Ordering::Greater | Ordering::Equal if self.state.may_become(report.state) => {
                report.state
            }
            Ordering::Greater | Ordering::Equal | Ordering::Less => self.state,
        };
        Self {
            state,
            captured: self.captured.max(report.captured),
            refunded: self.refunded.max(report.refunded),
            bounced: self.bounced.max(report.bounced),
            intent: self.intent.clone().or_else(|| report.intent.clone()),
            ..*self
        }
    }
}

/// How a booking's payment stands, as the provider tells it. Amounts are totals, so that a report may
/// come twice, late and out of order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PaymentReport {
    /// Which booking.
    pub booking: BookingId,
    /// What the payment is now.
    pub state: PaymentState,
    /// What the buyer was asked for.
    pub amount: Amount,
    /// In which money.
    pub currency: Currency,
    /// What was taken so far.
    pub captured: Amount,
    /// What was sent back so far, in every try.
    pub refunded: Amount,
    /// What of that came back again.
    pub bounced: Amount,
    /// Which payment it is at the provider.
    pub intent: Option<Intent>,
    /// The effect that is done with it.
    pub settles: Option<Effect>,
}

impl PaymentReport {
    /// What a provider says that moves whole amounts only: all of `booking`'s money is in `state`, half
    /// of it went back where some did.
    pub fn whole(booking: &Booking, currency: Currency, state: PaymentState) -> Self {
        let amount = booking
            .payment
            .as_ref()
            .map_or_else(|| booking.total(), |payment| payment.amount);
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
            | PaymentState::Lapsed => (Amount::ZERO, Amount::ZERO),
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

#[cfg(test)]
mod tests {
    use super::*;

    /// What is told of a payment of 900: its state, what was sent back, what came back again.
    fn told(state: PaymentState, refunded: i64, bounced: i64) -> PaymentReport {
        PaymentReport {
            booking: BookingId::from_bits(7),
            state,
            amount: Amount::from_minor(900),
            currency: Currency::parse("EUR").expect("a currency"),
            captured: Amount::from_minor(900),
            refunded: Amount::from_minor(refunded),
            bounced: Amount::from_minor(bounced),
            intent: None,
            settles: None,
        }
    }

    #[test]
    fn a_refund_that_came_back_counts_in_any_order_of_reports() {
        use PaymentState::{Captured, Refunded};
        let told = [
            told(Captured, 0, 0),
            told(Refunded, 900, 0),
            told(Captured, 900, 900),
            told(Refunded, 1_800, 900),
        ];
        let orders = [[0, 1, 2, 3], [0, 2, 1, 3], [2, 0, 3, 1], [3, 2, 1, 0]];
        for order in orders {
            let mut payment = Payment::new(Amount::from_minor(900));
            for report in order.iter().filter_map(|at| told.get(*at)) {
                payment = payment.after(report);
            }
            assert_eq!(payment.state, Refunded, "{order:?}");
            assert_eq!(payment.given_back(), Amount::from_minor(900), "{order:?}");
        }
    }

    #[test]
    fn nothing_else_moves_a_payment_back() {
        let refunded = Payment::new(Amount::from_minor(900));
        let refunded = refunded.after(&told(PaymentState::Refunded, 900, 0));
        for state in PaymentState::ALL {
            let after = refunded.after(&told(state, 0, 0));
            assert_eq!(after.state, PaymentState::Refunded, "{state:?}");
        }
        let bounced = refunded.after(&told(PaymentState::Captured, 900, 900));
        assert_eq!(bounced.state, PaymentState::Captured);
        assert_eq!(bounced.given_back(), Amount::ZERO);
    }
}
