//! The ceiling of this ledger: SQLite with the same settings, one narrow row for each command, a key
//! that rises, nothing else. For measurements in the same run as the ledger.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rusqlite::{Connection, TransactionBehavior};

use super::fault::Fault;
use super::folder::Folder;
use super::limits::{BATCH_MAX, WAL_PAGES_MAX};
use super::{OpenError, connection};

const CREATE_BARE: &str = "-- create_bare
CREATE TABLE IF NOT EXISTS bare (n INTEGER PRIMARY KEY, value INTEGER NOT NULL) STRICT";

const INSERT_BARE: &str = "-- insert_bare
INSERT INTO bare (value) VALUES (?1)";

/// A database of narrow rows.
pub struct BareLog {
    connection: Connection,
    log_pages: Arc<AtomicU32>,
}

impl BareLog {
    /// Commands of one commit at most: as many as the ledger's.
    pub const BATCH_MAX: usize = BATCH_MAX;

    /// Opens one in a folder, which must exist.
    ///
    /// # Errors
    /// [`OpenError`] when SQLite refuses.
    pub fn open(folder: &Path) -> Result<Self, OpenError> {
        let mut connection = connection::bare_writer(&Folder::new(folder))?;
        connection.execute(CREATE_BARE, [])?;
        let log_pages = connection::watch_log(&mut connection)?;
        Ok(Self {
            connection,
            log_pages,
        })
    }

    /// Makes so many rows durable in one commit.
    ///
    /// # Errors
    /// [`OpenError`] when SQLite refuses.
    pub fn commit(&mut self, rows: usize) -> Result<(), OpenError> {
        self.insert(rows)?;
        if self.log_pages.load(Ordering::Relaxed) >= WAL_PAGES_MAX {
            connection::checkpoint(&self.connection)?;
        }
        Ok(())
    }

    fn insert(&mut self, rows: usize) -> Result<(), Fault> {
        let behavior = TransactionBehavior::Immediate;
        let transaction = self.connection.transaction_with_behavior(behavior)?;
        {
            let mut insert = transaction.prepare_cached(INSERT_BARE)?;
            for row in 0..rows {
                insert.execute([i64::try_from(row).unwrap_or_default()])?;
            }
        }
        Ok(transaction.commit()?)
    }
}
