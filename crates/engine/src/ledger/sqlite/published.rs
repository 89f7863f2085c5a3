//! What the writer and the ledger's other threads have in common: whether commands are taken, what
//! time it is, and who holds what.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use soldonce_clock::Clock;
use soldonce_core::{Hold, HoldId, Holder, Inventory, Rejection, Timestamp};

use crate::ledger::clock::LedgerClock;
use crate::locks::lock;

/// What the writer shares with the ledger's other threads.
pub(super) struct Shared {
    /// Whether commands are taken.
    pub(super) writable: AtomicBool,
    /// Whether its end was asked for.
    pub(super) closing: AtomicBool,
    pub(super) closed: AtomicBool,
    clock: LedgerClock,
    /// Holds that are not over, by holder, oldest first.
    holds: Mutex<BTreeMap<Holder, Vec<HoldId>>>,
}

impl Shared {
    /// Of a ledger whose last commit was made at `last`.
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

    /// Why it takes nothing.
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

    /// T1: never goes back.
    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The newest holds of a holder that are not over and older than `before`.
    pub(super) fn holds_of(
        &self,
        holder: &Holder,
        before: Option<HoldId>,
        limit: usize,
    ) -> Vec<HoldId> {
        let holds = lock(&self.holds);
        let own = holds.get(holder).into_iter().flatten().rev().copied();
        let older = own.filter(|id| before.is_none_or(|before| *id < before));
        older.take(limit).collect()
    }

    /// Takes notice of holds that changed.
    pub(super) fn note_holds(&self, inventory: &Inventory, changed: impl Iterator<Item = HoldId>) {
        let mut holds = lock(&self.holds);
        for hold in changed.filter_map(|id| inventory.hold(id)) {
            if hold.state.is_terminal() {
                forget_hold(&mut holds, hold);
            } else {
                keep_hold(&mut holds, hold);
            }
        }
    }
}

fn keep_hold(holds: &mut BTreeMap<Holder, Vec<HoldId>>, hold: &Hold) {
    let own = holds.entry(hold.holder.clone()).or_default();
    if let Err(at) = own.binary_search(&hold.id) {
        own.insert(at, hold.id);
    }
}

fn forget_hold(holds: &mut BTreeMap<Holder, Vec<HoldId>>, hold: &Hold) {
    let Some(own) = holds.get_mut(&hold.holder) else {
        return;
    };
    own.retain(|id| *id != hold.id);
    if own.is_empty() {
        holds.remove(&hold.holder);
    }
}
