//! A payment: the mirror of what the provider did, never ahead of it (model.md 6).

mod effect;
mod report;
mod state;

use std::cmp::Ordering;
use std::fmt;

pub use effect::Effect;
pub use report::PaymentReport;
pub use state::PaymentState;

use crate::{Amount, BookingId, Text, UnitNo};

/// A provider's name for a payment, and the secret with which the buyer's browser pays it.
#[derive(Clone, PartialEq, Eq)]
pub struct Intent {
    pub provider: Text,
    pub id: Text,
    /// Allows to pay the intent: for the buyer alone.
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

/// Sold lines of a booking that are given back for other units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenLines {
    pub booking: BookingId,
    /// The units of the lines, sorted and distinct.
    pub units: Vec<UnitNo>,
}

/// The money of a booking.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Payment {
    /// The last state that the provider reported.
    pub state: PaymentState,
    /// The amount the buyer is to pay: the prices of the lines when payment began, less those of
    /// the lines that are given back for them.
    pub amount: Amount,
    /// The amount that was taken, as the provider says.
    pub captured: Amount,
    /// The amount that was sent back, as the provider says, in every try.
    pub refunded: Amount,
    /// The part of that which came back again: refunds that failed at the buyer's bank.
    pub bounced: Amount,
    /// The amount that is to be refunded in all.
    pub returned: Amount,
    /// The part of that which staff settled elsewhere: the provider is not asked for it.
    pub elsewhere: Amount,
    /// The payment at the provider, once it is known.
    pub intent: Option<Intent>,
    /// The lines that this payment pays the difference to: they are given back when it is paid.
    pub exchange: Option<GivenLines>,
    /// The price of those lines, once they are given back. It lies with their booking and may still
    /// be sent back for this one.
    pub credit: Amount,
    /// The part of this payment and its credit that is the credit of other bookings.
    pub carried: Amount,
}

impl Payment {
    /// Creates a payment of `amount` that the provider does not know yet.
    pub fn new(amount: Amount) -> Self {
        Self {
            amount,
            ..Self::default()
        }
    }

    /// Returns what may still be refunded for its booking: its own money and its credit, without
    /// the credit of other bookings.
    pub fn left(&self) -> Amount {
        Amount::sum([self.own_left(), self.credit].into_iter()).less(self.carried)
    }

    /// Returns what is paid for its booking and was not refunded: its own money that was taken, and
    /// its credit, without the credit of other bookings.
    pub fn paid(&self) -> Amount {
        let taken = self.captured.less(self.gone_back());
        Amount::sum([taken, self.credit].into_iter()).less(self.carried)
    }

    /// Returns what of its own money went back or is to: staff may have refunded at the provider.
    pub(crate) fn returning(&self) -> Amount {
        self.returned.max(self.gone_back())
    }

    /// Returns what of its own money, reserved or taken, is not to be refunded.
    pub(crate) fn own_left(&self) -> Amount {
        if self.state.has_money() {
            self.amount.less(self.returning())
        } else {
            Amount::ZERO
        }
    }

    /// Returns how much money the buyer has back by the provider.
    pub fn given_back(&self) -> Amount {
        self.refunded.checked_sub(self.bounced).unwrap_or_default()
    }

    /// Returns how much money the buyer has back, by the provider and elsewhere.
    pub fn gone_back(&self) -> Amount {
        Amount::sum([self.given_back(), self.elsewhere].into_iter())
    }

    /// Returns what was taken and is still to go back.
    pub fn owed(&self) -> Amount {
        if self.captured > Amount::ZERO && self.state.has_money() {
            self.owed_of(self.returned)
        } else {
            Amount::ZERO
        }
    }

    /// Returns what of `total` is still to go back: of no more than was taken, once it was.
    pub fn owed_of(&self, total: Amount) -> Amount {
        let all = if self.captured == Amount::ZERO {
            total
        } else {
            total.min(self.captured)
        };
        all.less(self.gone_back())
    }

    /// Returns the effect that a report says is done, if nothing is left to be done of it. A refund
    /// may have bounced since, as an earlier report may have said.
    pub(crate) fn settled_by(&self, report: &PaymentReport) -> Option<Effect> {
        report.settles.filter(|effect| match effect {
            Effect::Refund { total, .. } => {
                self.owed_of(*total) == Amount::ZERO || !self.state.has_money()
            }
            // A report without the intent that is known is of before it was named: nothing was cancelled.
            Effect::CancelIntent(_) => report.intent.is_some() || self.intent.is_none(),
            Effect::Authorise(_) | Effect::Capture(_) | Effect::Void(_) => true,
        })
    }

    /// Tells whether a report is about this payment: the same amount, and the same intent if one is
    /// known.
    pub(crate) fn is_meant_by(&self, report: &PaymentReport) -> bool {
        let is_same = |(known, told): (&Intent, &Intent)| {
            known.provider == told.provider && known.id == told.id
        };
        let intents = self.intent.as_ref().zip(report.intent.as_ref());
        report.amount == self.amount && intents.is_none_or(is_same)
    }

    /// Tells whether a report says that no intent can be made, and one is known: a call without an answer had
    /// made it, and it may still be paid.
    fn is_made_before(&self, report: &PaymentReport) -> bool {
        let is_refused = report.state == PaymentState::Failed && report.intent.is_none();
        let of_making = matches!(report.settles, Some(Effect::Authorise(_)));
        is_refused && of_making && self.intent.is_some()
    }

    /// Returns the payment after a report. It only moves forward: reports may be repeated in any
    /// order, which changes nothing.
    #[must_use]
    pub(crate) fn after(&self, report: &PaymentReport) -> Self {
        let told = if self.is_made_before(report) {
            self.state
        } else {
            report.state
        };
        // Money that came back again moves a payment back, the only thing that does; a report that
        // does not know of it is older.
        let state = match report.bounced.cmp(&self.bounced) {
            Ordering::Greater if told.has_come() => told,
            Ordering::Greater | Ordering::Equal if self.state.may_become(told) => told,
            Ordering::Greater | Ordering::Equal | Ordering::Less => self.state,
        };
        Self {
            state,
            captured: self.captured.max(report.captured),
            refunded: self.refunded.max(report.refunded),
            bounced: self.bounced.max(report.bounced),
            intent: self.intent.clone().or_else(|| report.intent.clone()),
            ..self.clone()
        }
    }
}
