//! Keeps every commit of a process, so that a test can have its history judged at the end.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use soldonce_core::{
    Applied, Auditor, Event, EventNo, History, HoldId, HoldTerms, Inventory, Policy, Violation,
};

/// The history of every event since the ledger opened empty.
#[derive(Debug, Default)]
pub struct Recorder {
    events: Mutex<BTreeMap<EventNo, Recorded>>,
}

#[derive(Debug, Default)]
struct Recorded {
    history: History,
    holds: BTreeMap<HoldId, HoldTerms>,
    first_policy: Option<Policy>,
    has_changed: bool,
}

impl Recorded {
    fn note_event(&mut self, event: &Event) {
        self.history.units = event.chart.units();
        let first = self.first_policy.get_or_insert(event.policy.clone());
        self.has_changed |= *first != event.policy;
    }

    /// What happened, with the terms if they never changed.
    fn history(&self) -> History {
        History {
            terms: self.first_policy.clone().filter(|_| !self.has_changed),
            holds: self.holds.values().cloned().collect(),
            ..self.history.clone()
        }
    }
}

impl Recorder {
    pub(super) fn record(&self, inventory: &Inventory, applied: &[Applied]) {
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        for done in applied {
            for hold in done.holds.iter().filter_map(|id| inventory.hold(*id)) {
                let recorded = events.entry(hold.event).or_default();
                recorded.holds.insert(hold.id, HoldTerms::from(hold));
            }
            let of_commits = done.commits.iter().map(|commit| commit.event);
            let named = of_commits.chain(done.event);
            for event in named.filter_map(|no| inventory.event(no)) {
                events.entry(event.no).or_default().note_event(event);
            }
            for commit in &done.commits {
                let recorded = events.entry(commit.event).or_default();
                recorded.history.commits.push(commit.clone());
            }
        }
    }

    /// Everything that is wrong with what happened so far.
    pub fn violations(&self) -> Vec<Violation> {
        let events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        let check = |recorded: &Recorded| Auditor::check(&recorded.history());
        events.values().flat_map(check).collect()
    }
}
