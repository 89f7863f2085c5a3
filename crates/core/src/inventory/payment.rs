//! Reports of the provider change the booking (model.md 5 and 6). What must happen at the provider
//! is an effect of the same commit; money that comes too late is never dropped.

use super::Inventory;
use super::cancel::sold_units;
use super::work::{Work, ended_by};
use crate::{
    Amount, Answer, BookingId, BookingState, Cause, Effect, HoldId, LatePayment, OnPaymentFailure,
    PaymentReport, PaymentState, Rejection, UnitNo,
};

impl Inventory {
    pub(super) fn payment(
        &mut self,
        work: &mut Work<'_>,
        report: &PaymentReport,
    ) -> Result<Answer, Rejection> {
        let booking = self.bookings.get(&report.booking);
        let booking = booking.ok_or(Rejection::BookingNotFound)?;
        let known = booking.payment.as_ref();
        let known = known.ok_or(Rejection::BookingNotConfirmed)?;
        let currency = self.book(booking.event)?.event.currency;
        if currency != report.currency || !known.is_meant_by(report) {
            return Err(Rejection::PaymentMismatch(report.booking));
        }
        let next = known.after(report);
        let settled = next.settled_by(report);
        work.done_effects.extend(settled);
        let has_bounced = next.bounced > known.bounced;
        // Money that came back may undo an end; on a way forward it changes nothing about where that leads.
        let goes_on = !has_bounced || known.state.may_become(next.state);
        let is_news = next.state != known.state && goes_on;
        // The payment had ended without an intent, so none was cancelled; what is paid by this one would buy nothing.
        let has_failed = known.state == PaymentState::Failed && next.state == known.state;
        let is_stray = has_failed && next.intent != known.intent;
        if next == **known {
            let answer = Answer::Booking(booking.clone());
            if settled.is_some() {
                // Written, so that a server whose copy is old does not settle what a later report asked for anew.
                self.booking_mut(work, report.booking);
            }
            return Ok(answer);
        }
        let (state, hold) = (booking.state, booking.hold);
        self.booking_mut(work, report.booking).payment = Some(Box::new(next));
        if is_stray {
            work.effects.push(Effect::CancelIntent(report.booking));
        }
        if has_bounced {
            self.send_again(work, report.booking);
        }
        if is_news {
            self.follow(work, report, state, hold);
        }
        Ok(self.answer_booking(report.booking))
    }

    /// Updates the booking after a change of its payment's state.
    fn follow(
        &mut self,
        work: &mut Work<'_>,
        report: &PaymentReport,
        state: BookingState,
        hold: Option<HoldId>,
    ) {
        match state {
            BookingState::PendingPayment => self.follow_pending(work, report, hold),
            BookingState::Expired | BookingState::Failed => self.follow_late(work, report),
            BookingState::NeedsRefund => self.follow_refund(work, report),
            BookingState::Confirmed | BookingState::PartlyCancelled => {
                self.undo_unpaid(work, report);
            }
            BookingState::Cancelled | BookingState::Refunded => {}
        }
    }

    /// Undoes a sale whose money was reserved and is gone before it was taken: the intent of a payment that
    /// was given up was cancelled while the buyer paid it, or it was not taken in time.
    fn undo_unpaid(&mut self, work: &mut Work<'_>, report: &PaymentReport) {
        let booking = self.known_booking(report.booking);
        let taken = booking.payment.as_ref().map(|payment| payment.captured);
        let is_gone = match money(report.state) {
            Money::Gone => taken == Some(Amount::ZERO),
            Money::Pending | Money::Here => false,
        };
        if is_gone {
            let sold: Vec<UnitNo> = sold_units(booking).collect();
            let cost = self.give_back(work, report.booking, &sold, Cause::Cancelled);
            // Nothing of its own is there to go back; what was paid for lines it was exchanged for is.
            self.refund(work, report.booking, cost);
        }
    }

    /// Updates a booking that waits for its money.
    fn follow_pending(
        &mut self,
        work: &mut Work<'_>,
        report: &PaymentReport,
        hold: Option<HoldId>,
    ) {
        let Some(hold) = hold else { return };
        match money(report.state) {
            Money::Pending if self.is_over_when(report) => self.fail_or_expire(work, hold, report),
            Money::Pending => {}
            Money::Here => self.paid(work, report, hold),
            Money::Gone => self.fail_or_expire(work, hold, report),
        }
    }

    /// Updates a booking whose hold ended before the money came, or whose payment failed.
    fn follow_late(&mut self, work: &mut Work<'_>, report: &PaymentReport) {
        match money(report.state) {
            Money::Here => self.paid_late(work, report),
            Money::Pending | Money::Gone => {}
        }
    }

    /// Updates a booking whose money is on its way back.
    fn follow_refund(&mut self, work: &mut Work<'_>, report: &PaymentReport) {
        match money(report.state) {
            Money::Gone => {
                self.booking_mut(work, report.booking).state = BookingState::Refunded;
            }
            // It was to be voided and was taken all the same.
            Money::Here => self.send_back(work, report),
            Money::Pending => {}
        }
    }

