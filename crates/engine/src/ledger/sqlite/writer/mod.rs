//! The one thread that writes: its queue, its memory, and how it ends. `commit` decides, writes and
//! answers.

mod commit;
mod own_jobs;
mod read_back;

use std::any::Any;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::Receiver;

use rusqlite::Connection;
use soldonce_clock::Clock;
use soldonce_core::{BookingId, BookingState, HoldId, Inventory, Rejection, Timestamp};
use tokio::sync::oneshot;

use super::batch::Tails;
use super::checkpoint::{Checkpointer, Move};
use super::fault::Fault;
use super::folder::{FolderLock, HighWater};
use super::limits::{BATCH_MAX, FORGET_MAX};
use super::published::LiveState;
use super::rebuild::OpenLedger;
use super::tables::idempotency;
use super::{SqliteOptions, connection};
use crate::ledger::batch::{Outcome, Reply};
use crate::ledger::stored_keys::StoredKeys;
use crate::ledger::{AgeClock, Done, Observer, Transaction};
use crate::limits::IDEMPOTENCY_MS;

/// A job for the writer.
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all are commands, which should not be allocated once more"
)]
pub(super) enum Job {
    Transact(Transaction, Reply<Done>),
    Own(OwnJob),
    Close(oneshot::Sender<()>),
}

/// A job that is no command; it sends its answer itself.
pub(super) type OwnJob = Box<dyn FnOnce(&mut Writer) -> Result<(), Fault> + Send>;

pub(super) struct Deps {
    pub(super) clock: Arc<dyn Clock>,
    pub(super) observer: Arc<dyn Observer>,
    pub(super) shared: Arc<LiveState>,
    pub(super) options: SqliteOptions,
}

/// The writer's whole state. It has the waiting callers, so that after a fault none gets an answer
/// before the ledger is marked read-only.
pub(super) struct Writer {
    /// The first field, so that the writer's own connection closes last: that empties the log.
    checkpointer: Checkpointer,
    connection: Connection,
    inventory: Inventory,
    /// The numbers of the idempotency records, by key.
    keys: StoredKeys,
    tails: Tails,
    high_water: HighWater,
    deps: Deps,
    queued: Vec<(Transaction, Reply<Done>)>,
    /// A job that is no command and came after the queued ones.
    deferred: Option<Job>,
    waiters: Vec<(Reply<Done>, Outcome)>,
    loaded: LoadedIds,
    /// The last millisecond in which the oldest idempotency record is valid.
    records_last: Timestamp,
    ages: AgeClock,
    log_pages: Arc<AtomicU32>,
    /// Pages that the last checkpoint left in the log because of a reader.
    log_kept: u32,
}

/// The holds and bookings that were loaded from the file for this batch.
#[derive(Default)]
struct LoadedIds {
    holds: Vec<HoldId>,
    bookings: Vec<BookingId>,
}

/// Runs the writer's thread until the ledger is closed or dropped.
pub(super) fn main(mut writer: Writer, jobs: &Receiver<Job>, lock: FolderLock) {
    let ended = catch_unwind(AssertUnwindSafe(|| writer.run(jobs)));
    let shared = Arc::clone(&writer.deps.shared);
    shared.writable.store(false, Ordering::Release);
    let mut refusal = None;
    let (mut closing, why) = match ended {
        Ok(Ok(closing)) => (closing, None),
        Ok(Err(fault)) => {
            if fault.is_mismatch() {
                writer.deps.observer.distrusted();
                refusal = Some(Rejection::MemoryMismatch);
            }
            (None, Some(fault.to_string()))
        }
        Err(panic) => (
            None,
            Some(format!("the writer panicked: {}", panic_text(&*panic))),
        ),
    };
    if let Some(why) = why {
        writer.deps.observer.failed(&why);
        if let Some(refusal) = refusal {
            writer.refuse(&refusal);
        }
        // From here on those who waited, and those still in the queue, get `OutcomeUnknown`.
        writer.queued.clear();
        writer.waiters.clear();
        closing = match writer.deferred.take() {
            Some(Job::Close(reply)) => Some(reply),
            Some(_) | None => stay_open(jobs),
        };
    }
    shared.closed.store(true, Ordering::Release);
    drop(writer);
    drop(lock);
    if let Some(closing) = closing
        && closing.send(()).is_err()
    {
        tracing::debug!("no caller waits for the ledger to close");
    }
}

