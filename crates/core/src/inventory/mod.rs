//! Every event, hold and booking of a ledger, and the decision on each command. Reads no clock, does
//! no I/O. Check first, then change: a refused command leaves nothing behind.

mod indexes;
mod restore;
mod trial;
mod work;

mod budget;
mod claim;

mod block;
mod cancel;
mod change;
mod checkout;
mod clock;
mod confirm;
mod event;
mod exchange;
mod expire;
mod extend;
mod hold;
mod payment;
mod refund;
mod release;
mod sale;
mod sell;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use checkout::NewBooking;
use indexes::OpenEvent;
use sell::Buyer;
use trial::Trial;
use work::Work;

use crate::{
    Answer, Applied, Booking, BookingId, Command, Event, EventId, EventNo, Hold, HoldId, Origin,
    Rejection, Seating, Seq, Timestamp,
};

/// The reference model of every ledger: executes commands and returns what they changed.
///
/// Ended holds and bookings may be removed from memory ([`Inventory::forget_hold`]) and restored
/// before a command names them, a booking with its hold; everything else is always in memory.
#[derive(Debug, Default)]
pub struct Inventory {
    /// The number of the first event: a ledger may keep each event in an inventory of its own.
    first: u32,
    /// `None` for a dropped event, whose number and id stay taken.
    events: Vec<Option<OpenEvent>>,
    by_id: BTreeMap<EventId, EventNo>,
    holds: BTreeMap<HoldId, Hold>,
    bookings: BTreeMap<BookingId, Booking>,
    /// The first end of a hold of each event that has one; one that was called off comes first.
    first_ends: BTreeSet<(Timestamp, EventNo)>,
    /// The ledger's time. It never goes back (T1), but by an operator's correction.
    clock: Timestamp,
    /// The state before the commands of a trial, while there is one.
    trial: Option<Trial>,
}

impl Inventory {
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates an inventory whose first event has this number.
    pub fn starting_at(first: EventNo) -> Self {
        Self {
            first: first.0,
            ..Self::default()
        }
    }

    /// Returns the index of an event in `events`.
    fn place(&self, event: EventNo) -> usize {
        EventNo(event.0.wrapping_sub(self.first)).index()
    }

    /// Decides a command. `now` is the ledger's clock, read once for the commit; if it went back,
    /// the latest time so far is used.
    ///
    /// # Errors
    /// The [`Rejection`]; then nothing changed.
    ///
    /// # Panics
    /// When a new id is another's already, a selection is of another event's chart, or what was restored contradicts
    /// itself. The inventory may then be half changed: it must not be used again.
    pub fn apply(
        &mut self,
        now: Timestamp,
        origin: &Origin,
        command: Command,
    ) -> Result<Applied, Rejection> {
        self.clock = self.clock.max(now);
        let mut work = Work::new(self.clock, origin);
        let answer = self.decide(&mut work, command)?;
        Ok(work.finish(self, answer))
    }

    fn decide(&mut self, work: &mut Work<'_>, command: Command) -> Result<Answer, Rejection> {
        match command {
            Command::CreateEvent(new) => self.create_event(work, &new),
            Command::UpdateEvent { event, change } => self.update_event(work, event, &change),
            Command::CancelEvent { event, reason } => self.cancel_event(work, event, &reason),
            Command::Hold(new) => self.hold_units(work, new),
            Command::Change(change) => self.change(work, &change),
            Command::Extend { on, ttl, ttl_max } => self.extend(work, on, ttl, ttl_max),
            Command::Checkout {
                on,
                booking,
                reference,
                exchange,
            } => self.checkout(
                work,
                on,
                NewBooking {
                    booking,
                    reference,
                    exchange,
                },
            ),
            Command::Abandon { on, booking } => self.abandon(work, on, booking),
            Command::Payment(report) => self.payment(work, &report),
            Command::Refund { booking, amount } => self.send_money_back(work, booking, amount),
            Command::SettleRefund { booking, amount } => self.settle_refund(work, booking, amount),
            Command::Release { on } => self.release(work, on),
            Command::Revoke { hold, reason } => self.revoke(work, hold, &reason),
            Command::Sweep { limit } => Ok(self.sweep(work, limit)),
            Command::Confirm {
                on,
                booking,
                reference,
            } => self.confirm(work, on, booking, reference),
            Command::ConfirmFree {
                on,
                booking,
                reference,
            } => self.confirm_free(work, on, booking, reference),
            Command::Sell {
                event,
                selection,
                holder,
                booking,
                reference,
            } => {
                let buyer = Buyer {
                    booking,
                    holder,
                    reference,
                };
                self.sell(work, event, &selection, buyer)
            }
            Command::Cancel { booking, by, lines } => self.cancel(work, booking, by, &lines),
            Command::Exchange {
                given,
                on,
                difference,
            } => self.exchange(work, &given, on, difference),
            Command::Block {
                event,
                selection,
                reason,
            } => self.block(work, event, &selection, &reason),
            Command::Unblock {
                event,
                selection,
                reason,
            } => self.unblock(work, event, &selection, &reason),
        }
    }

