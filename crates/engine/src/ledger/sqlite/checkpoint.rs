//! Checkpoints: moves the write-ahead log into the database file on a thread and a connection of
//! its own. The move waits for the disk, and no hold should wait with it.
//!
//! While the writer goes on, such a checkpoint never reaches the end of the log, so alone it would
//! let the log grow without bound, and SQLite does not sync the database after it. The thread
//! therefore syncs the file itself, which costs only time: the writer then moves the little that
//! was added meanwhile, finds few pages left to sync, and the log restarts. Two connections that
//! write and checkpoint at once need SQLite 3.51.3: before, a reset of the log could damage it.

use std::fs::File;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use rusqlite::Connection;

use super::connection;
use super::fault::Fault;
use super::folder::Folder;

use crate::locks::lock;

/// The state of the checkpoint that the thread makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Move {
    /// None is running.
    Idle,
    /// The thread is moving the log.
    Begun,
    /// The thread is done; the writer has to move what was added meanwhile.
    Done,
}

/// The state, or the fault of a failed checkpoint, which is final.
type State = Mutex<Result<Move, Fault>>;

/// The thread that moves the log. Dropping it waits for a checkpoint that is running.
pub(super) struct Checkpointer {
    orders: Option<SyncSender<()>>,
    state: Arc<State>,
    thread: Option<JoinHandle<()>>,
}

impl Checkpointer {
    /// Opens a second connection on the database of `folder` and starts the thread.
    pub(super) fn start(folder: &Folder) -> Result<Self, Fault> {
        let connection = connection::checkpointer(folder)?;
        let database = File::open(folder.database()).map_err(Fault::of_file("ledger.sqlite"))?;
        let state = Arc::new(State::new(Ok(Move::Idle)));
        let (orders, taken) = sync_channel(1);
        let its = Arc::clone(&state);
        let thread = std::thread::Builder::new()
            .name("ledger-log".to_owned())
            .spawn(move || work(&connection, &database, &taken, &its))
            .map_err(Fault::of_file("the thread that moves the log"))?;
        Ok(Self {
            orders: Some(orders),
            state,
            thread: Some(thread),
        })
    }

    /// Reads how far the checkpoint is.
    ///
    /// # Errors
    /// The fault of a checkpoint that failed: nothing may be written any more.
    pub(super) fn state(&self) -> Result<Move, Fault> {
        let mut state = lock(&self.state);
        if let Ok(known) = &*state {
            return Ok(*known);
        }
        let gone = Fault::damaged("write-ahead log", "an earlier move of it failed");
        std::mem::replace(&mut *state, Err(gone))
    }

    /// Orders a checkpoint from the thread. The caller has seen [`Move::Idle`].
    pub(super) fn begin(&self) {
        *lock(&self.state) = Ok(Move::Begun);
        let sent = self.orders.as_ref().map(|orders| orders.send(()));
        if !matches!(sent, Some(Ok(()))) {
            *lock(&self.state) = Err(Fault::damaged("write-ahead log", "its thread has ended"));
        }
    }

    /// Notes that the writer has moved the rest. The caller has seen [`Move::Done`].
    pub(super) fn end(&self) {
        *lock(&self.state) = Ok(Move::Idle);
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

fn work(connection: &Connection, database: &File, orders: &Receiver<()>, state: &State) {
    while orders.recv().is_ok() {
        let moved = move_log(connection, database).map(|()| Move::Done);
        let has_failed = moved.is_err();
        *lock(state) = moved;
        // A failed sync is never tried again: the thread takes no more orders.
        if has_failed {
            return;
        }
    }
}

fn move_log(connection: &Connection, database: &File) -> Result<(), Fault> {
    connection::checkpoint(connection)?;
    database
        .sync_data()
        .map_err(Fault::of_file("ledger.sqlite"))
}
