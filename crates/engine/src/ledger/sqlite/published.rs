//! State that the writer shares with the ledger's other threads: whether commands are accepted, the
//! ledger's clock, and the live holds of each holder.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use soldonce_clock::Clock;
use soldonce_core::{HoldId, Holder, Inventory, Rejection, Timestamp};

use crate::ledger::Page;
use crate::ledger::clock::LedgerClock;
use crate::locks::lock;

/// The state that the writer shares with the ledger's other threads.
pub(super) struct LiveState {
    /// Whether commands are accepted.
    pub(super) writable: AtomicBool,
    /// Whether a close was asked for.
    pub(super) closing: AtomicBool,
    pub(super) closed: AtomicBool,
    clock: LedgerClock,
    /// Holds that are not over, by holder, oldest first.
    holds: Mutex<BTreeSet<(Holder, HoldId)>>,
}

impl LiveState {
    /// Creates the state of a writable ledger whose last commit was made at `last`.
    pub(super) fn new(last: Timestamp, wall: Arc<dyn Clock>) -> Self {
        Self {
            writable: AtomicBool::new(true),
            closing: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            clock: LedgerClock::after(last, wall),
            holds: Mutex::default(),
        }
    }

    pub(super) fn is_writable(&self) -> bool {
        self.writable.load(Ordering::Acquire)
    }

    /// Returns the rejection for commands while none are accepted.
    pub(super) fn why_not(&self) -> Rejection {
        if self.closing.load(Ordering::Acquire) {
            Rejection::ShuttingDown
        } else {
            Rejection::ReadOnly
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Reads the ledger's clock, which never goes back (T1).
    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Lists holds of a holder that are not written down as over, newest first.
    pub(super) fn holds_of(&self, holder: &Holder, (before, limit): Page<HoldId>) -> Vec<HoldId> {
        let of_holder = |id| (holder.clone(), HoldId::from_bytes(id));
        let end = before.map_or([u8::MAX; 16], |id| *id.bytes());
        let holds = lock(&self.holds);
        let older = holds.range(of_holder([0; 16])..of_holder(end));
        older.rev().take(limit).map(|(_, id)| *id).collect()
    }

    /// Adds or removes holds that changed, by whether they are over.
    pub(super) fn note_holds(&self, inventory: &Inventory, changed: impl Iterator<Item = HoldId>) {
        let mut holds = lock(&self.holds);
        for hold in changed.filter_map(|id| inventory.hold(id)) {
            let own = (hold.holder.clone(), hold.id);
            if hold.state.is_terminal() {
                holds.remove(&own);
            } else {
                holds.insert(own);
            }
        }
    }
}
