//! The execution of one command: collects what must become durable with it, and has the few steps
//! that all commands are made of.

use std::collections::BTreeMap;

use super::Inventory;
use crate::unit::{Owner, Step};
use crate::{
    Answer, Applied, Basis, Booking, BookingId, BookingState, Cause, Commit, Effect, EventNo,
    Fence, Hold, HoldId, HoldState, Origin, Seq, Text, Timestamp, Transition, UnitNo, UnitState,
    Version,
};

pub(super) const KNOWN: &str = "the command looked it up before, or it is pending";

/// The changes that a command made so far.
pub(super) struct Work<'a> {
    pub(super) now: Timestamp,
    origin: &'a Origin,
    pub(super) reason: Option<Text>,
    transitions: Vec<(EventNo, Transition)>,
    holds: Vec<HoldId>,
    bookings: Vec<BookingId>,
    pub(super) effects: Vec<Effect>,
    pub(super) done_effects: Vec<Effect>,
    pub(super) event: Option<EventNo>,
    pub(super) basis: Basis,
}

/// The state and the end that a live hold gets.
pub(super) struct HoldUpdate {
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
            done_effects: Vec::new(),
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
        if self.bookings.last() != Some(&booking) {
            self.bookings.push(booking);
        }
    }

    /// Numbers the commits: one for each event that was touched.
    pub(super) fn finish(mut self, inventory: &mut Inventory, answer: Answer) -> Applied {
        self.bookings.sort_unstable();
        self.bookings.dedup();
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
        for commit in &mut commits {
            // The reason is that of other ends in the same command.
            let mut steps = commit.transitions.iter();
            if steps.all(|step| step.cause == Cause::Expired) {
                commit.reason = None;
            }
        }
        Applied {
            answer,
            commits,
            holds: self.holds,
            bookings: self.bookings,
            effects: self.effects,
            done_effects: self.done_effects,
            event: self.event,
            basis: self.basis,
        }
    }
}

impl Inventory {
    fn next_seq(&mut self, event: EventNo) -> Seq {
        self.remember_seq(event);
        let book = self.book_mut(event);
        book.seq = book.seq.next();
        book.seq
    }

    /// Makes one transition of one unit and returns its new version.
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

    /// Returns the fence of a new owner of `units` (T6).
    pub(super) fn next_fence(&self, event: EventNo, units: &[UnitNo]) -> Fence {
        self.seating(event)
            .map(|seating| seating.newest_fence(units.iter().copied()))
            .unwrap_or_default()
            .next()
    }

    pub(super) fn unit_fence(&self, event: EventNo, unit: UnitNo) -> Fence {
        let seating = self.seating(event);
        seating.map_or(Fence::default(), |seating| seating.unit(unit).fence)
    }

    /// Returns a booking that was looked up before, or a pending one, which is never forgotten.
    pub(super) fn known_booking(&self, booking: BookingId) -> &Booking {
        self.bookings.get(&booking).expect(KNOWN)
    }

    /// Returns a known booking to be changed, and notes it as changed.
    pub(super) fn booking_mut(&mut self, work: &mut Work<'_>, booking: BookingId) -> &mut Booking {
        self.remember_booking(booking);
        work.changed_booking(booking);
        self.bookings.get_mut(&booking).expect(KNOWN)
    }

