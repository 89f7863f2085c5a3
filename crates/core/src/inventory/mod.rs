//! Every event, hold and booking of a ledger, and the decision on each command. Reads no clock, does
//! no I/O. Check first, then change: a refused command leaves nothing behind.

mod block;
mod booking;
mod change;
mod checkout;
mod claim;
mod confirm;
mod event;
mod expire;
mod extend;
mod hold;
mod work;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub use claim::alternatives_near;
use work::Work;

use crate::{
    Answer, Applied, Authority, Booking, BookingId, Command, Event, EventId, EventNo, Hold, HoldId,
    Holder, Origin, Planted, Rejection, Seating, Seq, Timestamp, Unit, UnitNo,
};

/// The reference model of every ledger: commands in, what they did out.
///
/// Holds and bookings that are over may be forgotten ([`Inventory::forget_hold`]) and put back
/// before a command names them; everything else is always here.
#[derive(Debug, Default)]
pub struct Inventory {
    events: Vec<EventBook>,
    by_id: BTreeMap<EventId, EventNo>,
    holds: BTreeMap<HoldId, Hold>,
    bookings: BTreeMap<BookingId, Booking>,
    /// The ledger's time never goes back (T1).
    clock: Timestamp,
    #[cfg(feature = "planted")]
    planted: Option<Planted>,
}

/// One event and everything that is indexed by it.
#[derive(Debug)]
struct EventBook {
    event: Arc<Event>,
    seating: Seating,
    seq: Seq,
    /// Holds that are not over as written down, by the end of their time.
    expiry: BTreeSet<(Timestamp, HoldId)>,
    holders: BTreeMap<Holder, HolderBook>,
}

/// What counts against a holder's budgets.
#[derive(Debug, Default)]
struct HolderBook {
    holds: Vec<HoldId>,
    bought: u32,
}

impl Inventory {
    /// An inventory without events.
    pub fn new() -> Self {
        Self::default()
    }

    /// Decides a command. `now` is the ledger's clock, read once for the commit; a clock that went
    /// back counts as standing still.
    ///
    /// # Errors
    /// The [`Rejection`]; then nothing changed.
    pub fn apply(
        &mut self,
        now: Timestamp,
        origin: &Origin,
        command: Command,
    ) -> Result<Applied, Rejection> {
        if !self.has(Planted::ClockGoesBack) {
            self.clock = self.clock.max(now);
        } else {
            self.clock = now;
        }
        let mut work = Work::new(self.clock, origin);
        let answer = self.decide(&mut work, command)?;
        Ok(work.finish(self, answer))
    }

