//! The only place that makes a unit SOLD. `sell_hold` is called for confirm (`confirm.rs`), paid checkout
//! (`payment.rs`) and exchange (`exchange.rs`), `sell_lines` for the box office (`sell.rs`) and late money
//! (`payment.rs`); a tidy test fails if another file of `core` names this state as a target. Each unit goes through
//! `Inventory::step`, which panics unless the unit is held by this hold, or free. Units that are SOLD already are
//! written elsewhere, too: a correction of the clock keeps their booking, and `Seating::restore` puts back what is
//! stored, or what was before a trial.

use super::Inventory;
use super::confirm::lines_of;
use super::work::Work;
use crate::number::count;
use crate::unit::{Owner, Step};
use crate::{
    Booking, BookingId, BookingState, Cause, EventNo, HoldId, HoldState, Holder, Line, LineState,
    UnitState,
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
        self.expire_holds_of(work, event, &units);
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
        self.count_sale(work, booking);
    }

    /// Confirms a booking whose lines were all just sold, and counts them against what its holder may buy.
    pub(super) fn count_sale(&mut self, work: &Work<'_>, booking: &mut Booking) {
        booking.state = BookingState::Confirmed;
        booking.confirmed_at = Some(work.now);
        self.count_bought(booking.event, &booking.holder, booking.lines.len());
    }

    /// Counts units that were just sold against what their holder may buy.
    pub(super) fn count_bought(&mut self, event: EventNo, holder: &Holder, units: usize) {
        self.remember_bought(event, holder);
        self.book_mut(event).count_bought(holder, count(units));
    }
}
