//! A provider in memory: what it was asked, what it holds, and every state that it ever told of.

use std::collections::BTreeMap;

use soldonce_core::{Amount, Booking, BookingId, Currency, Effect, PaymentReport, PaymentState};

/// One payment at the provider, in minor units.
#[derive(Clone, Copy, Debug)]
pub(super) struct Intent {
    amount: i64,
    state: PaymentState,
    pub(super) captured: i64,
    /// In every try.
    refunded: i64,
    bounced: i64,
}

/// How a buyer pays.
#[derive(Clone, Copy, Debug)]
pub(super) enum Way {
    Authorise,
    Capture,
    Decline,
    /// The reservation runs out.
    Lapse,
    /// A refund comes back from the bank.
    Bounce,
}

#[derive(Debug, Default)]
pub(super) struct Provider {
    /// Every state of each payment, the newest last.
    known: BTreeMap<BookingId, Vec<Intent>>,
    /// What it is still to be asked, oldest first.
    pub(super) open: Vec<Effect>,
}

impl Intent {
    /// What the buyer has back.
    pub(super) fn back(&self) -> i64 {
        self.refunded - self.bounced
    }

    pub(super) fn is_reserved(&self) -> bool {
        self.state == PaymentState::Authorised
    }

    fn settle_state(&mut self) {
        self.state = match self.back() {
            0 => PaymentState::Captured,
            back if back == self.captured => PaymentState::Refunded,
            _ => PaymentState::PartlyRefunded,
        };
    }
}

impl Provider {
    pub(super) fn create(&mut self, booking: &Booking) {
        let amount = booking.payment.as_ref().unwrap().amount.minor();
        let intent = Intent {
            amount,
            state: PaymentState::Created,
            captured: 0,
            refunded: 0,
            bounced: 0,
        };
        self.known.insert(booking.id, vec![intent]);
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (BookingId, &Intent)> {
        let known = self.known.iter();
        known.map(|(id, states)| (*id, states.last().unwrap()))
    }

    fn now(&self, id: BookingId) -> Intent {
        *self.known[&id].last().unwrap()
    }

    fn note(&mut self, id: BookingId, intent: Intent) {
        self.known.get_mut(&id).unwrap().push(intent);
    }

    /// The buyer or the bank does something, if it can be done now.
    pub(super) fn buyer(&mut self, id: BookingId, way: Way) {
        if !self.known.contains_key(&id) {
            return;
        }
        let mut intent = self.now(id);
        let may_pay = matches!(intent.state, PaymentState::Created | PaymentState::Declined);
        match way {
            Way::Authorise if may_pay => intent.state = PaymentState::Authorised,
            Way::Capture if may_pay => {
                intent.captured = intent.amount;
                intent.state = PaymentState::Captured;
            }
            Way::Decline if may_pay => intent.state = PaymentState::Declined,
            Way::Lapse if intent.state == PaymentState::Authorised => {
                intent.state = PaymentState::Lapsed;
            }
            Way::Bounce if intent.back() > 0 => {
                intent.bounced += (intent.back() / 2).max(1);
                intent.settle_state();
            }
            Way::Authorise | Way::Capture | Way::Decline | Way::Lapse | Way::Bounce => return,
        }
        self.note(id, intent);
    }

    /// What it tells of a payment, `age` states ago.
    pub(super) fn report(&self, id: BookingId, age: usize) -> PaymentReport {
        let states = &self.known[&id];
        let intent = states[states.len() - 1 - age.min(states.len() - 1)];
        PaymentReport {
            booking: id,
            state: intent.state,
            amount: Amount::from_minor(intent.amount),
            currency: Currency::parse("EUR").unwrap(),
            captured: Amount::from_minor(intent.captured),
            refunded: Amount::from_minor(intent.refunded),
            bounced: Amount::from_minor(intent.bounced),
            intent: None,
            settles: None,
        }
    }

    /// Carries an effect out, and tells what came of it.
    pub(super) fn carry_out(&mut self, effect: Effect) -> Result<PaymentReport, String> {
        let id = effect.booking();
        let mut intent = self.now(id);
        let before = intent.state;
        let is_over = matches!(before, PaymentState::Voided | PaymentState::Lapsed);
        match effect {
            Effect::Capture(_) if before == PaymentState::Authorised => {
                intent.captured = intent.amount;
                intent.state = PaymentState::Captured;
            }
            Effect::Void(_) | Effect::CancelIntent(_) if intent.captured == 0 && !is_over => {
                intent.state = PaymentState::Voided;
            }
            Effect::Refund { total, .. } if intent.captured > 0 => {
                let missing = total.minor() - intent.back();
                if total.minor() > intent.captured {
                    return Err(format!("{effect:?} is more than was taken: {intent:?}"));
                }
                if missing > 0 {
                    intent.refunded += missing;
                    intent.settle_state();
                }
            }
            Effect::Authorise(_)
            | Effect::Capture(_)
            | Effect::Void(_)
            | Effect::CancelIntent(_)
            | Effect::Refund { .. } => {}
        }
        self.note(id, intent);
        // What was never taken cannot be sent back, and need not be.
        let waits = matches!(effect, Effect::Refund { .. }) && intent.captured == 0 && !is_over;
        let settles = Some(effect).filter(|_| !waits);
        let report = self.report(id, 0);
        Ok(PaymentReport { settles, ..report })
    }
}
