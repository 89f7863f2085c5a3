//! What an account keeps after its process: its intents and refunds, as they are after each change.
//! Notices and the list of effects are not kept: they are those of one run.

use serde::{Deserialize, Serialize};

use super::super::intent::Intent;
use super::super::limits::OVER_MAX;
use super::super::refund::Refund;
use super::Account;

/// The intents and refunds that changed, each in full as it is now.
#[derive(Debug, Serialize, Deserialize)]
pub(in super::super) struct Changes {
    salt: u64,
    named: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    intents: Vec<Intent>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    refunds: Vec<Refund>,
}

impl Changes {
    /// Tells whether there is nothing to keep.
    pub(in super::super) const fn is_empty(&self) -> bool {
        self.intents.is_empty() && self.refunds.is_empty()
    }
}

impl Account {
    /// Takes what changed since the last call. Removes the oldest ended intents above [`OVER_MAX`].
    pub(in super::super) fn take_changes(&mut self) -> Changes {
        let changed = std::mem::take(&mut self.changed);
        let intents = changed.iter().filter_map(|id| self.intents.get(id));
        let intents: Vec<Intent> = intents.cloned().collect();
        let refunds = changed.iter().filter_map(|id| self.refunds.get(id));
        let refunds = refunds.cloned().collect();
        for intent in intents.iter().filter(|intent| intent.is_over()) {
            // It may have been revived since it ended before.
            self.over.retain(|id| *id != intent.id);
            self.over.push_back(intent.id.clone());
        }
        self.forget_over();
        Changes {
            salt: self.salt,
            named: self.named,
            intents,
            refunds,
        }
    }

    /// Discards the changes of an account without a file. No intent is removed.
    pub(in super::super) fn drop_changes(&mut self) {
        self.changed.clear();
    }

    /// Returns all intents and refunds.
    pub(in super::super) fn everything(&self) -> Changes {
        Changes {
            salt: self.salt,
            named: self.named,
            intents: self.intents.values().cloned().collect(),
            refunds: self.refunds.values().cloned().collect(),
        }
    }

    /// Counts the intents and refunds.
    pub(in super::super) fn kept(&self) -> usize {
        self.intents.len() + self.refunds.len()
    }

    /// Adds what an earlier process kept.
    pub(in super::super) fn restore(&mut self, changes: Changes) {
        // Ids continue where they ended, so that the newest is still the last by id.
        self.salt = changes.salt;
        self.named = self.named.max(changes.named);
        for mut intent in changes.intents {
            if intent.bank_page.is_some() {
                intent.bank_page = Some(self.bank_page(&intent.id));
            }
            self.changed.insert(intent.id.clone());
            self.intents.insert(intent.id.clone(), intent);
        }
        for refund in changes.refunds {
            self.refunds.insert(refund.id.clone(), refund);
        }
    }

    /// Lists the ids of the intents whose bank has not approved or declined yet.
    pub(in super::super) fn undecided(&self) -> Vec<String> {
        let intents = self.intents.values();
        let undecided = intents.filter(|intent| intent.status.is_undecided());
        undecided.map(|intent| intent.id.clone()).collect()
    }

    fn forget_over(&mut self) {
        while self.over.len() > OVER_MAX
            && let Some(id) = self.over.pop_front()
        {
            // A refund that came back may have revived it.
            let Some(intent) = self.intents.get(&id).filter(|intent| intent.is_over()) else {
                continue;
            };
            for refund in &intent.refunds {
                self.refunds.remove(refund);
            }
            self.intents.remove(&id);
        }
    }
}
