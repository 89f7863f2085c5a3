//! Payment: checkout pins the hold, the provider's word moves the booking (model.md 4 to 6).
//! Whatever must happen at the provider leaves as an effect of the same commit.

use super::Inventory;
use super::confirm::new_booking;
use super::work::Work;
use crate::unit::Step;
use crate::{
    Answer, BookingId, BookingState, Cause, Effect, HoldId, HoldState, LatePayment, LineState,
    OnHold, OnPaymentFailure, PaymentReport, PaymentState, Rejection, Text, UnitNo, UnitState,
};

impl Inventory {
    pub(super) fn checkout(
        &mut self,
        work: &mut Work<'_>,
        on: OnHold,
        booking: BookingId,
        reference: Option<Text>,
    ) -> Result<Answer, Rejection> {
        let hold = self.require_hold(on.hold, on.by)?;
        hold.require_active(work.now, on.fence)?;
        let window = self.book(hold.event)?.event.policy.payment_window;
        let last = hold.max_expires_at.plus(window);
        let until = work.now.plus(window).min(last).max(hold.expires_at);
        let hold = self.reschedule(
            work,
            on.hold,
            HoldState::Pinned(booking),
            until,
            Cause::Pinned,
        );
        let mut booking = new_booking(&hold, booking, reference, work.now);
        booking.payment = Some(PaymentState::Created);
        self.add_booking(work, booking.clone());
        Ok(Answer::Booked(booking))
    }

    pub(super) fn abandon(&mut self, work: &mut Work<'_>, on: OnHold) -> Result<Answer, Rejection> {
        let hold = self.require_hold(on.hold, on.by)?;
        hold.require_live(work.now, on.fence)?;
        let HoldState::Pinned(booking) = hold.state else {
            return Ok(Answer::Hold(hold.clone()));
        };
        work.effects.push(Effect::CancelIntent(booking));
        self.fail_payment(work, on.hold, booking);
        Ok(Answer::Hold(self.hold_mut(on.hold).clone()))
    }

    pub(super) fn payment(
        &mut self,
        work: &mut Work<'_>,
        report: PaymentReport,
    ) -> Result<Answer, Rejection> {
        let booking = self
            .bookings
            .get(&report.booking)
            .ok_or(Rejection::BookingNotFound)?;
        let known = booking.payment.ok_or(Rejection::BookingNotConfirmed)?;
        if known == report.state || !known.may_become(report.state) {
            return Ok(Answer::Booking(booking.clone()));
        }
        self.booking_mut(report.booking).payment = Some(report.state);
        work.changed_booking(report.booking);
        self.follow_payment(work, report);
        Ok(Answer::Booking(self.booking_mut(report.booking).clone()))
    }

    fn follow_payment(&mut self, work: &mut Work<'_>, report: PaymentReport) {
        use PaymentState as P;
        let booking = self.booking_mut(report.booking);
        let (state, hold) = (booking.state, booking.hold);
        match (state, report.state) {
            (BookingState::PendingPayment, P::Authorised | P::Captured) => {
                self.paid(work, report, hold);
            }
            (BookingState::PendingPayment, P::Failed | P::Voided | P::Lapsed) => {
                if let Some(hold) = hold {
                    self.fail_or_expire(work, hold, report.booking);
                }
            }
            (BookingState::Expired | BookingState::Failed, P::Authorised | P::Captured) => {
                self.paid_late(work, report);
            }
            (BookingState::NeedsRefund, P::Voided | P::Refunded | P::Lapsed) => {
                self.booking_mut(report.booking).state = BookingState::Refunded;
            }
            _ => {}
        }
    }

    /// Money came while the booking waited for it.
    fn paid(&mut self, work: &mut Work<'_>, report: PaymentReport, hold: Option<HoldId>) {
        let Some(hold) = hold.and_then(|id| self.holds.get(&id)) else {
            return;
        };
        let id = hold.id;
        if !hold.is_live(work.now) {
            self.end_hold(work, id, HoldState::Expired, Cause::Expired);
            self.paid_late(work, report);
            return;
        }
        let lines = self.sell_hold(work, id, report.booking, Cause::Confirmed);
        let now = work.now;
        let booking = self.booking_mut(report.booking);
        booking.lines = lines;
        booking.state = BookingState::Confirmed;
        booking.confirmed_at = Some(now);
        capture_if_authorised(work, report);
    }