    /// Sells the units of a booking whose money came in time.
    fn paid(&mut self, work: &mut Work<'_>, report: &PaymentReport, hold: HoldId) {
        if let Some((state, cause)) = self.end_of(hold) {
            // Its money is here: the intent must not be cancelled before that is dealt with.
            self.let_go_of_booking(hold);
            self.end_hold(work, hold, state, cause);
            self.booking_mut(work, report.booking).state = ended_by(cause);
            self.paid_late(work, report);
            return;
        }
        if !self.can_give_lines(report.booking) {
            self.fail_payment(work, hold, report.booking);
            self.need_refund(work, report);
            return;
        }
        self.give_lines(work, report.booking);
        let lines = self.sell_hold(work, hold, report.booking, Cause::Confirmed);
        let mut booking = self.known_booking(report.booking).clone();
        booking.lines = lines;
        self.count_sale(work, &mut booking);
        *self.booking_mut(work, report.booking) = booking;
        capture_if_authorised(work, report);
    }

    /// Applies exactly the event's late policy to money that came after the hold ended.
    fn paid_late(&mut self, work: &mut Work<'_>, report: &PaymentReport) {
        let event = self.known_booking(report.booking).event;
        self.reopen_units_of_ended_holds(event, work.now);
        let policy = self.known_book(event).event.policy.late_payment;
        match policy {
            LatePayment::IfStillFree if self.may_sell_late(work, report.booking) => {
                // The intent was to be cancelled when the hold ended. If that is under way just now,
                // the sale is undone by what comes of it.
                work.done_effects.push(Effect::CancelIntent(report.booking));
                self.sell_late(work, report.booking);
                capture_if_authorised(work, report);
            }
            LatePayment::IfStillFree | LatePayment::Refund => self.need_refund(work, report),
            LatePayment::Refuse => self.send_back(work, report),
        }
    }

    /// Tells whether the units of a booking pass the guards of FREE > SOLD (model.md 3). Those of a hold that
    /// staff revoked do not: staff took them from this very buyer. Nor do those whose money was ordered back
    /// before, under another policy.
    fn may_sell_late(&self, work: &mut Work<'_>, id: BookingId) -> bool {
        let booking = self.known_booking(id);
        let Ok(book) = self.book(booking.event) else {
            return false;
        };
        let hold = booking.hold.and_then(|hold| self.holds.get(&hold));
        let is_revoked = hold.is_some_and(|hold| hold.state.reason().is_some());
        let payment = booking.payment.as_ref();
        let goes_back = payment.is_some_and(|payment| payment.returned > Amount::ZERO);
        let units = booking.units();
        let is_free = |unit: &UnitNo| book.seating.is_available(*unit, work.now);
        !is_revoked
            && !goes_back
            && units.iter().all(is_free)
            && self.can_give_lines(id)
            && self
                .require_sellable(work, book, &units, &booking.holder)
                .is_ok()
    }

    fn sell_late(&mut self, work: &mut Work<'_>, id: BookingId) {
        self.give_lines(work, id);
        let mut booking = self.known_booking(id).clone();
        self.sell_lines(work, &mut booking);
        *self.booking_mut(work, id) = booking;
    }

    fn need_refund(&mut self, work: &mut Work<'_>, report: &PaymentReport) {
        self.send_back(work, report);
        let payment = self.known_booking(report.booking).payment.as_ref();
        let is_settled = payment.is_some_and(|payment| {
            payment.elsewhere > Amount::ZERO && payment.owed() == Amount::ZERO
        });
        // Nothing waits for money that staff settled elsewhere before.
        if !is_settled {
            self.booking_mut(work, report.booking).state = BookingState::NeedsRefund;
        }
    }

    fn send_back(&mut self, work: &mut Work<'_>, report: &PaymentReport) {
        if report.state == PaymentState::Authorised {
            work.effects.push(Effect::Void(report.booking));
        } else {
            self.refund(work, report.booking, report.amount);
        }
    }

    /// Tells whether a declined card ends the payment: else the buyer may use another one.
    fn is_over_when(&self, report: &PaymentReport) -> bool {
        let event = self.event(self.known_booking(report.booking).event);
        let rule = event.map(|event| event.policy.on_payment_failure);
        report.state == PaymentState::Declined && rule == Some(OnPaymentFailure::Release)
    }

    fn fail_or_expire(&mut self, work: &mut Work<'_>, hold: HoldId, report: &PaymentReport) {
        if let Some((state, cause)) = self.end_of(hold) {
            self.end_hold(work, hold, state, cause);
            return;
        }
        if report.state == PaymentState::Declined {
            // A declined intent could still be paid with another card, after the units are gone.
            work.effects.push(Effect::CancelIntent(report.booking));
        }
        self.fail_payment(work, hold, report.booking);
    }
}

/// Where the buyer's money is.
enum Money {
    /// Not here yet.
    Pending,
    /// Reserved or taken.
    Here,
    /// Never came, or went back.
    Gone,
}

fn money(state: PaymentState) -> Money {
    match state {
        PaymentState::Created
        | PaymentState::ActionRequired
        | PaymentState::Processing
        | PaymentState::Declined => Money::Pending,
        PaymentState::Authorised | PaymentState::Captured | PaymentState::PartlyRefunded => {
            Money::Here
        }
        PaymentState::Refunded
        | PaymentState::Failed
        | PaymentState::Voided
        | PaymentState::Lapsed => Money::Gone,
    }
}

fn capture_if_authorised(work: &mut Work<'_>, report: &PaymentReport) {
    if report.state == PaymentState::Authorised {
        work.effects.push(Effect::Capture(report.booking));
    }
}
