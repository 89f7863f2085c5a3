//! Moves the write-ahead log into the database file on a thread and a connection of its own: the move waits for
//! the disk, and no hold should wait with it.
//!
//! While the writer goes on writing, such a move never reaches the end of the log, so it alone would
//! let the log grow for ever, and SQLite does not sync the database after it. The thread therefore
//! syncs the file by itself, which is only a matter of time: the writer then moves the little that
//! came on top, finds few pages left to sync, and the log begins anew. Two connections that write and move at
//! once need SQLite 3.51.3: before, a reset of the log could damage it.

use std::fs::File;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use rusqlite::Connection;

use super::connection;
use super::fault::Fault;
use super::folder::Folder;

use crate::locks::lock;

/// How far a move has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Move {
    /// None is under way.
    Idle = 0,
    /// The thread moves the log.
    Begun = 1,
    /// The thread is done; what came on top is the writer's to move.
    Done = 2,
    /// It failed, for good.
    Failed = 3,
}

#[derive(Default)]
struct Shared {
    state: AtomicU8,
    fault: Mutex<Option<Fault>>,
}

impl Shared {
    fn state(&self) -> Move {
        match self.state.load(Ordering::Acquire) {
            0 => Move::Idle,
            1 => Move::Begun,
            2 => Move::Done,
            _ => Move::Failed,
        }
    }

    fn set(&self, state: Move) {
        self.state.store(state as u8, Ordering::Release);
    }

    fn fail(&self, fault: Fault) {
        *lock(&self.fault) = Some(fault);
        self.set(Move::Failed);
    }
}

/// The thread that moves the log. Dropping it waits for a move under way.
pub(super) struct Checkpointer {
    orders: Option<SyncSender<()>>,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Checkpointer {
    /// Opens a second connection on the database of `folder` and starts the thread.
    pub(super) fn start(folder: &Folder) -> Result<Self, Fault> {
        let connection = connection::checkpointer(folder)?;
        let database = File::open(folder.database()).map_err(Fault::of_file("ledger.sqlite"))?;
        let shared = Arc::new(Shared::default());
        let (orders, taken) = sync_channel(1);
        let its = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("ledger-log".to_owned())
            .spawn(move || work(&connection, &database, &taken, &its))
            .map_err(Fault::of_file("the thread that moves the log"))?;
        Ok(Self {
            orders: Some(orders),
            shared,
            thread: Some(thread),
        })
    }

    /// How far the move has come.
    ///
    /// # Errors
    /// The fault of a move that failed: nothing may be written any more.
    pub(super) fn state(&self) -> Result<Move, Fault> {
        let state = self.shared.state();
        if state != Move::Failed {
            return Ok(state);
        }
        let mut fault = lock(&self.shared.fault);
        let gone = || Fault::damaged("write-ahead log", "an earlier move of it failed");
        Err(fault.take().unwrap_or_else(gone))
    }

    /// Begins a move. The caller has seen [`Move::Idle`].
    pub(super) fn begin(&self) {
        self.shared.set(Move::Begun);
        let sent = self.orders.as_ref().map(|orders| orders.send(()));
        if !matches!(sent, Some(Ok(()))) {
            self.shared
                .fail(Fault::damaged("write-ahead log", "its thread has ended"));
        }
    }

    /// Says that the writer has moved the rest. The caller has seen [`Move::Done`].
    pub(super) fn end(&self) {
        self.shared.set(Move::Idle);
    }
}

impl Drop for Checkpointer {
    fn drop(&mut self) {
        drop(self.orders.take());
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread that moves the log panicked");
        }
    }
}

fn work(connection: &Connection, database: &File, orders: &Receiver<()>, shared: &Shared) {
    while orders.recv().is_ok() {
        match move_log(connection, database) {
            Ok(()) => shared.set(Move::Done),
            // A failed sync is never tried again: the thread takes no more orders.
            Err(fault) => return shared.fail(fault),
        }
    }
}

fn move_log(connection: &Connection, database: &File) -> Result<(), Fault> {
    connection::checkpoint(connection)?;
    database
        .sync_data()
        .map_err(Fault::of_file("ledger.sqlite"))
}
