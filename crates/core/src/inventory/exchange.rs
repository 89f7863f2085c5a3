//! Exchange: lines of a booking for the units of a hold, in one commit. What costs more is paid by a
//! checkout of the hold, whose booking takes the place of the lines.

use super::Inventory;
use super::cancel::{chosen_lines, require_sold, sold_units};
use super::work::Work;
use crate::{
    Amount, Answer, Authority, Booking, BookingId, BookingState, Cause, Difference, GivenLines,
    Hold, Invalid, Line, LineState, OnHold, Payment, PaymentState, Rejection, UnitNo,
};

/// The two sides of an exchange.
struct Deal {
    /// The units of the lines given back, sorted and distinct.
    units: Vec<UnitNo>,
    /// The price of those lines.
    old: Amount,
    /// The price of the hold.
    new: Amount,
}

impl Inventory {
    pub(super) fn exchange(
        &mut self,
        work: &mut Work<'_>,
        given: &GivenLines,
        on: OnHold,
        difference: Difference,
    ) -> Result<Answer, Rejection> {
        let deal = self.require_deal(work, given, on)?;
        if deal.new > deal.old && difference == Difference::Unpaid {
            return Err(Rejection::PaymentRequired);
        }
        let id = given.booking;
        self.swap(work, id, &deal.units, on);
        self.refund(work, id, deal.old.less(deal.new));
        Ok(self.answer_booking(id))
    }

    /// Checks what both kinds of exchange need: sold lines of a booking and a live hold of one
    /// owner, in one event, before the deadline.
    fn require_deal(
        &self,
        work: &Work<'_>,
        given: &GivenLines,
        on: OnHold,
    ) -> Result<Deal, Rejection> {
        let booking = self.require_booking(given.booking, on.by)?;
        let hold = self.require_hold(on.hold, on.by)?;
        require_same_owner(booking, hold, on.by)?;
        // Before any read of the booking's event: a ledger may keep each event in a memory of its
        // own, and then only the hold's is here.
        if hold.event != booking.event {
            let text = "the hold is of another event than the booking".to_owned();
            return Err(Invalid::new("hold", text).into());
        }
        require_sold(booking)?;
        hold.require_active(work.now, on.fence)?;
        self.require_before_deadline(work, booking, on.by)?;
        let chart = &self.book(booking.event)?.event.chart;
        let units = chosen_lines(chart, booking, &given.units, [])?;
        Ok(Deal {
            old: price_of(booking, &units),
            new: hold.total(),
            units,
        })
    }

    /// Builds the payment of a checkout whose buyer gives lines back: the difference.
    ///
    /// # Errors
    /// Those of an exchange; `Invalid` when it costs no more; `PaymentInProgress` while the money of
    /// the lines was not taken, because nothing can be owed to a buyer who may never pay.
    pub(super) fn pay_difference(
        &self,
        work: &Work<'_>,
        given: &GivenLines,
        on: OnHold,
    ) -> Result<Payment, Rejection> {
        let deal = self.require_deal(work, given, on)?;
        if deal.new <= deal.old {
            let text = "it costs no more than what is given back: exchange it at once".to_owned();
            return Err(Invalid::new("exchange", text).into());
        }
        let source = self.require_booking(given.booking, on.by)?;
        let is_taken = |payment: &Payment| payment.state > PaymentState::Authorised;
        if !source.payment.as_deref().is_none_or(is_taken) {
            return Err(Rejection::PaymentInProgress(given.booking));
        }
        Ok(Payment {
            exchange: Some(GivenLines {
                booking: given.booking,
                units: deal.units,
            }),
            ..Payment::new(deal.new.less(deal.old))
        })
    }

    /// Tells whether the lines that a booking's payment is the difference to are still sold, for
    /// the price that they had then.
    pub(super) fn can_give_lines(&self, id: BookingId) -> bool {
        let Some(given) = self.lines_to_give(id) else {
            return true;
        };
        let Some(source) = self.bookings.get(&given.booking) else {
            return false;
        };
        let sold: Vec<UnitNo> = sold_units(source).collect();
        let is_sold = |unit: &UnitNo| sold.binary_search(unit).is_ok();
        let paid = self.bookings.get(&id).and_then(|new| {
            let cost = price_of(source, &given.units);
            let paid = new.payment.as_deref()?.amount.checked_add(cost)?;
            Some(paid >= new.total())
        });
        given.units.iter().all(is_sold) && paid == Some(true)
    }

    /// Gives back the lines that a booking is exchanged for. Their price stays with the payment of
    /// their own booking, as the credit of the new one.
    pub(super) fn give_lines(&mut self, work: &mut Work<'_>, id: BookingId) {
        let Some(given) = self.lines_to_give(id).cloned() else {
            return;
        };
        let cost = self.give_back(work, given.booking, &given.units, Cause::Exchanged);
        let Some(source) = &mut self.booking_mut(work, given.booking).payment else {
            return;
        };
        let credit = cost.min(source.left());
        source.carried = Amount::sum([source.carried, credit].into_iter());
        if let Some(payment) = &mut self.booking_mut(work, id).payment {
            payment.credit = credit;
        }
    }

    pub(super) fn lines_to_give(&self, id: BookingId) -> Option<&GivenLines> {
        let payment = self.bookings.get(&id)?.payment.as_deref()?;
        payment.exchange.as_ref()
    }

    fn swap(&mut self, work: &mut Work<'_>, id: BookingId, units: &[UnitNo], on: OnHold) {
        // Lines that were cancelled before stay in the booking's record; swapped ones leave it.
        let booking = self.booking_mut(work, id);
        let is_sold = |line: &Line| line.state == LineState::Sold;
        let (owned, cancelled) = booking.lines.iter().copied().partition(is_sold);
        booking.lines = owned;
        self.give_back(work, id, units, Cause::Exchanged);
        let fence = self.holds.get(&on.hold).map(|hold| hold.fence);
        let new = self.sell_hold(work, on.hold, id, Cause::Exchanged);
        let units = new.len();
        let booking = self.booking_mut(work, id);
        booking.fence = booking.fence.max(fence.unwrap_or_default());
        booking.lines.retain(is_sold);
        booking.state = if cancelled.is_empty() {
            BookingState::Confirmed
        } else {
            BookingState::PartlyCancelled
        };
        booking.lines.extend(cancelled);
        booking.lines.extend(new);
        booking.lines.sort_by_key(|line| line.unit);
        let (event, holder) = (booking.event, booking.holder.clone());
        self.count_bought(event, &holder, units);
    }
}

/// Returns the price of sold lines; `units` is sorted.
fn price_of(booking: &Booking, units: &[UnitNo]) -> Amount {
    let given =
        |line: &&Line| line.state == LineState::Sold && units.binary_search(&line.unit).is_ok();
    Amount::sum(booking.lines.iter().filter(given).map(|line| line.price))
}

/// Checks that a booking and a hold have one owner: the secret of a hold proves that hold alone.
fn require_same_owner(booking: &Booking, hold: &Hold, by: Authority) -> Result<(), Rejection> {
    match by {
        Authority::Secret if booking.holder != hold.holder => Err(Rejection::BookingNotFound),
        Authority::Staff | Authority::Caller(_) | Authority::Secret => Ok(()),
    }
}
