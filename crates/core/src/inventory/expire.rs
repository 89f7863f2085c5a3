//! The sweeper's command: writes down the holds that the clock has already ended (T3).

use super::Inventory;
use super::work::Work;
use crate::{Answer, Cause, HoldId, HoldState};

impl Inventory {
    pub(super) fn sweep(&mut self, work: &mut Work<'_>, limit: usize) -> Answer {
        // Event by event, the longest overdue one first.
        let events = self.first_ends.iter();
        let events = events.take_while(|(at, _)| *at <= work.now);
        let ends = events.flat_map(|(_, event)| {
            let ends = self.known_book(*event).ends.iter();
            ends.take_while(|(at, _)| *at <= work.now)
        });
        let overdue: Vec<HoldId> = ends.map(|(_, hold)| *hold).take(limit).collect();
        for hold in &overdue {
            self.end_hold(work, *hold, HoldState::Expired, Cause::Expired);
        }
        Answer::Swept(overdue.len())
    }
}
