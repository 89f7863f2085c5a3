//! Exchange: lines of a booking for the units of a hold, in one commit.

use super::Inventory;
use super::cancel::{chosen_lines, require_sold};
use super::work::Work;
use crate::{
    Amount, Answer, Authority, Booking, BookingId, BookingState, Cause, Hold, Invalid, LineState,
    OnHold, Rejection, UnitNo,
};

impl Inventory {
    pub(super) fn exchange(
        &mut self,
        work: &mut Work<'_>,
        id: BookingId,
        give: &[UnitNo],
        on: OnHold,
    ) -> Result<Answer, Rejection> {
        let booking = self.require_booking(id, on.by)?;
        let hold = self.require_hold(on.hold, on.by)?;
        require_same_owner(booking, hold, on.by)?;
        require_sold(booking)?;
        hold.require_active(work.now, on.fence)?;
        self.require_before_deadline(work, booking, on.by)?;
        if hold.event != booking.event {
            let text = "the hold is of another event than the booking".to_owned();
            return Err(Invalid::new("hold", text).into());
        }
        let chart = &self.book(booking.event)?.event.chart;
        let units = chosen_lines(chart, booking, give, [])?;
        let given = |line: &&crate::Line| {
            line.state == LineState::Sold && units.binary_search(&line.unit).is_ok()
        };
        let old = Amount::sum(booking.lines.iter().filter(given).map(|line| line.price));
        let new = hold.total();
        if new > old {
            return Err(Rejection::PaymentRequired);
        }
        self.swap(work, id, &units, on);
        let difference = old.checked_sub(new).unwrap_or_default();
        self.refund(work, id, difference);
        Ok(self.answer_booking(id))
    }

    fn swap(&mut self, work: &mut Work<'_>, id: BookingId, units: &[UnitNo], on: OnHold) {
        // Lines that were cancelled before stay in the booking's record; swapped ones leave it.
        let booking = self.booking_mut(id);
        let is_sold = |line: &crate::Line| line.state == LineState::Sold;
        let (owned, cancelled) = booking.lines.iter().copied().partition(is_sold);
        booking.lines = owned;
        self.give_back(work, id, units, Cause::Exchanged);
        let new = self.sell_hold(work, on.hold, id, Cause::Exchanged);
        let count = u32::try_from(new.len()).unwrap_or(u32::MAX);
        let booking = self.booking_mut(id);
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
        self.remember_bought(event, &holder);
        self.book_mut(event).count_bought(&holder, count);
    }
}

/// The secret of a hold proves that hold alone: it reaches a booking only if both have one owner.
fn require_same_owner(booking: &Booking, hold: &Hold, by: Authority) -> Result<(), Rejection> {
    match by {
        Authority::Secret if booking.holder != hold.holder => Err(Rejection::BookingNotFound),
        Authority::Staff | Authority::Caller(_) | Authority::Secret => Ok(()),
    }
}