    /// Returns an event that exists.
    ///
    /// # Errors
    /// `EventNotFound`, `EventDropped`.
    pub fn require_event(&self, event: EventNo) -> Result<&Arc<Event>, Rejection> {
        self.book(event).map(|book| &book.event)
    }

    /// Returns an event; `None` if it was dropped or never was.
    pub fn event(&self, event: EventNo) -> Option<&Arc<Event>> {
        self.open(event).map(|book| &book.event)
    }

    /// Returns all events that were not dropped, in the order of their making.
    pub fn events(&self) -> impl Iterator<Item = &Arc<Event>> {
        self.events.iter().flatten().map(|book| &book.event)
    }

    /// Returns the ids and numbers of the events that were dropped, by id.
    pub fn dropped(&self) -> impl Iterator<Item = (&EventId, EventNo)> {
        let is_gone = |(_, no): &(&EventId, &EventNo)| self.event(**no).is_none();
        self.by_id.iter().filter(is_gone).map(|(id, no)| (id, *no))
    }

    /// Finds the number of an event by its id, also of one that was dropped.
    pub fn find_event(&self, id: &EventId) -> Option<EventNo> {
        self.by_id.get(id).copied()
    }

    pub fn seating(&self, event: EventNo) -> Option<&Seating> {
        self.open(event).map(|book| &book.seating)
    }

    /// Returns the number of the last commit of an event.
    pub fn seq(&self, event: EventNo) -> Seq {
        self.open(event).map(|book| book.seq).unwrap_or_default()
    }

    /// Returns a hold, unless it was forgotten.
    pub fn hold(&self, hold: HoldId) -> Option<&Hold> {
        self.holds.get(&hold)
    }

    /// Returns a booking, unless it was forgotten.
    pub fn booking(&self, booking: BookingId) -> Option<&Booking> {
        self.bookings.get(&booking)
    }

    /// Follows exchanges from a booking to the one whose lines were, or are to be, given back for
    /// it, and so on: they share money. Ends at the first that is not in memory.
    pub fn exchanges(&self, booking: BookingId) -> impl Iterator<Item = BookingId> {
        std::iter::successors(Some(booking), |id| Some(self.lines_to_give(*id)?.booking))
    }

    /// Returns the holds in memory, forgotten ones not.
    pub fn holds(&self) -> impl Iterator<Item = &Hold> {
        self.holds.values()
    }

    /// Returns the bookings in memory, forgotten ones not.
    pub fn bookings(&self) -> impl Iterator<Item = &Booking> {
        self.bookings.values()
    }

    /// Returns how many holds of an event are not written down as ended. Constant time.
    pub fn live_holds(&self, event: EventNo) -> usize {
        self.open(event).map_or(0, |book| book.ends.len())
    }

    /// Returns when the next hold is over, `MIN` in an event that was called off. Constant time.
    pub fn next_expiry(&self) -> Option<Timestamp> {
        self.first_ends.first().map(|(at, _)| *at)
    }

    /// Returns the latest time a command was decided at.
    pub fn clock(&self) -> Timestamp {
        self.clock
    }
}
