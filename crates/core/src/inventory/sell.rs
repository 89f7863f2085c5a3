//! FREE > SOLD in one step: the box office, and late money that finds its units free (model.md 3).

use super::Inventory;
use super::budget::{Demand, may_buy};
use super::claim::require_adjacency;
use super::hold::held_units;
use super::indexes::OpenEvent;
use super::work::Work;
use crate::limits::UNITS_PER_STAFF_COMMAND_MAX;
use crate::number::count;
use crate::{
    Answer, Booking, BookingId, BookingState, EventNo, Fence, Holder, Invalid, Line, LineState,
    Rejection, Selection, Text, UnitNo,
};

/// The buyer of units that are sold without a hold.
pub(super) struct Buyer {
    pub(super) booking: BookingId,
    pub(super) holder: Holder,
    pub(super) reference: Option<Text>,
}

impl Inventory {
    pub(super) fn sell(
        &mut self,
        work: &mut Work<'_>,
        event: EventNo,
        selection: &Selection,
        buyer: Buyer,
    ) -> Result<Answer, Rejection> {
        self.reopen_units_of_ended_holds(event, work.now);
        let book = self.book(event)?;
        require_staff_count(selection)?;
        book.event.require_on_sale(work.now)?;
        let units = self.claim_named(book, work.now, selection, Some(&buyer.holder))?;
        self.require_sellable(work, book, &units, &buyer.holder)?;
        let lines = held_units(book, &units);
        let line = |held| Line::of(held, LineState::Pending);
        let mut booking = Booking {
            id: buyer.booking,
            event,
            holder: buyer.holder,
            hold: None,
            state: BookingState::Confirmed,
            fence: Fence::default(),
            lines: lines.iter().map(line).collect(),
            reference: buyer.reference,
            payment: None,
            created_at: work.now,
            confirmed_at: None,
        };
        self.sell_lines(work, &mut booking);
        Ok(self.add_booking(work, booking))
    }

    /// Checks a sale of free units by the rules that a hold would have passed.
    ///
    /// # Errors
    /// `NotOnSale`, `BudgetExceeded` for units bought, `AdjacencyRefused`.
    pub(super) fn require_sellable(
        &self,
        work: &mut Work<'_>,
        book: &OpenEvent,
        units: &[UnitNo],
        holder: &Holder,
    ) -> Result<(), Rejection> {
        book.event.require_on_sale(work.now)?;
        let demand = Demand {
            holder,
            except: None,
            units: count(units.len()),
        };
        self.require_budget(work, book, &demand, may_buy)?;
        require_adjacency(work, book, units, None)
    }
}

/// Checks the number of units that staff may name at once.
pub(super) fn require_staff_count(selection: &Selection) -> Result<(), Rejection> {
    let limit = count(UNITS_PER_STAFF_COMMAND_MAX);
    match selection.count() {
        0 => Err(Invalid::new("units", "name at least one unit".to_owned()).into()),
        named if named > limit => Err(Rejection::TooManyUnits { limit }),
        _ => Ok(()),
    }
}
