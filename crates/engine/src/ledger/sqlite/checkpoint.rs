//! Moves the write-ahead log into the database file on a thread and a connection of its own: the move waits for
//! the disk, and no hold should wait with it.
//!
//! While the writer goes on writing, such a move never reaches the end of the log, so it alone would
//! let the log grow for ever, and SQLite does not sync the database after it. The thread therefore
//! syncs the file by itself, which is only a matter of time: the writer then moves the little that
//! came on top, finds few pages left to sync, and the log begins anew. Two connections that write and move at
//! once need SQLite 3.51.3: before, a reset of the log could damage it.

use std::fs::File;
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
pub(super) enum Move {
    /// None is under way.
    Idle,
    /// The thread moves the log.
    Begun,
    /// The thread is done; what came on top is the writer's to move.
    Done,
}

/// How far the move is, or why one failed, for good.
type State = Mutex<Result<Move, Fault>>;

/// The thread that moves the log. Dropping it waits for a move under way.
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

    /// How far the move has come.
    ///
    /// # Errors
    /// The fault of a move that failed: nothing may be written any more.
    pub(super) fn state(&self) -> Result<Move, Fault> {
        let mut state = lock(&self.state);
        if let Ok(known) = &*state {
            return Ok(*known);
        }
        let gone = Fault::damaged("write-ahead log", "an earlier move of it failed");
        std::mem::replace(&mut *state, Err(gone))
    }

    /// Begins a move. The caller has seen [`Move::Idle`].
    pub(super) fn begin(&self) {
        *lock(&self.state) = Ok(Move::Begun);
        let sent = self.orders.as_ref().map(|orders| orders.send(()));
        if !matches!(sent, Some(Ok(()))) {
            *lock(&self.state) = Err(Fault::damaged("write-ahead log", "its thread has ended"));
        }
    }

    /// Says that the writer has moved the rest. The caller has seen [`Move::Done`].
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
