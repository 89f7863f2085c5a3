//! The SQLite ledger: one thread owns the inventory in memory and the one connection that writes.
//! It drains a bounded queue, decides each command in memory, writes all that changed in one
//! transaction, and answers after COMMIT returned. After a failed commit it never writes again.
//!
//! Reading order: `writer` (the thread), `batch` (the rows of one commit), `tables/` (the rows),
//! `checkpoint` (moves the log into the database), `rebuild` (start), `readers` (everything that
//! only reads).

pub(crate) mod connection;
pub(crate) mod fault;
pub(crate) mod folder;
mod limits;
pub(crate) mod tables;

mod backup;
mod batch;
mod checkpoint;
mod correct;
mod guards;
mod published;
mod read_ahead;
mod readers;
mod rebuild;
pub mod verify;
mod webhooks;
mod writer;

#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{SyncSender, TrySendError};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use rusqlite::Connection;
use soldonce_clock::{Clock, Entropy};
use soldonce_core::{
    Booking, BookingId, Commit, EventId, EventNo, History, Hold, HoldId, Holder, Origin, Rejection,
    Span, Timestamp, UnitNo,
};
use tokio::sync::oneshot;

use self::fault::Fault;
use self::folder::Folder;
use self::published::LiveState;
use self::readers::Readers;
use self::writer::{Job, Writer};
use super::{
    Done, Ledger, LedgerFuture, MadeAt, MasterKey, Migrated, Observer, OpenEffect, Page, Read,
    Transaction, Webhooks, Write,
};
use crate::keys::{ApiKey, KeyId};
use crate::ledger::batch::answer;
use crate::locks::lock;

pub use backup::{CopyReport, copy};
pub use correct::correct_clock;
pub use fault::OpenError;

/// The options with which a ledger is opened.
#[derive(Clone, Debug)]
pub struct SqliteOptions {
    /// The data folder; created if it is missing.
    pub folder: PathBuf,
    /// Start even if acknowledged commits are or may be missing. What is lost stays lost.
    pub accept_loss: bool,
    /// Pages in the write-ahead log at which a checkpoint moves them into the database file.
    pub log_pages: u32,
}

impl SqliteOptions {
    /// Creates the options of a ledger in `folder` that accepts no loss.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            accept_loss: false,
            log_pages: limits::WAL_PAGES_MAX,
        }
    }

    /// Tells whether the folder has a ledger.
    ///
    /// # Errors
    /// [`OpenError`] when the folder may not be read.
    pub fn is_made(&self) -> Result<bool, OpenError> {
        folder::Folder::new(&self.folder).has_database()
    }
}

/// Returns the version of the SQLite library that is built in.
pub fn library_version() -> &'static str {
    rusqlite::version()
}

/// Migrates the tables of a folder; returns what it did. Opening the ledger does so, too.
///
/// # Errors
/// [`OpenError`]: `Locked` while a server has it, `Schema` when it is newer than this program, `Behind` when its
/// database is lost.
pub fn migrate(options: &SqliteOptions) -> Result<Migrated, OpenError> {
    let folder = Folder::new(&options.folder);
    let lock = folder.take()?;
    if !options.accept_loss {
        rebuild::require_database(&folder)?;
    }
    let (connection, migrated) = connection::writer(&folder)?;
    drop((connection, lock));
    Ok(migrated)
}

/// Returns what [`migrate`] would do, without doing it.
///
/// # Errors
/// [`OpenError`]: `Schema` when the ledger is newer than this program, `Behind` when its database is lost, `Failed`
/// when it cannot be read.
pub fn migration(options: &SqliteOptions) -> Result<Migrated, OpenError> {
    let folder = Folder::new(&options.folder);
    if !options.accept_loss {
        rebuild::require_database(&folder)?;
    }
    connection::migration(&folder)
}

/// The ledger of one data folder.
///
/// Dropping it waits until the writer has finished what it has begun; [`Ledger::close`] finishes
/// everything that waits.
pub struct SqliteLedger {
    jobs: Option<SyncSender<Job>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    shared: Arc<LiveState>,
    readers: Arc<Readers>,
    masters: Vec<MasterKey>,
}

