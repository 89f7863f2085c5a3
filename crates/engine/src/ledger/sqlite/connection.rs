//! Opens the database: the settings of every connection, and the migrations.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::OpenError;
use super::fault::Fault;
use super::folder::Folder;
use super::limits::{PAGE_BYTES, READER_CACHE_KIB, STATEMENTS_MAX, WRITER_CACHE_KIB};
use crate::ledger::Migrated;

mod migrations {
    refinery::embed_migrations!("migrations/sqlite");
}

/// The newest schema this program knows: the number of the last migration.
pub(super) const SCHEMA: i64 = 13;

/// How long a statement waits for a lock of another connection.
const BUSY: Duration = Duration::from_secs(5);

/// The triggers and indexes by which the file itself refuses wrong rows. Can be run again.
const GUARDS: &str = include_str!("guards.sql");

/// Opens the one connection that writes; returns it and what the migration of the tables did.
pub(super) fn writer(folder: &Folder) -> Result<(Connection, Migrated), OpenError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    folder.make_private()?;
    let mut connection = Connection::open_with_flags(folder.database(), flags)?;
    set_up_writer(&connection)?;
    settle_log(&connection, folder)?;
    let migrated = migrate(&mut connection)?;
    Ok((connection, migrated))
}

fn set_up_writer(connection: &Connection) -> Result<(), Fault> {
    connection.pragma_update(None, "page_size", PAGE_BYTES)?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    // Each COMMIT returns when its bytes are durable. Nothing less is ever acknowledged.
    connection.pragma_update(None, "synchronous", "full")?;
    connection.pragma_update(None, "fullfsync", true)?;
    // `checkpoint` moves the log into the database, not a commit that a caller waits for.
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    connection.pragma_update(None, "cache_size", -WRITER_CACHE_KIB)?;
    set_up(connection)
}

/// Makes durable what an earlier process left in the write-ahead log, before it is shown to a
/// caller. A process that was killed may have written a commit and not synced it. After a failed
/// sync, a later one of the same pages reports success without writing them: so the log is copied
/// into the database and truncated. While another program reads the file, the log stays, synced.
fn settle_log(connection: &Connection, folder: &Folder) -> Result<(), Fault> {
    folder.sync_log()?;
    connection.busy_timeout(Duration::ZERO)?;
    final_checkpoint(connection)?;
    connection.busy_timeout(BUSY)?;
    folder.sync_log()
}

fn set_up(connection: &Connection) -> Result<(), Fault> {
    connection.pragma_update(None, "mmap_size", 0)?;
    connection.pragma_update(None, "temp_store", "memory")?;
    connection.pragma_update(None, "trusted_schema", false)?;
    connection.pragma_update(None, "cell_size_check", true)?;
    // One plan for every value: without it, reads with a range are planned anew each time, which
    // takes longer than the reading.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    Ok(())
}

/// Opens a second connection that only checkpoints: it moves the log into the database.
pub(super) fn checkpointer(folder: &Folder) -> Result<Connection, Fault> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(folder.database(), flags)?;
    // As the writer's: the log is synced before the move, the database after it.
    connection.pragma_update(None, "synchronous", "full")?;
    connection.pragma_update(None, "fullfsync", true)?;
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    connection.pragma_update(None, "mmap_size", 0)?;
    Ok(connection)
}

/// Opens a connection that only reads a database that exists and has this program's schema.
pub(crate) fn reader(folder: &Folder) -> Result<Connection, OpenError> {
    let connection = reader_of_any(folder)?;
    match version(&connection)? {
        SCHEMA => Ok(connection),
        found => Err(mismatch(found)),
    }
}

/// Opens a connection that only reads, to a database of any schema.
fn reader_of_any(folder: &Folder) -> Result<Connection, OpenError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let path = folder.database();
    if !folder.has_database()? {
        return Err(OpenError::Missing {
            folder: folder.path().to_owned(),
        });
    }
    let connection = Connection::open_with_flags(path, flags)?;
    connection.pragma_update(None, "query_only", true)?;
    connection.pragma_update(None, "cache_size", -READER_CACHE_KIB)?;
    set_up(&connection)?;
    Ok(connection)
}

/// Lists the migrations that the tables lack, and applies none.
pub(super) fn migration(folder: &Folder) -> Result<Migrated, OpenError> {
    let found = if folder.has_database()? {
        version(&reader_of_any(folder)?)?
    } else {
        0
    };
    if found > SCHEMA {
        return Err(mismatch(found));
    }
    let runner = migrations::migrations::runner();
    Ok(Migrated::to_come(found, SCHEMA, &runner))
}

const fn mismatch(found: i64) -> OpenError {
    let known = SCHEMA;
    OpenError::Schema { found, known }
}

fn version(connection: &Connection) -> Result<i64, Fault> {
    Ok(connection.pragma_query_value(None, "user_version", |row| row.get(0))?)
}

fn migrate(connection: &mut Connection) -> Result<Migrated, OpenError> {
    let found = version(connection)?;
    let mut runner = migrations::migrations::runner();
    if found == SCHEMA {
        return Ok(Migrated::to_come(found, SCHEMA, &runner));
    }
    if found > SCHEMA {
        return Err(mismatch(found));
    }
    runner.set_migration_table_name("migrations");
    let report = runner
        .run(connection)
        .map_err(|error| OpenError::Failed(format!("the migration failed: {error}")))?;
    // The number last: until it is there, the next start runs them again.
    let transaction = connection.transaction()?;
    transaction.execute_batch(GUARDS)?;
    transaction.pragma_update(None, "user_version", SCHEMA)?;
    transaction.commit()?;
    Ok(Migrated::new(found, SCHEMA, &report))
}

/// Creates the tables of this schema in an empty database.
pub(super) fn make_tables(connection: &Connection) -> Result<(), Fault> {
    let runner = migrations::migrations::runner();
    let mut migrations: Vec<_> = runner.get_migrations().iter().collect();
    migrations.sort_by_key(|migration| migration.version());
    for migration in migrations {
        connection.execute_batch(migration.sql().unwrap_or_default())?;
    }
    Ok(connection.execute_batch(GUARDS)?)
}

/// Returns a counter of the pages in the write-ahead log, set after each commit of `connection`.
pub(super) fn watch_log(connection: &mut Connection) -> Result<Arc<AtomicU32>, Fault> {
    let pages = Arc::new(AtomicU32::new(0));
    let seen = Arc::clone(&pages);
    connection.wal_hook(Some(move |_: &mut rusqlite::hooks::Wal, pages: i32| {
        seen.store(u32::try_from(pages).unwrap_or(0), Ordering::Relaxed);
        Ok(())
    }))?;
    Ok(pages)
}

/// Moves the write-ahead log into the database file as far as readers allow; returns whether all.
///
/// # Errors
/// A failed sync is final: it is never tried again.
pub(super) fn checkpoint(connection: &Connection) -> Result<bool, Fault> {
    let row = |row: &rusqlite::Row<'_>| Ok((row.get(1)?, row.get(2)?));
    let (log, moved): (i64, i64) =
        connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], row)?;
    Ok(log == moved)
}

/// Moves all of the log and truncates it, unless another program reads the file.
pub(super) fn final_checkpoint(connection: &Connection) -> Result<(), Fault> {
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    Ok(())
}
