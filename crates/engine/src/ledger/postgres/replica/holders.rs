//! Which rows of holders are remembered, each in its version. Rows of holders who hold nothing and
//! have bought nothing are forgotten, so their number has a bound. The database refuses to add the row
//! of a forgotten holder a second time; then it is read by its key.

use std::collections::HashMap;

use soldonce_core::{EventNo, Holder, Inventory};

use crate::ledger::postgres::limits::HOLDERS_IDLE_MAX;
use crate::ledger::postgres::tables::Id;

/// What counts against one holder, and the holder's key and row.
#[derive(Clone, Debug)]
pub(in super::super) struct Account {
    pub(in super::super) key: Id,
    pub(in super::super) holder: Holder,
    pub(in super::super) bought: u32,
    /// The version of the holder's row before the batch; 0 without a row.
    pub(in super::super) version: i64,
}

/// The versions of the rows of one event's holders.
#[derive(Debug)]
pub(in super::super) struct Holders {
    versions: HashMap<Holder, i64>,
    /// Most rows before those of idle holders are forgotten.
    most: usize,
    /// Keys of rows that exist and are not remembered: they are to be read.
    pub(super) missing: Vec<Id>,
}

impl Default for Holders {
    fn default() -> Self {
        Self {
            versions: HashMap::new(),
            most: HOLDERS_IDLE_MAX,
            missing: Vec::new(),
        }
    }
}

impl Holders {
    /// Returns the version of a holder's row; 0 when none is remembered.
    pub(in super::super) fn version(&self, holder: &Holder) -> i64 {
        self.versions.get(holder).copied().unwrap_or(0)
    }

    pub(super) fn note(&mut self, holder: Holder, version: i64) {
        self.versions.insert(holder, version);
    }

    /// Notes, of these holders, those that are not remembered: the database has their rows.
    pub(in super::super) fn exist(&mut self, accounts: &[Account]) {
        let unknown = accounts.iter().filter(|account| account.version == 0);
        self.missing.extend(unknown.map(|account| account.key));
    }

    /// Forgets the holders who hold and have bought nothing, once there may be many.
    pub(super) fn evict(&mut self, inventory: &Inventory, event: EventNo) {
        if self.versions.len() <= self.most {
            return;
        }
        self.versions
            .retain(|holder, _| inventory.has_account(event, holder));
        self.most = self.versions.len().saturating_add(HOLDERS_IDLE_MAX);
        self.versions.shrink_to(self.most);
    }
}

#[cfg(test)]
mod tests {
    use soldonce_core::{CallerId, HolderName};

    use super::*;

    #[test]
    fn holders_who_have_nothing_take_a_bounded_room() {
        let mut holders = Holders::default();
        let inventory = Inventory::new();
        for n in 1..=20 * HOLDERS_IDLE_MAX {
            let name = HolderName::parse(&format!("holder-{n}")).unwrap();
            let caller = CallerId::from_bits(7);
            holders.note(Holder { caller, name }, 1);
            holders.evict(&inventory, EventNo(0));
            assert!(holders.versions.len() <= HOLDERS_IDLE_MAX);
        }
        assert!(holders.versions.capacity() <= 4 * HOLDERS_IDLE_MAX);
    }
}
