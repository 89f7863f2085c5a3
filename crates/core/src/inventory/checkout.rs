//! Checkout pins a hold while its buyer pays; abandon ends that (model.md 4 and 5).

use super::Inventory;
use super::confirm::new_booking;
use super::work::{HoldUpdate, KNOWN, Work};
use crate::{
    Amount, Answer, BookingId, BookingState, Cause, Effect, EventNo, GivenLines, HoldId, HoldState,
    Invalid, OnHold, OnPaymentFailure, Payment, Rejection, Text, Timestamp,
};

/// The booking that a checkout begins.
pub(super) struct NewBooking {
    pub(super) booking: BookingId,
    pub(super) reference: Option<Text>,
    pub(super) exchange: Option<GivenLines>,
}

impl Inventory {
    pub(super) fn checkout(
        &mut self,
        work: &mut Work<'_>,
        on: OnHold,
        wanted: NewBooking,
    ) -> Result<Answer, Rejection> {
        let difference = wanted.exchange.as_ref();
        let difference = difference.map(|given| self.pay_difference(work, given, on));
        let difference = difference.transpose()?;
        let hold = self.require_hold(on.hold, on.by)?;
        hold.require_active(work.now, on.fence)?;
        let payment = difference.unwrap_or_else(|| Payment::new(hold.total()));
        if payment.amount == Amount::ZERO {
            let text = "it costs nothing: confirm it".to_owned();
            return Err(Invalid::new("hold", text).into());
        }
        let window = self.book(hold.event)?.event.policy.payment_window;
        let last = hold.max_expires_at.plus(window);
        let pin = HoldUpdate {
            state: HoldState::Pinned(wanted.booking),
            until: work.now.plus(window).min(last).max(hold.expires_at),
            cause: Cause::Pinned,
        };
        let hold = self.update_hold(work, on.hold, pin);
        let mut booking = new_booking(&hold, wanted.booking, wanted.reference, work.now);
        booking.payment = Some(Box::new(payment));
        work.effects.push(Effect::Authorise(booking.id));
        Ok(self.add_booking(work, booking))
    }

    pub(super) fn abandon(
        &mut self,
        work: &mut Work<'_>,
        on: OnHold,
        given_up: Option<BookingId>,
    ) -> Result<Answer, Rejection> {
        let hold = self.require_hold(on.hold, on.by)?;
        hold.require_live(work.now, on.fence)?;
        let HoldState::Pinned(booking) = hold.state else {
            return Ok(Answer::Hold(hold.clone()));
        };
        if given_up.is_some_and(|id| id != booking) {
            return Ok(Answer::Hold(hold.clone()));
        }
        work.effects.push(Effect::CancelIntent(booking));
        self.fail_payment(work, on.hold, booking);
        Ok(self.answer_hold(on.hold))
    }

    /// Detaches a hold from its booking; returns its event and its cap.
    pub(super) fn let_go_of_booking(&mut self, id: HoldId) -> (EventNo, Timestamp) {
        self.remember_hold(id);
        let hold = self.holds.get_mut(&id).expect(KNOWN);
        hold.state = HoldState::Active;
        (hold.event, hold.max_expires_at)
    }

    /// Ends a payment: the buyer keeps the units for the retry window, or they become free at once.
    pub(super) fn fail_payment(&mut self, work: &mut Work<'_>, id: HoldId, booking: BookingId) {
        // The intent is settled, so the end of the hold must not cancel it.
        let (event, max_expires_at) = self.let_go_of_booking(id);
        let policy = &self.known_book(event).event.policy;
        match policy.on_payment_failure {
            OnPaymentFailure::Keep => {
                let last = max_expires_at.plus(policy.payment_window);
                let unpin = HoldUpdate {
                    state: HoldState::Active,
                    until: work.now.plus(policy.retry_window).min(last),
                    cause: Cause::Unpinned,
                };
                self.update_hold(work, id, unpin);
            }
            OnPaymentFailure::Release => {
                self.end_hold(work, id, HoldState::Released, Cause::Released);
            }
        }
        self.booking_mut(work, booking).state = BookingState::Failed;
    }
}