    fn decide(&mut self, work: &mut Work<'_>, command: Command) -> Result<Answer, Rejection> {
        match command {
            Command::CreateEvent(new) => self.create_event(work, &new),
            Command::UpdatePolicy { event, policy } => self.update_policy(work, event, *policy),
            Command::CancelEvent { event, reason } => self.cancel_event(work, event, &reason),
            Command::Hold(new) => self.hold_units(work, new),
            Command::Change(change) => self.change(work, &change),
            Command::Extend { on, ttl, ttl_max } => self.extend(work, on, ttl, ttl_max),
            Command::Checkout {
                on,
                booking,
                reference,
            } => self.checkout(work, on, booking, reference),
            Command::Abandon { on } => self.abandon(work, on),
            Command::Payment(report) => self.payment(work, report),
            Command::Release { on } => self.release(work, on),
            Command::Revoke { hold, reason } => self.revoke(work, hold, &reason),
            Command::Sweep { limit } => Ok(self.sweep(work, limit)),
            Command::Confirm {
                on,
                booking,
                reference,
            } => self.confirm(work, on, booking, reference),
            Command::Sell {
                event,
                selection,
                holder,
                booking,
                reference,
            } => self.sell(
                work,
                event,
                &selection,
                booking::Buyer {
                    booking,
                    holder,
                    reference,
                },
            ),
            Command::Cancel { booking, by, lines } => self.cancel(work, booking, by, &lines),
            Command::Exchange { booking, give, on } => self.exchange(work, booking, &give, on),
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

    /// The event of this number.
    pub fn event(&self, event: EventNo) -> Option<&Arc<Event>> {
        self.events.get(event.index()).map(|book| &book.event)
    }

    /// All events, in the order of their making.
    pub fn events(&self) -> impl Iterator<Item = &Arc<Event>> {
        self.events.iter().map(|book| &book.event)
    }

    /// The number of the event of this id.
    pub fn find_event(&self, id: &EventId) -> Option<EventNo> {
        self.by_id.get(id).copied()
    }

    /// The units of an event.
    pub fn seating(&self, event: EventNo) -> Option<&Seating> {
        self.events.get(event.index()).map(|book| &book.seating)
    }

    /// The number of the last commit of an event.
    pub fn seq(&self, event: EventNo) -> Seq {
        self.events
            .get(event.index())
            .map(|book| book.seq)
            .unwrap_or_default()
    }

    /// A hold, unless it was forgotten.
    pub fn hold(&self, hold: HoldId) -> Option<&Hold> {
        self.holds.get(&hold)
    }

    /// A booking, unless it was forgotten.
    pub fn booking(&self, booking: BookingId) -> Option<&Booking> {
        self.bookings.get(&booking)
    }

    /// Holds that are here, forgotten ones not.
    pub fn holds(&self) -> impl Iterator<Item = &Hold> {
        self.holds.values()
    }

    /// Bookings that are here, forgotten ones not.
    pub fn bookings(&self) -> impl Iterator<Item = &Booking> {
        self.bookings.values()
    }

    /// When the next hold ends by the clock.
    pub fn next_expiry(&self) -> Option<Timestamp> {
        self.events
            .iter()
            .filter_map(|book| book.expiry.first())
            .map(|(at, _)| *at)
            .min()
    }

    /// The latest time a command was decided at.
    pub fn clock(&self) -> Timestamp {
        self.clock
    }

    /// Switches a planted bug on.
    #[cfg(feature = "planted")]
    pub fn plant(&mut self, bug: Planted) {
        self.planted = Some(bug);
    }

    #[cfg(feature = "planted")]
    fn has(&self, bug: Planted) -> bool {
        self.planted == Some(bug)
    }

    #[cfg(not(feature = "planted"))]
    #[expect(
        clippy::unused_self,
        reason = "the same call with and without planted bugs"
    )]
    const fn has(&self, _bug: Planted) -> bool {
        false
    }
}

/// Rebuilding from what a ledger stored.
impl Inventory {
    /// Puts an event back, with every unit free. Events come in the order of their numbers.
    ///
    /// # Panics
    /// When its number is not the next one.
    pub fn restore_event(&mut self, event: Event, seq: Seq) {
        assert_eq!(
            event.no.index(),
            self.events.len(),
            "events are restored in order"
        );
        self.add_event(Arc::new(event), seq);
    }

    /// Puts the ledger's time back.
    pub fn restore_clock(&mut self, clock: Timestamp) {
        self.clock = self.clock.max(clock);
    }

    /// Puts a unit back as it was stored.
    ///
    /// # Errors
    /// Nothing is changed and the unit is given back when the event or the unit does not exist.
    pub fn restore_unit(&mut self, event: EventNo, no: UnitNo, unit: Unit) -> Result<(), UnitNo> {
        match self.events.get_mut(event.index()) {
            Some(book) if no.0 < book.event.chart.units() => {
                book.seating.restore(no, unit);
                Ok(())
            }
            Some(_) | None => Err(no),
        }
    }

    /// Puts a hold back.
    pub fn restore_hold(&mut self, hold: Hold) {
        if !hold.state.is_terminal() {
            if let Some(book) = self.events.get_mut(hold.event.index()) {
                book.track(&hold);
            }
        }
        self.holds.insert(hold.id, hold);
    }

    /// Puts a booking back. Its units do not count as bought again: see [`Inventory::restore_bought`].
    pub fn restore_booking(&mut self, booking: Booking) {
        self.bookings.insert(booking.id, booking);
    }