impl SqliteLedger {
    /// Opens the ledger in a folder, or creates one, and locks the folder for this process.
    ///
    /// # Errors
    /// [`OpenError`], which says what to do.
    pub fn open(
        options: &SqliteOptions,
        clock: Arc<dyn Clock>,
        entropy: &dyn Entropy,
        observer: Arc<dyn Observer>,
    ) -> Result<Self, OpenError> {
        let folder = Folder::new(&options.folder);
        let lock = folder.take()?;
        let opened = rebuild::open(&folder, options, entropy)?;
        folder.sync()?;
        let masters = opened.masters.clone();
        let shared = Arc::new(LiveState::new(opened.tails.head.clock, Arc::clone(&clock)));
        let chains = (0..).map(EventNo).zip(&opened.tails.chains);
        for (event, chain) in chains.filter(|(_, chain)| chain.steps > 0) {
            observer.chained(event, &chain.hash);
        }
        observer.opened(&opened.inventory);
        let (jobs, queue) = std::sync::mpsc::sync_channel(limits::QUEUE_MAX);
        let deps = writer::Deps {
            clock,
            observer,
            shared: Arc::clone(&shared),
            options: options.clone(),
        };
        let writer = Writer::new(opened, deps)?;
        let thread = std::thread::Builder::new()
            .name("ledger-writer".to_owned())
            .spawn(move || writer::main(writer, &queue, lock))
            .map_err(|error| OpenError::Failed(format!("no thread for the writer: {error}")))?;
        Ok(Self {
            jobs: Some(jobs),
            thread: Mutex::new(Some(thread)),
            readers: Arc::new(Readers::new(folder, Arc::clone(&shared))),
            shared,
            masters,
        })
    }

    /// Sends a job to the writer, which answers when it is durable.
    fn ask<T: Send + 'static>(
        &self,
        job: impl FnOnce(oneshot::Sender<Result<T, Rejection>>) -> Job,
    ) -> Write<'_, T> {
        let (reply, answer) = oneshot::channel();
        let taken = match &self.jobs {
            Some(jobs) if self.shared.is_writable() => jobs.try_send(job(reply)),
            Some(_) | None => Err(TrySendError::Disconnected(job(reply))),
        };
        let (shared, why_not) = (&self.shared, self.shared.why_not());
        Box::pin(async move {
            match taken {
                // The writer stopped before it answered. Its thread may be about to say so.
                Ok(()) => answer.await.unwrap_or_else(|_| {
                    shared.writable.store(false, Ordering::Release);
                    Err(Rejection::OutcomeUnknown)
                }),
                Err(TrySendError::Full(_)) => Err(Rejection::Overloaded),
                Err(TrySendError::Disconnected(_)) => Err(why_not),
            }
        })
    }

    /// Runs `work` on the writer between two batches. A fault in it ends the writing, and the
    /// caller gets `OutcomeUnknown`.
    fn own<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Writer) -> Result<Result<T, Rejection>, Fault> + Send + 'static,
    ) -> Write<'_, T> {
        self.ask(|reply| {
            Job::Own(Box::new(move |writer| {
                answer(reply, work(writer)?);
                Ok(())
            }))
        })
    }

    /// Runs `write` on the writer in a commit of its own.
    fn own_commit<T: Send + 'static>(
        &self,
        write: impl FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
    ) -> Write<'_, T> {
        self.own(|writer| writer.own_commit(write).map(Ok))
    }
}

