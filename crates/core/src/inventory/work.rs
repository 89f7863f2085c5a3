//! One command being carried out: collects what must become durable with it, and holds the few
//! steps that all commands are made of.

use std::collections::BTreeMap;

use super::Inventory;
use crate::unit::{Owner, Step};
use crate::{
    Answer, Applied, Basis, Booking, BookingId, BookingState, Cause, Commit, Effect, EventNo,
    Fence, Hold, HoldId, HoldState, Origin, Text, Timestamp, Transition, UnitNo, UnitState,
    Version,
};

/// What a command did so far.
pub(super) struct Work<'a> {
    pub(super) now: Timestamp,
    origin: &'a Origin,
    pub(super) reason: Option<Text>,
    transitions: Vec<(EventNo, Transition)>,
    holds: Vec<HoldId>,
    bookings: Vec<BookingId>,
    pub(super) effects: Vec<Effect>,
    pub(super) settled: Vec<Effect>,
    pub(super) event: Option<EventNo>,
    pub(super) basis: Basis,
}

/// Where a live hold goes next.
pub(super) struct Turn {
    pub(super) state: HoldState,
    pub(super) until: Timestamp,
    pub(super) cause: Cause,
}

impl<'a> Work<'a> {
    pub(super) fn new(now: Timestamp, origin: &'a Origin) -> Self {
        Self {
            now,
            origin,
            reason: None,
            transitions: Vec::new(),
            holds: Vec::new(),
            bookings: Vec::new(),
            effects: Vec::new(),
            settled: Vec::new(),
            event: None,
            basis: Basis::default(),
        }
    }

    pub(super) fn changed_hold(&mut self, hold: HoldId) {
        if self.holds.last() != Some(&hold) {
            self.holds.push(hold);
        }
    }

    pub(super) fn changed_booking(&mut self, booking: BookingId) {
        if !self.bookings.contains(&booking) {
            self.bookings.push(booking);
        }
    }

    /// Numbers the commits and closes the books.
    pub(super) fn finish(self, inventory: &mut Inventory, answer: Answer) -> Applied {
        let mut commits: Vec<Commit> = Vec::new();
        let mut of_event: BTreeMap<EventNo, usize> = BTreeMap::new();
        for (event, transition) in self.transitions {
            let at = *of_event.entry(event).or_insert_with(|| {
                commits.push(Commit {
                    event,
                    seq: inventory.next_seq(event),
                    at: self.now,
                    origin: self.origin.clone(),
                    reason: self.reason.clone(),
                    transitions: Vec::new(),
                });
                commits.len() - 1
            });
            if let Some(commit) = commits.get_mut(at) {
                commit.transitions.push(transition);
            }
        }
        Applied {
            answer,
            commits,
            holds: self.holds,
            bookings: self.bookings,
            effects: self.effects,
            settled: self.settled,
            event: self.event,
            basis: self.basis,
        }
    }
}

impl Inventory {
    fn next_seq(&mut self, event: EventNo) -> crate::Seq {
        self.remember_seq(event);
        let book = self.book_mut(event);
        book.seq = book.seq.next();
        book.seq
    }

    /// Makes one transition of one unit and gives its new version.
    pub(super) fn step(
        &mut self,
        work: &mut Work<'_>,
        event: EventNo,
        unit: UnitNo,
        step: Step,
    ) -> Version {
        self.remember_unit(event, unit);
        let transition = self.book_mut(event).seating.step(unit, step);
        work.transitions.push((event, transition));
        transition.version
    }

    /// The fence of a new owner of `units` (T6).
    pub(super) fn next_fence(&self, event: EventNo, units: &[UnitNo]) -> Fence {
        self.seating(event)
            .map(|seating| seating.newest_fence(units.iter().copied()))
            .unwrap_or_default()
            .next()
    }

    /// Ends a hold: all its units become free, whatever payment was open is given up.
    pub(super) fn end_hold(
        &mut self,
        work: &mut Work<'_>,
        id: HoldId,
        state: HoldState,
        cause: Cause,
    ) {
        let mut hold = self.take_hold(id);
        self.untrack(&hold);
        for held in &mut hold.units {
            let fence = self.unit_fence(hold.event, held.unit);
            let step = Step {
                to: UnitState::Free,
                fence,
                cause,
                by: Owner::Hold(id),
            };
            held.version = self.step(work, hold.event, held.unit, step);
        }
        if let HoldState::Pinned(booking) = hold.state {
            let expired = cause == Cause::Expired;
            let ended = if expired {
                BookingState::Expired
            } else {
                BookingState::Failed
            };
            self.booking_mut(booking).state = ended;
            work.changed_booking(booking);
            work.effects.push(Effect::CancelIntent(booking));
        }
        hold.state = state;
        self.holds.insert(id, hold);
        work.changed_hold(id);
    }

    /// The hold as it now is.
    pub(super) fn answer_hold(&self, id: HoldId) -> Answer {
        let hold = self.holds.get(&id);
        Answer::Hold(hold.expect("the command looked it up before").clone())
    }

    /// The booking as it now is.
    pub(super) fn answer_booking(&self, id: BookingId) -> Answer {
        let booking = self.bookings.get(&id);
        Answer::Booking(booking.expect("the command looked it up before").clone())
    }

    pub(super) fn unit_fence(&self, event: EventNo, unit: UnitNo) -> Fence {
        self.seating(event)
            .map(|seating| seating.unit(unit).fence)
            .unwrap_or_default()
    }

    /// T4: whoever takes a unit of a hold that is over first ends that **whole** hold.
    pub(super) fn end_overdue_holds(
        &mut self,
        work: &mut Work<'_>,
        event: EventNo,
        units: &[UnitNo],
    ) {
        for unit in units {
            let state = self.seating(event).map(|seating| seating.unit(*unit).state);
            let Some(UnitState::Held { hold, .. }) = state else {
                continue;
            };
            self.end_hold(work, hold, HoldState::Expired, Cause::Expired);
        }
    }

    /// Writes the state, fence and end of a live hold to all its units.
    pub(super) fn restate_units(&mut self, work: &mut Work<'_>, hold: &mut Hold, cause: Cause) {
        let to = UnitState::Held {
            hold: hold.id,
            until: hold.expires_at,
        };
        for held in &mut hold.units {
            let step = Step {
                to,
                fence: hold.fence,
                cause,
                by: Owner::Hold(hold.id),
            };
            held.version = self.step(work, hold.event, held.unit, step);
        }
    }

    /// Lets a live hold end at another time and be in another live state.
    pub(super) fn turn(&mut self, work: &mut Work<'_>, id: HoldId, turn: Turn) -> Hold {
        let mut hold = self.take_hold(id);
        self.untrack(&hold);
        hold.expires_at = turn.until;
        hold.state = turn.state;
        self.restate_units(work, &mut hold, turn.cause);
        self.track(&hold);
        self.holds.insert(id, hold.clone());
        work.changed_hold(id);
        hold
    }

    /// Takes a new booking into the books.
    pub(super) fn add_booking(&mut self, work: &mut Work<'_>, booking: Booking) {
        let id = booking.id;
        work.changed_booking(id);
        self.remember_booking(id);
        let other = self.bookings.insert(id, booking);
        assert!(
            other.is_none(),
            "{id}: the id of a new booking is another's already"
        );
    }
}
