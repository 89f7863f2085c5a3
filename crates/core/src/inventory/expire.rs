//! The sweeper's command: writes down the holds that are over, by the clock (T3) or with an event that was
//! called off.

use super::Inventory;
use super::work::Work;
use crate::{Answer, EventNo, HoldId, Timestamp};

impl Inventory {
    pub(super) fn sweep(&mut self, work: &mut Work<'_>, limit: usize) -> Answer {
        // Event by event, the longest overdue one first. What is left of an event that was called off waits for
        // them: it is not for sale, and theirs is shown as held until then.
        let events = self.first_ends.iter().take_while(|(at, _)| *at <= work.now);
        let open = events.filter(|(at, _)| *at > Timestamp::MIN);
        let ends = open.flat_map(|(_, event)| {
            let ends = self.known_book(*event).ends.iter();
            ends.take_while(|(at, _)| *at <= work.now)
        });
        let overdue = self.part(ends, limit);
        let swept = self.end_all(work, &overdue);
        let first = self.first_ends.first().copied();
        let off = first.filter(|(at, _)| *at == Timestamp::MIN && swept < limit);
        let more = off.map_or(0, |(_, event)| {
            self.end_called_off(work, event, limit - swept)
        });
        Answer::Swept(swept + more)
    }

    /// Ends holds of an event that was called off, until they had `limit` units; returns how many they had.
    pub(super) fn end_called_off(
        &mut self,
        work: &mut Work<'_>,
        event: EventNo,
        limit: usize,
    ) -> usize {
        // Those that last longest first: the time of no other is over before a slow commit is stored.
        let ends = self.known_book(event).ends.iter().rev();
        let part = self.part(ends, limit);
        self.end_all(work, &part)
    }

    /// Takes holds until they have `limit` units, those of the last one more or less.
    fn part<'a>(
        &self,
        ends: impl Iterator<Item = &'a (Timestamp, HoldId)>,
        limit: usize,
    ) -> Vec<HoldId> {
        let mut units = 0;
        let is_meant = |id: &HoldId| {
            let is_meant = units < limit;
            units += self.units_of(*id);
            is_meant
        };
        ends.map(|(_, id)| *id).take_while(is_meant).collect()
    }

    fn end_all(&mut self, work: &mut Work<'_>, holds: &[HoldId]) -> usize {
        for id in holds {
            if let Some((state, cause)) = self.end_of(*id) {
                self.end_hold(work, *id, state, cause);
            }
        }
        holds.iter().map(|id| self.units_of(*id)).sum()
    }

    fn units_of(&self, hold: HoldId) -> usize {
        self.holds.get(&hold).map_or(0, |hold| hold.units.len())
    }
}
