//! The sweeper's command: writes down what the clock has already made true (T3).

use super::Inventory;
use super::work::Work;
use crate::{Answer, Cause, HoldId, HoldState};

impl Inventory {
    pub(super) fn sweep(&mut self, work: &mut Work<'_>, limit: usize) -> Answer {
        let overdue: Vec<HoldId> = self.expiries.overdue(work.now).take(limit).collect();
        for hold in &overdue {
            self.end_hold(work, *hold, HoldState::Expired, Cause::Expired);
        }
        Answer::Swept(overdue.len())
    }
}
