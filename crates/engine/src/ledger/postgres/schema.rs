//! The schema, its migrations, and the settings a database needs to be trusted with a sale.

use secrecy::ExposeSecret;
use soldonce_clock::{Entropy, SystemClock};
use std::sync::Arc;

use super::address::Serves;
use super::bind::bind;
use super::database::{Connection, Database};
use super::failure::{Failure, chain};
use super::limits::{LOCK_MS, OPERATOR_ANSWER_MS};
use super::tables::keys;
use super::{Durability, OpenError, PostgresOptions, Statements, guards};
use crate::ledger::rows::keys::get_master;
use crate::ledger::rows::reader::Reader;
use crate::ledger::{MasterKey, Migrated};

mod migrations {
    refinery::embed_migrations!("migrations/postgres");
}

/// The newest schema this program knows: the number of the last migration.
pub(super) const SCHEMA: i64 = 15;

/// Only one process migrates at a time. The number is this product's own.
const LOCK: &str = "-- lock\nSELECT pg_advisory_lock(7310307613);";
const UNLOCK: &str = "-- unlock\nSELECT pg_advisory_unlock(7310307613)";

const HAS_SCHEMA: &str = "-- has_schema
SELECT EXISTS (SELECT FROM pg_class WHERE relname = 'soldonce_migrations' AND pg_table_is_visible(oid))";

const SCHEMA_VERSION: &str = "-- schema_version
SELECT coalesce(max(version), 0)::bigint FROM soldonce_migrations";

const SETTINGS: &str = "-- settings
SELECT pg_is_in_recovery(), name, setting FROM pg_settings
WHERE name IN ('fsync', 'synchronous_commit', 'full_page_writes', 'default_transaction_isolation',
               'track_activities')";

/// Brings the tables up to date; returns what it did. May run in many processes at once: one of
/// them takes the steps, the others wait for it. Needs a direct connection: a pool in transaction
/// mode refuses it.
///
/// # Errors
/// [`OpenError`], which says what to do.
///
/// # Cancel safety
/// Each migration is one transaction.
pub async fn migrate(options: &PostgresOptions) -> Result<Migrated, OpenError> {
    let options = PostgresOptions {
        // A pool in transaction mode refuses their settings: in it the lock would stay behind.
        statements: Statements::Prepared,
        ..options.clone()
    };
    let database = Database::new(&options, Serves::Primary, Arc::new(SystemClock))?;
    let mut connection = database.patient(OPERATOR_ANSWER_MS).connection().await?;
    // The migration of another process may take minutes, and ends; a table that a server at work has locked
    // is not waited for so long, for everybody who comes after waits behind it.
    let patient =
        format!("SET lock_timeout = {OPERATOR_ANSWER_MS}; {LOCK} SET lock_timeout = {LOCK_MS}");
    // Closed at the end, however it ends: no other caller may get it with our lock.
    connection.begin(&patient).await?;
    let found = version(&mut connection).await?;
    if found > SCHEMA {
        return Err(mismatch(found));
    }
    let mut runner = migrations::migrations::runner();
    runner.set_migration_table_name("soldonce_migrations");
    let report = runner
        .run_async(connection.driver()?)
        .await
        .map_err(|error| OpenError::Failed(format!("the migration failed: {}", chain(&error))))?;
    let mut migrated = Migrated::new(found, SCHEMA, &report);
    let is_bare = lacks_guards(&mut connection, &mut migrated).await?;
    if is_bare || found < SCHEMA {
        connection.run(guards::GUARDS).await?;
        guards::require(&mut connection).await?;
    }
    connection.run(UNLOCK).await?;
    Ok(migrated)
}

/// Tells whether tables of this schema lack a guard: a call before was cut off before it made them, or one was
/// dropped. Then to make them is a step, too.
async fn lacks_guards(
    connection: &mut Connection,
    migrated: &mut Migrated,
) -> Result<bool, Failure> {
    if migrated.schema_before < SCHEMA || guards::missing(connection).await?.is_empty() {
        return Ok(false);
    }
    migrated.steps.push("guards".to_owned());
    Ok(true)
}

/// Returns what [`migrate`] would do, without doing it. Takes no lock; a standby serves, too.
///
/// # Errors
/// [`OpenError`]: `Schema` when the tables are newer than this program.
pub async fn migration(options: &PostgresOptions) -> Result<Migrated, OpenError> {
    let database = Database::new(options, Serves::Any, Arc::new(SystemClock))?;
    let mut connection = database.connection().await?;
    let found = version(&mut connection).await?;
    if found > SCHEMA {
        return Err(mismatch(found));
    }
    let runner = migrations::migrations::runner();
    let mut migrated = Migrated::to_come(found, SCHEMA, &runner);
    lacks_guards(&mut connection, &mut migrated).await?;
    Ok(migrated)
}

/// Fails unless the database is no standby, has our tables and guards, and settings with which it
/// keeps what it acknowledges (if that is required), the feed its order, and each statement sees
/// what was committed before it.
pub(super) async fn require(
    database: &Database,
    options: &PostgresOptions,
) -> Result<(), OpenError> {
    let mut connection = database.connection().await?;
    for row in connection.rows(SETTINGS, &[]).await? {
        let mut row = Reader::postgres(&row, "pg_settings");
        if row.get()? {
            return Err(OpenError::Standby);
        }
        let (setting, value): (&str, &str) = (row.get()?, row.get()?);
        if setting == "default_transaction_isolation" && value != "read committed" {
            let found = value.to_owned();
            return Err(OpenError::Isolation { found });
        }
        if setting == "track_activities" {
            if value == "off" {
                return Err(OpenError::Untracked);
            }
            continue;
        }
        if value == "off" && options.durability == Durability::Required {
            let (setting, value) = (setting.to_owned(), value.to_owned());
            return Err(OpenError::Unsafe { setting, value });
        }
    }
    require_version(&mut connection).await?;
    guards::require(&mut connection).await
}

/// Fails unless the database has the tables of this program. It may be a standby.
pub(super) async fn require_version(connection: &mut Connection) -> Result<(), OpenError> {
    match version(connection).await? {
        SCHEMA => Ok(()),
        found => Err(mismatch(found)),
    }
}

/// Reads the version of the schema; 0 if there is none.
pub(super) async fn version(connection: &mut Connection) -> Result<i64, Failure> {
    let has: Option<bool> = connection.one((HAS_SCHEMA, "answer"), &[]).await?;
    if has != Some(true) {
        return Ok(0);
    }
    let version = connection.one((SCHEMA_VERSION, "x"), &[]).await?;
    Ok(version.unwrap_or(0))
}

fn mismatch(found: i64) -> OpenError {
    let fix = match found {
        0 => "run `soldonce migrate` once",
        found if found > SCHEMA => {
            "this program is older than the database, start a newer soldonce"
        }
        _ => "run `soldonce migrate`",
    };
    OpenError::Schema {
        found,
        known: SCHEMA,
        fix,
    }
}

/// Reads the ledger's master keys; the first server that starts creates one.
pub(super) async fn masters(
    database: &Database,
    entropy: &dyn Entropy,
) -> Result<Vec<MasterKey>, OpenError> {
    let fresh = secrecy::SecretBox::<[u8; 32]>::init_with_mut(|secret| entropy.fill(secret));
    let secret = fresh.expose_secret().as_slice();
    let mut connection = database.connection().await?;
    let values = [bind(&secret)];
    connection.rows(keys::ADD_MASTER_KEY, &values).await?;
    let masters = connection.read((keys::MASTER_KEYS, "master_keys"), &[], get_master);
    Ok(masters.await?)
}
