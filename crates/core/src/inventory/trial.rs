//! Trials: commands are decided, and rolled back when the store did not take them. For ledgers
//! whose store has the last word: after a rollback the memory is what was stored before.

use std::sync::Arc;

use super::Inventory;
use crate::{
    Booking, BookingId, Event, EventNo, Hold, HoldId, Holder, Seq, Timestamp, Unit, UnitNo,
};

/// The state before the commands of a trial, oldest first. Something that changed twice is listed
/// twice; from back to front, the oldest wins.
#[derive(Debug, Default)]
pub(super) struct Trial {
    clock: Timestamp,
    count: usize,
    /// The open place of an area from which on places are taken.
    places_from: u32,
    units: Vec<(EventNo, UnitNo, Unit)>,
    holds: Vec<(HoldId, Option<Hold>)>,
    bookings: Vec<(BookingId, Option<Booking>)>,
    bought: Vec<(EventNo, Holder, u32)>,
    events: Vec<Arc<Event>>,
    seqs: Vec<(EventNo, Seq)>,
}

impl Inventory {
    /// Begins a trial: commands can be rolled back until [`Inventory::keep`] or
    /// [`Inventory::roll_back`]. A trial within a trial is the same trial. A command for any places
    /// of an area gets those from the open place `place` on, counted from 0 and around: a server
    /// that decides at the same moment, from another one, takes others.
    pub fn begin_trial(&mut self, place: u32) {
        let (clock, count) = (self.clock, self.events.len());
        self.trial.get_or_insert_with(|| Trial {
            clock,
            count,
            places_from: place,
            ..Trial::default()
        });
    }

    /// Returns the open place of an area from which on places are taken.
    pub(super) fn places_from(&self) -> u32 {
        self.trial.as_ref().map_or(0, |trial| trial.places_from)
    }

    /// Ends the trial and keeps its commands: they are stored.
    pub fn keep(&mut self) {
        self.trial = None;
    }

    /// Rolls back the commands of the trial. Units that became open to new owners stay so: the
    /// clock opened them.
    pub fn roll_back(&mut self) {
        let Some(trial) = self.trial.take() else {
            return;
        };
        for (event, no, unit) in trial.units.into_iter().rev() {
            self.book_mut(event).seating.restore(no, unit);
        }
        for (id, before) in trial.holds.into_iter().rev() {
            match before {
                Some(hold) => self.restore_hold(hold),
                None => self.drop_hold(id),
            }
        }
        for (id, before) in trial.bookings.into_iter().rev() {
            self.bookings.remove(&id);
            self.bookings.extend(before.map(|booking| (id, booking)));
        }
        for (event, holder, units) in trial.bought.into_iter().rev() {
            self.replace_bought(event, &holder, units);
        }
        for event in trial.events.into_iter().rev() {
            self.set_event(event);
        }
        for (event, seq) in trial.seqs.into_iter().rev() {
            self.restore_seq(event, seq);
        }
        while self.events.len() > trial.count {
            if let Some(Some(book)) = self.events.pop() {
                self.by_id.remove(&book.event.id);
            }
        }
        self.clock = trial.clock;
    }

    pub(super) fn remember_unit(&mut self, event: EventNo, no: UnitNo) {
        let unit = *self.known_book(event).seating.unit(no);
        if let Some(trial) = &mut self.trial {
            trial.units.push((event, no, unit));
        }
    }

    pub(super) fn remember_hold(&mut self, id: HoldId) {
        if let Some(trial) = &mut self.trial {
            trial.holds.push((id, self.holds.get(&id).cloned()));
        }
    }

    pub(super) fn remember_booking(&mut self, id: BookingId) {
        if let Some(trial) = &mut self.trial {
            trial.bookings.push((id, self.bookings.get(&id).cloned()));
        }
    }

    pub(super) fn remember_bought(&mut self, event: EventNo, holder: &Holder) {
        let units = self.bought(event, holder);
        if let Some(trial) = &mut self.trial {
            trial.bought.push((event, holder.clone(), units));
        }
    }

    pub(super) fn remember_event(&mut self, no: EventNo) {
        let event = self.event(no).map(Arc::clone);
        if let Some(trial) = &mut self.trial {
            trial.events.extend(event);
        }
    }

    pub(super) fn remember_seq(&mut self, event: EventNo) {
        let seq = self.seq(event);
        if let Some(trial) = &mut self.trial {
            trial.seqs.push((event, seq));
        }
    }
}
