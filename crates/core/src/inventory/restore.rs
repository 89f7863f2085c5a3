//! Rebuilding an inventory from what a ledger stored, and forgetting what is over.

use std::sync::Arc;

use super::Inventory;
use crate::{
    Booking, BookingId, BookingState, Event, EventId, EventNo, Hold, HoldId, Holder, Seq,
    Timestamp, Unit, UnitNo,
};

impl Inventory {
    /// Restores an event, with every unit free. Events come in the order of their numbers.
    ///
    /// # Panics
    /// When its number is not the next one.
    pub fn restore_event(&mut self, event: Event, seq: Seq) {
        let place = self.place(event.no);
        assert_eq!(place, self.events.len(), "events are restored in order");
        self.add_event(Arc::new(event), seq);
    }

    /// Restores the place of an event that was dropped: it takes the next number.
    pub fn restore_dropped(&mut self, id: EventId) {
        if let Some(no) = self.next_event() {
            self.by_id.insert(id, no);
            self.events.push(None);
        }
    }

    /// Removes a dropped event from memory, with its holds and bookings. Its id is never reused.
    pub fn drop_event(&mut self, event: EventNo) {
        let place = self.place(event);
        if let Some(slot) = self.events.get_mut(place) {
            *slot = None;
        }
        self.first_ends.retain(|(_, of)| *of != event);
        self.holds.retain(|_, hold| hold.event != event);
        self.bookings.retain(|_, booking| booking.event != event);
    }

    /// Restores the ledger's time, unless it is later already.
    pub fn restore_clock(&mut self, clock: Timestamp) {
        self.clock = self.clock.max(clock);
    }

    /// Restores a unit as it was stored.
    ///
    /// # Errors
    /// The number of the unit when the event or the unit does not exist; then nothing changed.
    pub fn restore_unit(&mut self, event: EventNo, no: UnitNo, unit: Unit) -> Result<(), UnitNo> {
        match self.open_mut(event) {
            Some(book) if no.0 < book.event.chart.units() => {
                book.seating.restore(no, unit);
                Ok(())
            }
            Some(_) | None => Err(no),
        }
    }

    /// Restores a hold, after its event and units, in place of an older form of it. If not
    /// terminal, it enters the budgets and ends by the clock; a pinned one needs its booking in
    /// memory too.
    pub fn restore_hold(&mut self, hold: Hold) {
        self.drop_hold(hold.id);
        if !hold.state.is_terminal() && self.book(hold.event).is_ok() {
            self.track(&hold);
        }
        self.holds.insert(hold.id, hold);
    }

    /// Restores a booking. Its units do not count as bought again: see
    /// [`Inventory::restore_bought`].
    pub fn restore_booking(&mut self, booking: Booking) {
        self.bookings.insert(booking.id, booking);
    }

    /// Adds units that a holder had bought to their count.
    pub fn restore_bought(&mut self, event: EventNo, holder: &Holder, units: u32) {
        if let Some(book) = self.open_mut(event) {
            book.count_bought(holder, units);
        }
    }

    /// Replaces a known event as it was stored meanwhile.
    pub fn replace_event(&mut self, event: Event) {
        self.set_event(Arc::new(event));
    }

    /// Sets the number of an event's last commit.
    pub fn restore_seq(&mut self, event: EventNo, seq: Seq) {
        if let Some(book) = self.open_mut(event) {
            book.seq = seq;
        }
    }

    /// Removes a hold that is not stored, live or not.
    pub fn drop_hold(&mut self, hold: HoldId) {
        if let Some(known) = self.holds.remove(&hold)
            && !known.state.is_terminal()
        {
            self.untrack(&known);
        }
    }

    /// Returns the latest end at or before `now` of a holder's holds not written down as ended.
    pub fn last_end_past(
        &self,
        event: EventNo,
        holder: &Holder,
        now: Timestamp,
    ) -> Option<Timestamp> {
        let account = self.book(event).ok()?.holder(holder)?;
        let past = ..(now.after(), HoldId::from_bits(0));
        account.holds.range(past).next_back().map(|(end, _)| *end)
    }

    pub fn bought(&self, event: EventNo, holder: &Holder) -> u32 {
        let book = self.book(event).ok();
        let account = book.and_then(|book| book.holder(holder));
        account.map_or(0, |account| account.bought)
    }

    /// Tells whether a holder holds or has bought anything.
    pub fn has_account(&self, event: EventNo, holder: &Holder) -> bool {
        let book = self.book(event).ok();
        book.is_some_and(|book| book.holder(holder).is_some())
    }

    /// Sets the count of units bought, in place of what was counted.
    pub fn replace_bought(&mut self, event: EventNo, holder: &Holder, units: u32) {
        if let Some(book) = self.open_mut(event) {
            book.set_bought(holder, units);
        }
    }

    /// Returns the holds of a holder that are not written down as ended, earliest end first.
    pub fn holds_of(&self, event: EventNo, holder: &Holder) -> Vec<HoldId> {
        let book = self.book(event).ok();
        let account = book.and_then(|book| book.holder(holder));
        let holds = account.into_iter().flat_map(|account| &account.holds);
        holds.map(|(_, hold)| *hold).collect()
    }

    /// Removes a hold that is over from memory. One that is not stays.
    pub fn forget_hold(&mut self, hold: HoldId) {
        let is_over = |hold: &Hold| hold.state.is_terminal();
        if self.holds.get(&hold).is_some_and(is_over) {
            self.holds.remove(&hold);
        }
    }

    /// Removes a booking from memory. A command that names it needs it back first. One that waits
    /// for its payment stays: the end of its hold changes it without naming it.
    pub fn forget_booking(&mut self, booking: BookingId) {
        let is_pending = |booking: &Booking| booking.state == BookingState::PendingPayment;
        if !self.bookings.get(&booking).is_some_and(is_pending) {
            self.bookings.remove(&booking);
        }
    }
}
