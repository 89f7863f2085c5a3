//! A pool of a few read-only connections, used on the runtime's threads for blocking work.

use std::sync::{Arc, Mutex};

use rusqlite::Connection;
use soldonce_core::{EventId, History};
use tokio::sync::Semaphore;

use super::connection;
use super::fault::Fault;
use super::folder::Folder;
use super::limits::{READERS_MAX, READS_WAITING_MAX};
use super::published::LiveState;
use super::tables::{audit, charts, events, holds};
use crate::ledger::{Read, ReadError};
use crate::locks::lock;

/// The pool of connections that read.
pub(super) struct Readers {
    folder: Folder,
    free: Arc<Semaphore>,
    /// A permit for each read that waits for a connection.
    waiting: Semaphore,
    idle: Mutex<Vec<Connection>>,
    shared: Arc<LiveState>,
}

impl Readers {
    pub(super) fn new(folder: Folder, shared: Arc<LiveState>) -> Self {
        Self {
            folder,
            free: Arc::new(Semaphore::new(READERS_MAX)),
            waiting: Semaphore::new(READS_WAITING_MAX),
            idle: Mutex::default(),
            shared,
        }
    }

    /// Runs `look` in one read transaction that sees everything answered before the call.
    pub(super) fn read<T: Send + 'static>(
        self: &Arc<Self>,
        look: impl FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
    ) -> Read<'static, T> {
        let readers = Arc::clone(self);
        Box::pin(async move {
            let full = |_| ReadError::Full("too many reads wait already".to_owned());
            let waits = readers.waiting.try_acquire().map_err(full)?;
            let permit = Arc::clone(&readers.free).acquire_owned().await;
            let permit = permit.map_err(|_| ReadError::Away("it is closed".to_owned()))?;
            drop(waits);
            let own = Arc::clone(&readers);
            let look = move || {
                // Held until the read ends: the caller may drop its future before.
                let _permit = permit;
                own.look(look)
            };
            let read = tokio::task::spawn_blocking(look).await;
            read.map_err(|error| ReadError::Failed(format!("a look did not finish: {error}")))?
        })
    }

    fn look<T>(&self, look: impl FnOnce(&Connection) -> Result<T, Fault>) -> Result<T, ReadError> {
        let kept = lock(&self.idle).pop();
        let mut connection = match kept {
            Some(connection) => connection,
            None => connection::reader(&self.folder)
                .map_err(|error| ReadError::Failed(error.to_string()))?,
        };
        let read = in_one_state(&mut connection, look);
        // A connection that met a fault is closed: a damaged row may come from its page cache.
        if read.is_ok() && !self.shared.is_closed() {
            lock(&self.idle).push(connection);
        }
        Ok(read?)
    }
}

/// Runs `look` in one transaction. A booking and its lines are read by two statements, between
/// which the writer may commit: so both see one state.
fn in_one_state<T>(
    connection: &mut Connection,
    look: impl FnOnce(&Connection) -> Result<T, Fault>,
) -> Result<T, Fault> {
    let state = connection.transaction()?;
    let read = look(&state)?;
    state.finish()?;
    Ok(read)
}

/// Reads all commits of an event with the terms of its holds, for the auditor.
pub(super) fn history(connection: &Connection, id: &EventId) -> Result<History, Fault> {
    let all = events::all(connection, |number| charts::find(connection, number))?;
    let found = all.iter().find(|event| event.id == *id);
    let event =
        found.ok_or_else(|| Fault::damaged("events", format!("there is no event `{id}`")))?;
    Ok(History {
        units: event.chart.units(),
        terms: events::steady_terms(connection, event)?,
        holds: holds::terms_of(connection, event.no)?,
        commits: audit::of_event(connection, event.no)?,
    })
}