impl Ledger for SqliteLedger {
    fn transact(&self, transaction: Transaction) -> Write<'_, Done> {
        self.ask(|reply| Job::Transact(transaction, reply))
    }

    fn hold(&self, hold: HoldId) -> Read<'_, Option<Hold>> {
        self.readers
            .read(move |connection| tables::holds::find(connection, hold))
    }

    fn booking(&self, booking: BookingId) -> Read<'_, Option<Booking>> {
        self.readers
            .read(move |connection| tables::bookings::find(connection, booking))
    }

    fn holds_of(&self, holder: Holder, page: Page<HoldId>) -> Read<'_, Vec<Hold>> {
        let newest = self.shared.holds_of(&holder, page);
        self.readers.read(move |connection| {
            let ids = newest.into_iter();
            let found = ids.map(|id| tables::holds::find(connection, id).transpose());
            found.flatten().collect()
        })
    }

    fn bookings_of(&self, holder: Holder, page: Page<BookingId>) -> Read<'_, Vec<Booking>> {
        self.readers
            .read(move |connection| tables::bookings::of_holder(connection, &holder, page))
    }

    fn holds_in(&self, event: EventNo, page: Page<HoldId>) -> Read<'_, Vec<Hold>> {
        self.readers
            .read(move |connection| tables::holds::page(connection, event, page))
    }

    fn bookings_in(&self, event: EventNo, page: Page<BookingId>) -> Read<'_, Vec<Booking>> {
        self.readers
            .read(move |connection| tables::bookings::page(connection, event, page))
    }

    fn take_effects(&self, _keep: Span, limit: usize) -> Read<'_, Vec<OpenEffect>> {
        // There is no other server.
        let none = Timestamp::MAX..Timestamp::MAX;
        self.readers
            .read(move |connection| tables::outbox::open(connection, &none, limit))
    }

    fn overdue_effects(&self, before: Timestamp) -> Read<'_, Vec<OpenEffect>> {
        let recent = before..self.shared.now();
        self.readers
            .read(move |connection| tables::outbox::open(connection, &recent, usize::MAX))
    }

    fn unsettled(&self, before: Timestamp, page: Page<MadeAt>) -> Read<'_, Vec<Booking>> {
        let span = before..self.shared.now();
        self.readers
            .read(move |connection| tables::bookings::unsettled(connection, span, page))
    }

    fn unit_history(&self, event: EventNo, unit: UnitNo, limit: usize) -> Read<'_, Vec<Commit>> {
        self.readers
            .read(move |connection| tables::audit::of_unit(connection, event, unit, limit))
    }

    fn history(&self, event: EventId) -> Read<'_, History> {
        self.readers
            .read(move |connection| readers::history(connection, &event))
    }

    fn drop_event(&self, event: EventNo, keep: Span, origin: Origin) -> Write<'_, Timestamp> {
        self.own(move |writer| writer.drop_event(event, keep, origin))
    }

    fn clear_dropped(&self) -> Write<'_, bool> {
        self.own(|writer| writer.clear_dropped().map(Ok))
    }

    fn keys(&self) -> Read<'_, Vec<ApiKey>> {
        self.readers.read(tables::keys::all)
    }

    fn add_key(&self, key: ApiKey) -> Write<'_, ()> {
        self.own_commit(move |tables| tables::keys::insert(tables, &key))
    }

    fn revoke_key(&self, key: KeyId, at: Timestamp) -> Write<'_, bool> {
        self.own_commit(move |tables| tables::keys::revoke(tables, key, at))
    }

    fn webhooks(&self) -> &dyn Webhooks {
        self
    }

    fn master_keys(&self) -> Vec<MasterKey> {
        self.masters.clone()
    }

    fn now(&self) -> Timestamp {
        self.shared.now()
    }

    fn is_writable(&self) -> bool {
        self.shared.is_writable()
    }

    fn close(&self) -> LedgerFuture<'_, ()> {
        self.shared.closing.store(true, Ordering::Release);
        self.shared.writable.store(false, Ordering::Release);
        let (reply, closed) = oneshot::channel();
        let jobs = self.jobs.clone();
        Box::pin(async move {
            let send = move || jobs.is_some_and(|jobs| jobs.send(Job::Close(reply)).is_ok());
            // The queue may be full, so the sending waits, off the runtime's threads.
            if tokio::task::spawn_blocking(send).await.unwrap_or(false) {
                // An error says the same: the thread is gone.
                closed.await.unwrap_or_default();
            }
        })
    }
}

impl Drop for SqliteLedger {
    fn drop(&mut self) {
        drop(self.jobs.take());
        let thread = lock(&self.thread).take();
        if let Some(thread) = thread
            && thread.join().is_err()
        {
            tracing::error!("the ledger's thread panicked");
        }
    }
}
