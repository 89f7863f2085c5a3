//! FREE > SOLD in one step: the box office, and late money that finds its units free (model.md 3).

use super::Inventory;
use super::books::OpenEvent;
use super::budget::Demand;
use super::claim::require_adjacency;
use super::hold::held_units;
use super::work::Work;
use crate::limits::UNITS_PER_STAFF_COMMAND_MAX;
use crate::{
    Answer, Booking, BookingId, BookingState, EventNo, Fence, Holder, Invalid, Line, LineState,
    Rejection, Selection, Text, UnitNo,
};

/// For whom units are sold without a hold.
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
        self.open_ended_holds(event, work.now);
        let book = self.book(event)?;
        require_staff_count(selection)?;
        book.event.require_on_sale(work.now)?;
        let units = self.claim_named(book, work.now, selection, Some(&buyer.holder))?;
        self.require_sellable(work, book, &units, &buyer.holder)?;
        let line = |held: crate::HeldUnit| Line {
            unit: held.unit,
            price: held.price,
            version: held.version,
            state: LineState::Pending,
        };
        let mut booking = Booking {
            id: buyer.booking,
            event,
            holder: buyer.holder,
            hold: None,
            state: BookingState::Confirmed,
            fence: Fence::default(),
            lines: held_units(book, &units).into_iter().map(line).collect(),
            reference: buyer.reference,
            payment: None,
            created_at: work.now,
            confirmed_at: None,
        };
        self.sell_lines(work, &mut booking);
        self.add_booking(work, booking.clone());
        Ok(Answer::Booked(booking))
    }

    /// The guards of a hold that also a sale without one has to pass, its units being free.
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
            besides: None,
            units: u32::try_from(units.len()).unwrap_or(u32::MAX),
        };
        self.require_bought(work, book, &demand)?;
        require_adjacency(work, book, units, None)
    }
}

/// Passes a number of units that staff may name at once.
pub(super) fn require_staff_count(selection: &Selection) -> Result<(), Rejection> {
    let limit = u32::try_from(UNITS_PER_STAFF_COMMAND_MAX).unwrap_or(u32::MAX);
    match selection.count() {
        0 => Err(Invalid::new("units", "name at least one unit".to_owned()).into()),
        named if named > limit => Err(Rejection::TooManyUnits { limit }),
        _ => Ok(()),
    }
}
