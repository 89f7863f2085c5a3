//! The indexes: the units, holders and ends of holds of each event. Holds enter and leave the
//! indexes here alone.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Inventory;
use crate::{
    Authority, Booking, BookingId, Event, EventNo, Hold, HoldId, Holder, Rejection, Seating, Seq,
    Timestamp, UnitState,
};

const NAMED: &str = "holds and bookings name existing events";

/// One event and everything that is indexed by it.
#[derive(Debug)]
pub(super) struct OpenEvent {
    pub(super) event: Arc<Event>,
    pub(super) seating: Seating,
    pub(super) seq: Seq,
    /// The units of holds that ended by this time are open to new owners.
    pub(super) open_at: Timestamp,
    /// Holds that are not written down as ended, by the end of their time.
    pub(super) ends: BTreeSet<(Timestamp, HoldId)>,
    holders: BTreeMap<Holder, HolderAccount>,
}

/// The units and holds that count against a holder's budgets.
#[derive(Debug, Default)]
pub(super) struct HolderAccount {
    /// Holds that are not written down as ended, by the end of their time.
    pub(super) holds: BTreeSet<(Timestamp, HoldId)>,
    /// Units of these holds.
    pub(super) held: u32,
    pub(super) bought: u32,
}

impl OpenEvent {
    pub(super) fn holder(&self, holder: &Holder) -> Option<&HolderAccount> {
        self.holders.get(holder)
    }

    pub(super) fn count_bought(&mut self, holder: &Holder, units: u32) {
        let account = self.holders.entry(holder.clone()).or_default();
        account.bought = account.bought.saturating_add(units);
    }

    pub(super) fn count_given_back(&mut self, holder: &Holder, units: u32) {
        if let Some(account) = self.holders.get_mut(holder) {
            account.bought = account.bought.saturating_sub(units);
            self.drop_empty(holder);
        }
    }

    /// Sets how many units a holder has bought.
    pub(super) fn set_bought(&mut self, holder: &Holder, units: u32) {
        self.holders.entry(holder.clone()).or_default().bought = units;
        self.drop_empty(holder);
    }

    fn drop_empty(&mut self, holder: &Holder) {
        let is_empty = |account: &HolderAccount| account.holds.is_empty() && account.bought == 0;
        if self.holders.get(holder).is_some_and(is_empty) {
            self.holders.remove(holder);
        }
    }

    /// Returns when the first hold is over. In an event that was called off all are.
    fn first_end(&self) -> Option<Timestamp> {
        let (at, _) = self.ends.first()?;
        Some(self.event.cancelled().map_or(*at, |_| Timestamp::MIN))
    }
}

impl Inventory {
    pub(super) fn next_event(&self) -> Option<EventNo> {
        let count = u32::try_from(self.events.len()).ok()?;
        self.first.checked_add(count).map(EventNo)
    }

    pub(super) fn add_event(&mut self, event: Arc<Event>, seq: Seq) {
        self.by_id.insert(event.id.clone(), event.no);
        self.events.push(Some(OpenEvent {
            seating: Seating::new(Arc::clone(&event.chart)),
            event,
            seq,
            open_at: Timestamp::MIN,
            ends: BTreeSet::new(),
            holders: BTreeMap::new(),
        }));
    }

    /// Puts a known event in the place of its older form.
    pub(super) fn set_event(&mut self, event: Arc<Event>) {
        let no = event.no;
        if let Some(book) = self.open_mut(no) {
            let first = book.first_end();
            book.event = event;
            self.move_first_end(no, first);
        }
    }

    pub(super) fn open(&self, event: EventNo) -> Option<&OpenEvent> {
        self.events.get(self.place(event))?.as_ref()
    }

    pub(super) fn open_mut(&mut self, event: EventNo) -> Option<&mut OpenEvent> {
        let place = self.place(event);
        self.events.get_mut(place)?.as_mut()
    }

    pub(super) fn book(&self, event: EventNo) -> Result<&OpenEvent, Rejection> {
        match self.events.get(self.place(event)) {
            Some(Some(book)) => Ok(book),
            Some(None) => Err(Rejection::EventDropped),
            None => Err(Rejection::EventNotFound),
        }
    }