/// Keeps the connection open until the ledger is closed or dropped. Without it the next reader
/// would be the only one, recover the whole log, and show a commit whose sync failed: no caller was
/// told of it, and it may be lost after a power cut.
fn stay_open(jobs: &Receiver<Job>) -> Option<oneshot::Sender<()>> {
    loop {
        match jobs.recv().ok()? {
            Job::Close(reply) => return Some(reply),
            Job::Transact(..) | Job::Own(_) => {}
        }
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("no message")
}

impl Writer {
    pub(super) fn new(opened: OpenLedger, deps: Deps) -> Result<Self, Fault> {
        let OpenLedger {
            mut connection,
            checkpointer,
            inventory,
            keys,
            tails,
            high_water,
            ..
        } = opened;
        let log_pages = connection::watch_log(&mut connection)?;
        let live = inventory.holds().map(|hold| hold.id);
        deps.shared.note_holds(&inventory, live);
        let ages = AgeClock::starting_at(deps.shared.now(), &*deps.clock);
        Ok(Self {
            checkpointer,
            connection,
            inventory,
            keys,
            tails,
            high_water,
            deps,
            queued: Vec::with_capacity(BATCH_MAX),
            deferred: None,
            waiters: Vec::with_capacity(BATCH_MAX),
            loaded: LoadedIds::default(),
            records_last: Timestamp::MIN,
            ages,
            log_pages,
            log_kept: 0,
        })
    }

    /// Works until the ledger is closed or dropped; returns the caller that waits for the closing.
    fn run(&mut self, jobs: &Receiver<Job>) -> Result<Option<oneshot::Sender<()>>, Fault> {
        // None when the ledger was dropped.
        while let Some(job) = self.deferred.take().or_else(|| jobs.recv().ok()) {
            match job {
                Job::Transact(transaction, reply) => {
                    self.queued.push((transaction, reply));
                    self.drain(jobs);
                    self.work()?;
                }
                Job::Own(work) => {
                    work(self)?;
                    self.tidy_log()?;
                }
                Job::Close(reply) => {
                    self.keep_clock()?;
                    connection::final_checkpoint(&self.connection)?;
                    return Ok(Some(reply));
                }
            }
        }
        Ok(None)
    }

    /// Queues waiting commands, as many as fit into a batch, up to the first job that is no
    /// command.
    fn drain(&mut self, jobs: &Receiver<Job>) {
        while self.queued.len() < BATCH_MAX {
            match jobs.try_recv() {
                Ok(Job::Transact(transaction, reply)) => self.queued.push((transaction, reply)),
                other => {
                    self.deferred = other.ok();
                    return;
                }
            }
        }
    }

    /// Finds the number of the last idempotency record to delete, if any: those up to it have
    /// ended, or memory has no room for them. At most [`FORGET_MAX`] are deleted at once.
    fn ended_records(&mut self, now: Timestamp) -> Result<Option<u64>, Fault> {
        let now = self.ages.at(now, &*self.deps.clock);
        let stored = &self.keys;
        let most = stored.from().saturating_add(FORGET_MAX - 1);
        let mut ended = stored.surplus().map(|last| last.min(most));
        if now <= self.records_last {
            return Ok(ended);
        }
        let last = |at: Timestamp| Timestamp::from_ms(at.ms().saturating_add(IDEMPOTENCY_MS));
        self.records_last = last(now);
        idempotency::each(&self.connection, |record| {
            if now <= last(record.at) || record.number > most {
                self.records_last = last(record.at);
                return ControlFlow::Break(());
            }
            ended = ended.max(Some(record.number));
            ControlFlow::Continue(())
        })?;
        Ok(ended)
    }

    /// Evicts holds that are over and bookings that wait for no money: the file has them.
    fn evict(&mut self, holds: &[HoldId], bookings: &[BookingId]) {
        let inventory = &mut self.inventory;
        for hold in holds.iter().copied().chain(self.loaded.holds.drain(..)) {
            inventory.forget_hold(hold);
        }
        let loaded = self.loaded.bookings.drain(..);
        for booking in bookings.iter().copied().chain(loaded) {
            let known = inventory.booking(booking);
            if known.is_some_and(|known| known.state != BookingState::PendingPayment) {
                inventory.forget_booking(booking);
            }
        }
    }

    /// Orders a checkpoint of a long log, and after it moves what was added meanwhile.
    fn tidy_log(&mut self) -> Result<(), Fault> {
        match self.checkpointer.state()? {
            Move::Begun => {}
            Move::Idle => {
                let pages = self.log_pages.load(Ordering::Relaxed);
                if pages.saturating_sub(self.log_kept) >= self.deps.options.log_pages {
                    self.checkpointer.begin();
                }
            }
            Move::Done => {
                let whole = connection::checkpoint(&self.connection)?;
                // A reader keeps the rest in the log: again when as many pages have been added.
                let pages = self.log_pages.load(Ordering::Relaxed);
                self.log_kept = if whole { 0 } else { pages };
                if whole {
                    self.log_pages.store(0, Ordering::Relaxed);
                }
                self.checkpointer.end();
            }
        }
        Ok(())
    }
}