    /// Counts units that a holder had bought.
    pub fn restore_bought(&mut self, event: EventNo, holder: &Holder, units: u32) {
        if let Some(book) = self.events.get_mut(event.index()) {
            book.count_bought(holder, units);
        }
    }

    /// Forgets a hold that is over. One that is not stays.
    pub fn forget_hold(&mut self, hold: HoldId) {
        if self
            .holds
            .get(&hold)
            .is_some_and(|hold| hold.state.is_terminal())
        {
            self.holds.remove(&hold);
        }
    }

    /// Forgets a booking. A command that names it needs it back first.
    pub fn forget_booking(&mut self, booking: BookingId) {
        self.bookings.remove(&booking);
    }
}

impl Inventory {
    fn add_event(&mut self, event: Arc<Event>, seq: Seq) {
        self.by_id.insert(event.id.clone(), event.no);
        let seating = Seating::new(Arc::clone(&event.chart));
        let (expiry, holders) = (BTreeSet::new(), BTreeMap::new());
        self.events.push(EventBook {
            event,
            seating,
            seq,
            expiry,
            holders,
        });
    }

    fn book(&self, event: EventNo) -> Result<&EventBook, Rejection> {
        self.events
            .get(event.index())
            .ok_or(Rejection::EventNotFound)
    }

    fn book_mut(&mut self, event: EventNo) -> &mut EventBook {
        self.events
            .get_mut(event.index())
            .expect("holds and bookings name existing events")
    }

    /// The hold, if `by` may act on it. A foreign one answers like a missing one.
    fn require_hold(&self, hold: HoldId, by: Authority) -> Result<&Hold, Rejection> {
        let found = self.holds.get(&hold).ok_or(Rejection::HoldNotFound)?;
        if may_act(by, &found.holder) {
            Ok(found)
        } else {
            Err(Rejection::HoldNotFound)
        }
    }

    /// The booking, if `by` may act on it. A foreign one answers like a missing one.
    fn require_booking(&self, booking: BookingId, by: Authority) -> Result<&Booking, Rejection> {
        let found = self
            .bookings
            .get(&booking)
            .ok_or(Rejection::BookingNotFound)?;
        if may_act(by, &found.holder) {
            Ok(found)
        } else {
            Err(Rejection::BookingNotFound)
        }
    }

    fn hold_mut(&mut self, hold: HoldId) -> &mut Hold {
        self.holds
            .get_mut(&hold)
            .expect("the command looked it up before")
    }

    fn booking_mut(&mut self, booking: BookingId) -> &mut Booking {
        self.bookings
            .get_mut(&booking)
            .expect("the command looked it up before")
    }
}

fn may_act(by: Authority, owner: &Holder) -> bool {
    match by {
        Authority::Staff | Authority::Secret => true,
        Authority::Caller(caller) => caller == owner.caller,
    }
}

impl EventBook {
    /// Takes a live hold into the indexes.
    fn track(&mut self, hold: &Hold) {
        self.expiry.insert((hold.expires_at, hold.id));
        self.holders
            .entry(hold.holder.clone())
            .or_default()
            .holds
            .push(hold.id);
    }

    /// Takes a hold out of the indexes.
    fn untrack(&mut self, hold: &Hold) {
        self.expiry.remove(&(hold.expires_at, hold.id));
        if let Some(holder) = self.holders.get_mut(&hold.holder) {
            holder.holds.retain(|id| *id != hold.id);
            self.drop_empty(&hold.holder);
        }
    }

    fn count_bought(&mut self, holder: &Holder, units: u32) {
        let book = self.holders.entry(holder.clone()).or_default();
        book.bought = book.bought.saturating_add(units);
    }

    fn count_given_back(&mut self, holder: &Holder, units: u32) {
        if let Some(book) = self.holders.get_mut(holder) {
            book.bought = book.bought.saturating_sub(units);
            self.drop_empty(holder);
        }
    }

    fn drop_empty(&mut self, holder: &Holder) {
        if self
            .holders
            .get(holder)
            .is_some_and(|book| book.holds.is_empty() && book.bought == 0)
        {
            self.holders.remove(holder);
        }
    }
}