    /// Returns an event that a hold, a booking or the command names: it was looked up before.
    pub(super) fn known_book(&self, event: EventNo) -> &OpenEvent {
        self.open(event).expect(NAMED)
    }

    /// Returns the same, to be changed.
    pub(super) fn book_mut(&mut self, event: EventNo) -> &mut OpenEvent {
        self.open_mut(event).expect(NAMED)
    }

    /// Opens the units of holds that ended by `now` to new owners (T3). Each hold is read once, so
    /// commands that come before the sweeper share the cost.
    pub(super) fn reopen_units_of_ended_holds(&mut self, event: EventNo, now: Timestamp) {
        let place = self.place(event);
        let Some(Some(book)) = self.events.get_mut(place) else {
            return;
        };
        if now <= book.open_at {
            return;
        }
        let newer = (book.open_at.after(), HoldId::from_bits(0));
        let ended = book.ends.range(newer..).take_while(|(at, _)| *at <= now);
        for hold in ended.filter_map(|(_, id)| self.holds.get(id)) {
            reopen(&mut book.seating, hold);
        }
        book.open_at = now;
    }

    /// Adds a hold that is not terminal to the indexes; its units are written down already.
    pub(super) fn track(&mut self, hold: &Hold) {
        let end = (hold.expires_at, hold.id);
        let book = self.book_mut(hold.event);
        let first = book.first_end();
        book.ends.insert(end);
        let account = book.holders.entry(hold.holder.clone()).or_default();
        account.holds.insert(end);
        account.held = account.held.saturating_add(hold.count());
        if hold.expires_at <= book.open_at {
            reopen(&mut book.seating, hold);
        }
        self.move_first_end(hold.event, first);
    }

    /// Removes a hold from the indexes, given as it was when it was added.
    pub(super) fn untrack(&mut self, hold: &Hold) {
        let end = (hold.expires_at, hold.id);
        let book = self.book_mut(hold.event);
        let first = book.first_end();
        book.ends.remove(&end);
        if let Some(account) = book.holders.get_mut(&hold.holder)
            && account.holds.remove(&end)
        {
            account.held = account.held.saturating_sub(hold.count());
            book.drop_empty(&hold.holder);
        }
        self.move_first_end(hold.event, first);
    }

    /// Updates the first end of an event's holds, which was `before`.
    fn move_first_end(&mut self, event: EventNo, before: Option<Timestamp>) {
        let first = self.known_book(event).first_end();
        if first != before {
            if let Some(at) = before {
                self.first_ends.remove(&(at, event));
            }
            self.first_ends.extend(first.map(|at| (at, event)));
        }
    }

    /// Returns the hold, if `by` may act on it. A foreign one answers like a missing one, and a live one of an
    /// event that was called off as it will be written down.
    pub(super) fn require_hold(&self, hold: HoldId, by: Authority) -> Result<&Hold, Rejection> {
        let found = self.holds.get(&hold);
        let found = found.filter(|hold| by.may_act_for(&hold.holder));
        let found = found.ok_or(Rejection::HoldNotFound)?;
        let event = self.event(found.event);
        match event.and_then(|event| event.cancelled()) {
            Some(reason) if found.is_live(self.clock) => {
                Err(Rejection::HoldRevoked(reason.clone()))
            }
            Some(_) | None => Ok(found),
        }
    }

    /// Returns the booking, if `by` may act on it. A foreign one answers like a missing one.
    pub(super) fn require_booking(
        &self,
        booking: BookingId,
        by: Authority,
    ) -> Result<&Booking, Rejection> {
        self.bookings
            .get(&booking)
            .filter(|booking| by.may_act_for(&booking.holder))
            .ok_or(Rejection::BookingNotFound)
    }
}

/// Opens the units of a hold that is over to new owners.
fn reopen(seating: &mut Seating, hold: &Hold) {
    for held in &hold.units {
        if let UnitState::Held { hold: owner, .. } = seating.unit(held.unit).state
            && owner == hold.id
        {
            seating.reopen(held.unit);
        }
    }
}
