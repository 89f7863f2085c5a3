//! Keeps every commit of a process, so that a test can have its history judged at the end.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use soldonce_core::{Applied, Auditor, EventNo, History, HoldId, HoldTerms, Inventory, Violation};

/// The history of every event since the ledger opened empty.
#[derive(Debug, Default)]
pub struct Recorder {
    events: Mutex<BTreeMap<EventNo, Recorded>>,
}

#[derive(Debug, Default)]
struct Recorded {
    history: History,
    holds: BTreeMap<HoldId, HoldTerms>,
}

impl Recorder {
    pub(super) fn record(&self, inventory: &Inventory, applied: &[Applied]) {
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        for done in applied {
            for hold in done.holds.iter().filter_map(|id| inventory.hold(*id)) {
                let recorded = events.entry(hold.event).or_default();
                recorded.holds.insert(hold.id, HoldTerms::from(hold));
            }
            for commit in &done.commits {
                let recorded = events.entry(commit.event).or_default();
                recorded.history.units = inventory
                    .event(commit.event)
                    .map_or(0, |event| event.chart.units());
                recorded.history.commits.push(commit.clone());
            }
        }
    }

    /// Everything that is wrong with what happened so far.
    pub fn violations(&self) -> Vec<Violation> {
        let events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        let check = |recorded: &Recorded| {
            let holds = recorded.holds.values().cloned().collect();
            Auditor::check(&History {
                holds,
                ..recorded.history.clone()
            })
        };
        events.values().flat_map(check).collect()
    }
}