    /// Money came after the hold ended: exactly the event's late policy happens.
    fn paid_late(&mut self, work: &mut Work<'_>, report: PaymentReport) {
        let (event, units) = {
            let booking = self.booking_mut(report.booking);
            (
                booking.event,
                booking
                    .lines
                    .iter()
                    .map(|line| line.unit)
                    .collect::<Vec<UnitNo>>(),
            )
        };
        let book = self.book_mut(event);
        let policy = book.event.policy.late_payment;
        let all_free = units
            .iter()
            .all(|unit| book.seating.is_available(*unit, work.now));
        let on_sale = book.event.state == crate::EventState::Open;
        match policy {
            LatePayment::IfStillFree if all_free && on_sale => {
                self.sell_late(work, report.booking, &units);
                capture_if_authorised(work, report);
            }
            LatePayment::IfStillFree | LatePayment::Refund => {
                self.booking_mut(report.booking).state = BookingState::NeedsRefund;
                self.send_back(work, report);
            }
            LatePayment::Refuse => {
                self.booking_mut(report.booking).state = BookingState::Expired;
                self.send_back(work, report);
            }
        }
    }

    fn sell_late(&mut self, work: &mut Work<'_>, id: BookingId, units: &[UnitNo]) {
        let event = self.booking_mut(id).event;
        self.end_overdue_holds(work, event, units);
        let fence = self.next_fence(event, units);
        let mut versions = Vec::with_capacity(units.len());
        for unit in units {
            let (to, cause) = (UnitState::Sold(id), Cause::SoldDirectly);
            versions.push(self.step(
                work,
                event,
                *unit,
                Step {
                    to,
                    fence,
                    cause,
                    hold: None,
                },
            ));
        }
        let now = work.now;
        let booking = self.booking_mut(id);
        for (line, version) in booking.lines.iter_mut().zip(versions) {
            (line.state, line.version) = (LineState::Sold, version);
        }
        booking.fence = fence;
        booking.state = BookingState::Confirmed;
        booking.confirmed_at = Some(now);
        let holder = booking.holder.clone();
        let count = u32::try_from(units.len()).unwrap_or(u32::MAX);
        self.book_mut(event).count_bought(&holder, count);
    }

    fn send_back(&mut self, work: &mut Work<'_>, report: PaymentReport) {
        let amount = self.booking_mut(report.booking).total();
        work.effects
            .push(if report.state == PaymentState::Authorised {
                Effect::Void(report.booking)
            } else {
                Effect::Refund {
                    booking: report.booking,
                    amount,
                }
            });
    }

    fn fail_or_expire(&mut self, work: &mut Work<'_>, hold: HoldId, booking: BookingId) {
        if self
            .holds
            .get(&hold)
            .is_some_and(|hold| hold.is_live(work.now))
        {
            self.fail_payment(work, hold, booking);
        } else if self
            .holds
            .get(&hold)
            .is_some_and(|hold| !hold.state.is_terminal())
        {
            self.end_hold(work, hold, HoldState::Expired, Cause::Expired);
        }
    }

    /// The buyer keeps the units for the retry window, or they are free at once.
    fn fail_payment(&mut self, work: &mut Work<'_>, hold: HoldId, booking: BookingId) {
        let held = self.hold_mut(hold);
        let (event, max_expires_at) = (held.event, held.max_expires_at);
        let policy = self.book_mut(event).event.policy.clone();
        match policy.on_payment_failure {
            OnPaymentFailure::Keep => {
                let last = max_expires_at.plus(policy.payment_window);
                let until = work.now.plus(policy.retry_window).min(last);
                self.reschedule(work, hold, HoldState::Active, until, Cause::Unpinned);
            }
            OnPaymentFailure::Release => {
                // The intent is settled: the hold lets go of its booking before it ends.
                self.hold_mut(hold).state = HoldState::Active;
                self.end_hold(work, hold, HoldState::Released, Cause::Released);
            }
        }
        self.booking_mut(booking).state = BookingState::Failed;
        work.changed_booking(booking);
    }
}

fn capture_if_authorised(work: &mut Work<'_>, report: PaymentReport) {
    if report.state == PaymentState::Authorised {
        work.effects.push(Effect::Capture(report.booking));
    }
}