    /// Changes a hold that is not terminal. The indexes lose it before the change, and get it back after, unless it is
    /// terminal then.
    pub(super) fn change_hold<T>(
        &mut self,
        work: &mut Work<'_>,
        id: HoldId,
        change: impl FnOnce(&mut Self, &mut Work<'_>, &mut Hold) -> T,
    ) -> T {
        self.remember_hold(id);
        let mut hold = self.holds.remove(&id).expect(KNOWN);
        self.untrack(&hold);
        let done = change(self, work, &mut hold);
        if !hold.state.is_terminal() {
            self.track(&hold);
        }
        self.holds.insert(id, hold);
        work.changed_hold(id);
        done
    }

    /// Ends a hold: all its units become free, and an open payment is cancelled.
    pub(super) fn end_hold(
        &mut self,
        work: &mut Work<'_>,
        id: HoldId,
        state: HoldState,
        cause: Cause,
    ) {
        if let Some(reason) = state.reason() {
            work.reason = Some(reason.clone());
        }
        self.change_hold(work, id, |this, work, hold| {
            for held in &mut hold.units {
                let step = Step {
                    to: UnitState::Free,
                    fence: this.unit_fence(hold.event, held.unit),
                    cause,
                    by: Owner::Hold(id),
                };
                held.version = this.step(work, hold.event, held.unit, step);
            }
            if let HoldState::Pinned(booking) = hold.state {
                this.booking_mut(work, booking).state = ended_by(cause);
                work.effects.push(Effect::CancelIntent(booking));
            }
            hold.state = state;
        });
    }

    /// Returns how a hold has ended whose stored state does not say so yet: by the clock, or with its event. None if it
    /// lives.
    pub(super) fn end_of(&self, id: HoldId) -> Option<(HoldState, Cause)> {
        let hold = self.holds.get(&id)?;
        if !hold.is_live(self.clock) {
            return Some((HoldState::Expired, Cause::Expired));
        }
        let reason = self.known_book(hold.event).event.cancelled()?;
        Some((HoldState::Revoked(reason.clone()), Cause::Revoked))
    }

    pub(super) fn answer_hold(&self, id: HoldId) -> Answer {
        Answer::Hold(self.holds.get(&id).expect(KNOWN).clone())
    }

    pub(super) fn answer_booking(&self, id: BookingId) -> Answer {
        Answer::Booking(self.known_booking(id).clone())
    }

    /// Expires the holds that still have some of `units`, each with **all** of its units (T4). They
    /// are over: the claim that the caller made lets no unit of a live hold through.
    pub(super) fn expire_holds_of(
        &mut self,
        work: &mut Work<'_>,
        event: EventNo,
        units: &[UnitNo],
    ) {
        for unit in units {
            let state = self.seating(event).map(|seating| seating.unit(*unit).state);
            let Some(UnitState::Held { hold, until }) = state else {
                continue;
            };
            assert!(until <= work.now, "{unit:?} is of {hold:?}, which is live");
            self.end_hold(work, hold, HoldState::Expired, Cause::Expired);
        }
    }

    /// Writes the state, fence and end of a live hold to all its units.
    pub(super) fn restate_units(&mut self, work: &mut Work<'_>, hold: &mut Hold, cause: Cause) {
        let step = Step {
            to: UnitState::Held {
                hold: hold.id,
                until: hold.expires_at,
            },
            fence: hold.fence,
            cause,
            by: Owner::Hold(hold.id),
        };
        for held in &mut hold.units {
            held.version = self.step(work, hold.event, held.unit, step);
        }
    }

    /// Gives a live hold another end and another live state.
    pub(super) fn update_hold(
        &mut self,
        work: &mut Work<'_>,
        id: HoldId,
        update: HoldUpdate,
    ) -> Hold {
        self.change_hold(work, id, |this, work, hold| {
            hold.expires_at = update.until;
            hold.state = update.state;
            this.restate_units(work, hold, update.cause);
            hold.clone()
        })
    }

    pub(super) fn add_booking(&mut self, work: &mut Work<'_>, booking: Booking) -> Answer {
        let id = booking.id;
        work.changed_booking(id);
        self.remember_booking(id);
        let other = self.bookings.insert(id, booking.clone());
        assert!(
            other.is_none(),
            "{id}: the id of a new booking is another's already"
        );
        Answer::Booked(booking)
    }
}

/// Returns the next state of a booking that waits for its payment and whose hold ends for `cause`.
pub(super) fn ended_by(cause: Cause) -> BookingState {
    if cause == Cause::Expired {
        BookingState::Expired
    } else {
        BookingState::Failed
    }
}
