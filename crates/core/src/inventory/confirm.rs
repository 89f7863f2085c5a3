//! Confirm: every unit of a hold is sold in one commit (model.md 5).

use super::Inventory;
use super::work::Work;
use crate::{
    Amount, Answer, Booking, BookingId, BookingState, Cause, Hold, Line, LineState, OnHold,
    Rejection, Text, Timestamp,
};

impl Inventory {
    pub(super) fn confirm(
        &mut self,
        work: &mut Work<'_>,
        on: OnHold,
        booking: BookingId,
        reference: Option<Text>,
    ) -> Result<Answer, Rejection> {
        let hold = self.require_hold(on.hold, on.by)?;
        hold.require_active(work.now, on.fence)?;
        let mut booking = new_booking(hold, booking, reference, work.now);
        booking.lines = self.sell_hold(work, on.hold, booking.id, Cause::Confirmed);
        self.count_sale(work, &mut booking);
        Ok(self.add_booking(work, booking))
    }

    /// Confirms a hold that costs nothing.
    pub(super) fn confirm_free(
        &mut self,
        work: &mut Work<'_>,
        on: OnHold,
        booking: BookingId,
        reference: Option<Text>,
    ) -> Result<Answer, Rejection> {
        let hold = self.require_hold(on.hold, on.by)?;
        hold.require_active(work.now, on.fence)?;
        if hold.total() > Amount::ZERO {
            return Err(Rejection::PaymentRequired);
        }
        self.confirm(work, on, booking, reference)
    }
}

/// Builds the lines of a booking from the units of a hold.
pub(super) fn lines_of(hold: &Hold, state: LineState) -> Vec<Line> {
    let lines = hold.units.iter().map(|held| Line::of(held, state));
    lines.collect()
}

/// Builds a booking of a hold, its units not sold yet.
pub(super) fn new_booking(
    hold: &Hold,
    id: BookingId,
    reference: Option<Text>,
    now: Timestamp,
) -> Booking {
    Booking {
        id,
        event: hold.event,
        holder: hold.holder.clone(),
        hold: Some(hold.id),
        state: BookingState::PendingPayment,
        fence: hold.fence,
        lines: lines_of(hold, LineState::Pending),
        reference,
        payment: None,
        created_at: now,
        confirmed_at: None,
    }
}
