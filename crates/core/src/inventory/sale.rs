//! The only place that makes a unit SOLD. Confirm, paid checkout, exchange, box office and late money go
//! through these two functions; a tidy test finds any other file that names the step. Each unit takes it by
//! `Inventory::step`, which panics unless the unit is held by this hold, or free.

use super::Inventory;
use super::confirm::lines_of;
use super::work::Work;
use crate::number::count;
use crate::unit::{Owner, Step};
use crate::{
    Booking, BookingId, BookingState, Cause, HoldId, HoldState, Line, LineState, UnitState,
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
        self.change_hold(work, id, |this, work, hold| {
            let step = Step {
                to: UnitState::Sold(booking),
                fence: hold.fence,
                cause,
                by: Owner::Hold(id),
            };
            for held in &mut hold.units {
                held.version = this.step(work, hold.event, held.unit, step);
            }
            hold.state = HoldState::Consumed(booking);
            lines_of(hold, LineState::Sold)
        })
    }

    /// Sells free units to all lines of a booking, FREE > SOLD.
    pub(super) fn sell_lines(&mut self, work: &mut Work<'_>, booking: &mut Booking) {
        let (event, units) = (booking.event, booking.units());
        self.end_overdue_holds(work, event, &units);
        let step = Step {
            to: UnitState::Sold(booking.id),
            fence: self.next_fence(event, &units),
            cause: Cause::SoldDirectly,
            by: Owner::Nobody,
        };
        for line in &mut booking.lines {
            line.version = self.step(work, event, line.unit, step);
            line.state = LineState::Sold;
        }
        booking.fence = step.fence;
        booking.state = BookingState::Confirmed;
        booking.confirmed_at = Some(work.now);
        self.count_sold(booking);
    }

    /// Counts the lines of a booking, all just sold, against what its holder may buy.
    pub(super) fn count_sold(&mut self, booking: &Booking) {
        self.remember_bought(booking.event, &booking.holder);
        let units = count(booking.lines.len());
        self.book_mut(booking.event)
            .count_bought(&booking.holder, units);
    }
}
