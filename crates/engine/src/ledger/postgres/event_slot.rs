//! One event of the ledger: this server's cache of it, and the queue of its commands. Lookups of
//! events by number and by id.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, RwLock};

use soldonce_core::{EventId, EventNo, Inventory, Rejection, Seq, Timestamp};
use tokio::sync::{Mutex, mpsc};

use super::replica::Replica;
use crate::ledger::batch::{Reply, answer};
use crate::ledger::{Done, Transaction};
use crate::locks::{read, write};

/// A command and who waits for its answer.
pub(super) struct Job {
    pub(super) transaction: Transaction,
    pub(super) reply: Reply<Done>,
}

impl Job {
    pub(super) fn answer(self, done: Result<Done, Rejection>) {
        answer(self.reply, done);
    }
}

pub(super) struct EventSlot {
    pub(super) no: EventNo,
    /// Locked from the decision until its outcome is known.
    pub(super) replica: Mutex<Replica>,
    /// Once it takes no more commands, why.
    queue: RwLock<Result<mpsc::Sender<Job>, Rejection>>,
    /// When the next hold is over, as far as this server knows, ms since the epoch.
    next_end: AtomicI64,
    /// The number of the last commit that this server has published.
    shown: AtomicU64,
}

impl EventSlot {
    pub(super) fn new(no: EventNo, queue: mpsc::Sender<Job>) -> Self {
        Self {
            no,
            replica: Mutex::new(Replica::new(no)),
            queue: RwLock::new(Ok(queue)),
            next_end: AtomicI64::new(i64::MAX),
            shown: AtomicU64::new(0),
        }
    }

    /// Returns the queue of its commands.
    ///
    /// # Errors
    /// Why it takes no more commands.
    pub(super) fn queue(&self) -> Result<mpsc::Sender<Job>, Rejection> {
        read(&self.queue).clone()
    }

    /// Takes no more commands, which are refused with `why`; those that wait are carried out.
    pub(super) fn close(&self, why: Rejection) {
        *write(&self.queue) = Err(why);
    }

    /// Tells whether a hold is over whose end is not stored.
    pub(super) fn is_overdue(&self, now: Timestamp) -> bool {
        self.next_end.load(Ordering::Acquire) <= now.ms()
    }

    /// Notes from the inventory when the next hold is over.
    pub(super) fn note_end(&self, inventory: &Inventory) {
        let next = inventory.next_expiry().map_or(i64::MAX, Timestamp::ms);
        self.next_end.store(next, Ordering::Release);
    }

    pub(super) fn shown(&self) -> Seq {
        Seq(self.shown.load(Ordering::Acquire))
    }

    pub(super) fn show(&self, seq: Seq) {
        self.shown.fetch_max(seq.0, Ordering::AcqRel);
    }
}

/// Every event that this server knows of.
#[derive(Default)]
pub(super) struct Catalogue(RwLock<EventSlots>);

#[derive(Default)]
struct EventSlots {
    /// Of one that was dropped or cannot be read, why it is refused.
    by_no: Vec<Result<Arc<EventSlot>, Rejection>>,
    by_id: BTreeMap<EventId, EventNo>,
}

impl Catalogue {
    pub(super) fn slot(&self, no: EventNo) -> Option<Arc<EventSlot>> {
        self.require(no).ok()
    }

    /// Returns the slot of an event.
    ///
    /// # Errors
    /// `EventNotFound` if it is not known here, `EventDropped`, `ReadOnly` if it cannot be read.
    pub(super) fn require(&self, no: EventNo) -> Result<Arc<EventSlot>, Rejection> {
        let slot = read(&self.0).by_no.get(no.index()).cloned();
        slot.unwrap_or(Err(Rejection::EventNotFound))
    }

    /// Returns an event that could not be read.
    pub(super) fn unreadable(&self) -> Option<EventNo> {
        let slots = read(&self.0);
        let mut all = (0..).map(EventNo).zip(&slots.by_no);
        let found = all.find(|(_, slot)| matches!(slot, Err(Rejection::ReadOnly)));
        found.map(|(no, _)| no)
    }

    pub(super) fn find(&self, id: &EventId) -> Option<EventNo> {
        read(&self.0).by_id.get(id).copied()
    }

    /// Returns the number of the next event, as far as this server knows.
    pub(super) fn next(&self) -> EventNo {
        EventNo(u32::try_from(read(&self.0).by_no.len()).unwrap_or(u32::MAX))
    }

    pub(super) fn all(&self) -> Vec<Arc<EventSlot>> {
        let slots = read(&self.0);
        slots.by_no.iter().flatten().map(Arc::clone).collect()
    }

    /// Removes a dropped event, or notes its number if it is next. False if it is not known yet.
    pub(super) fn drop_event(&self, id: &EventId, no: EventNo) -> bool {
        let mut slots = write(&self.0);
        if no.index() == slots.by_no.len() {
            slots.by_id.insert(id.clone(), no);
            slots.by_no.push(Err(Rejection::EventDropped));
        }
        let Some(slot) = slots.by_no.get_mut(no.index()) else {
            return false;
        };
        if let Ok(gone) = std::mem::replace(slot, Err(Rejection::EventDropped)) {
            gone.close(Rejection::EventDropped);
        }
        true
    }

    /// Adds an event if it is the next one; one that cannot be read with what it is refused with, and without
    /// an id if that is illegal. Returns whether it was the next one.
    pub(super) fn add(
        &self,
        no: EventNo,
        id: Option<EventId>,
        slot: Result<Arc<EventSlot>, Rejection>,
    ) -> bool {
        let mut slots = write(&self.0);
        let is_next = no.index() == slots.by_no.len();
        if is_next {
            slots.by_id.extend(id.map(|id| (id, no)));
            slots.by_no.push(slot);
        }
        is_next
    }
}

#[cfg(test)]
mod tests {
    use soldonce_core::{Command, Origin};

    use super::*;
    use crate::ledger::postgres::route::submit;

    /// Checks a command that has found its event just before that is dropped.
    #[tokio::test]
    async fn a_command_that_meets_the_drop_of_its_event_is_told_so() {
        let (queue, _jobs) = mpsc::channel(1);
        let (no, id) = (EventNo(0), EventId::parse("hamlet-1").unwrap());
        let catalogue = Catalogue::default();
        let slot = Arc::new(EventSlot::new(no, queue));
        assert!(catalogue.add(no, Some(id.clone()), Ok(Arc::clone(&slot))));
        assert!(catalogue.drop_event(&id, no));
        let transaction = Transaction {
            origin: Origin::system("test"),
            command: Command::Sweep { limit: 1 },
            key: None,
            chart: None,
        };
        let told = submit(&slot, transaction).await;
        assert_eq!(told.err(), Some(Rejection::EventDropped));
    }
}
