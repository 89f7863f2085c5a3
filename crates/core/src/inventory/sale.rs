//! The only place that makes a unit SOLD. Confirm, paid checkout, exchange, box office and late money go
//! through these two functions; a tidy test finds any other file that names the step. Each unit takes it by
//! `Inventory::step`, which panics unless the unit is held by this hold, or free.

use super::Inventory;
use super::confirm::lines_of;
use super::work::Work;
use crate::unit::{Owner, Step};
use crate::{
    Booking, BookingId, BookingState, Cause, HoldId, HoldState, Line, LineState, UnitNo, UnitState,
};

impl Inventory {
    /// Sells all units of a live hold to a booking, HELD > SOLD; returns the booking's lines.
    pub(super) fn sell_hold(
        &mut self,
        work: &mut Work<'_>,
        id: HoldId,
        booking: BookingId,
        cause: Cause,
    ) -> Vec<Line> {
        let mut hold = self.take_hold(id);
        self.untrack(&hold);
        for held in &mut hold.units {
            let step = Step {
                to: UnitState::Sold(booking),
                fence: hold.fence,
                cause,
                by: Owner::Hold(id),
            };
            held.version = self.step(work, hold.event, held.unit, step);
        }
        let lines = lines_of(&hold, LineState::Sold);
        hold.state = HoldState::Consumed(booking);
        self.holds.insert(id, hold);
        work.changed_hold(id);
        lines
    }

    /// Sells free units to all lines of a booking, FREE > SOLD.
    pub(super) fn sell_lines(&mut self, work: &mut Work<'_>, booking: &mut Booking) {
        let event = booking.event;
        let units: Vec<UnitNo> = booking.lines.iter().map(|line| line.unit).collect();
        self.end_overdue_holds(work, event, &units);
        let fence = self.next_fence(event, &units);
        for line in &mut booking.lines {
            let step = Step {
                to: UnitState::Sold(booking.id),
                fence,
                cause: Cause::SoldDirectly,
                by: Owner::Nobody,
            };
            line.version = self.step(work, event, line.unit, step);
            line.state = LineState::Sold;
        }
        booking.fence = fence;
        booking.state = BookingState::Confirmed;
        booking.confirmed_at = Some(work.now);
        self.count_sold(booking);
    }

    /// The lines of a booking, all just sold, count against what its holder may buy.
    pub(super) fn count_sold(&mut self, booking: &Booking) {
        let units = u32::try_from(booking.lines.len()).unwrap_or(u32::MAX);
        self.remember_bought(booking.event, &booking.holder);
        self.book_mut(booking.event)
            .count_bought(&booking.holder, units);
    }
}
