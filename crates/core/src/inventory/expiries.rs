//! When holds end by the clock: by event, and over all events. No question about it costs more than
//! the holds it is answered with.

use std::collections::BTreeSet;

use crate::{EventNo, HoldId, Timestamp};

/// Holds that are not over as written down, by the end of their time.
#[derive(Debug, Default)]
pub(super) struct Expiries {
    /// The number of the event at the front of `of_event`.
    first_event: u32,
    of_event: Vec<BTreeSet<(Timestamp, HoldId)>>,
    /// The first end of each event that has one.
    first: BTreeSet<(Timestamp, EventNo)>,
}

impl Expiries {
    pub(super) fn starting_at(first: EventNo) -> Self {
        Self {
            first_event: first.0,
            ..Self::default()
        }
    }

    fn place(&self, event: EventNo) -> usize {
        EventNo(event.0.wrapping_sub(self.first_event)).index()
    }

    pub(super) fn count(&self, event: EventNo) -> usize {
        let ends = self.of_event.get(self.place(event));
        ends.map_or(0, BTreeSet::len)
    }

    pub(super) fn add_event(&mut self) {
        self.of_event.push(BTreeSet::new());
    }

    /// Forgets the newest event, which has no holds.
    pub(super) fn remove_last_event(&mut self) {
        self.of_event.pop();
    }

    pub(super) fn insert(&mut self, event: EventNo, end: (Timestamp, HoldId)) {
        self.update(event, |ends| ends.insert(end));
    }

    pub(super) fn remove(&mut self, event: EventNo, end: (Timestamp, HoldId)) {
        self.update(event, |ends| ends.remove(&end));
    }

    fn update(
        &mut self,
        event: EventNo,
        change: impl FnOnce(&mut BTreeSet<(Timestamp, HoldId)>) -> bool,
    ) {
        let place = self.place(event);
        let Some(ends) = self.of_event.get_mut(place) else {
            return;
        };
        let before = ends.first().map(|(at, _)| *at);
        change(ends);
        let after = ends.first().map(|(at, _)| *at);
        if before != after {
            if let Some(at) = before {
                self.first.remove(&(at, event));
            }
            self.first.extend(after.map(|at| (at, event)));
        }
    }

    /// Returns the next end of all.
    pub(super) fn next(&self) -> Option<Timestamp> {
        self.first.first().map(|(at, _)| *at)
    }

    /// Returns all holds of an event that are not over as written down, by the end of their time.
    pub(super) fn of_event(
        &self,
        event: EventNo,
    ) -> impl Iterator<Item = (Timestamp, HoldId)> + '_ {
        self.of_event
            .get(self.place(event))
            .into_iter()
            .flatten()
            .copied()
    }

    /// Returns holds of an event that ended after `last`, and at `now` at the latest.
    pub(super) fn ended_since(
        &self,
        event: EventNo,
        last: Timestamp,
        now: Timestamp,
    ) -> impl Iterator<Item = HoldId> + '_ {
        let newer = (last.after(), HoldId::from_bits(0));
        self.of_event
            .get(self.place(event))
            .into_iter()
            .flat_map(move |ends| ends.range(newer..))
            .take_while(move |(at, _)| *at <= now)
            .map(|(_, hold)| *hold)
    }

    /// Returns holds that ended by `now`: event by event, the longest overdue event first.
    pub(super) fn overdue(&self, now: Timestamp) -> impl Iterator<Item = HoldId> + '_ {
        self.first
            .iter()
            .take_while(move |(at, _)| *at <= now)
            .flat_map(|(_, event)| self.of_event(*event))
            .filter(move |(at, _)| *at <= now)
            .map(|(_, hold)| hold)
    }
}
