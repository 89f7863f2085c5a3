//! The tables and functions in the database, and their installation.

use std::sync::Arc;
use std::time::Duration;

use super::link::CONNECT_LEAST;
use super::{Link, PgConfig};
use crate::{BackendError, SystemClock};

/// The version of the objects that this crate uses; `sql/version.sql` has the same.
pub(super) const VERSION: i32 = 3;

/// Longest wait for a connection and the installed version. No second call follows that a slow connection would serve.
const REACH: Duration = Duration::from_secs(3);

/// Longest wait for the installation: another process may be installing.
const MIGRATE_TIMEOUT: Duration = Duration::from_secs(30);

/// In order: later files use what earlier ones create.
const FILES: [&str; 7] = [
    include_str!("sql/tables.sql"),
    include_str!("sql/settings.sql"),
    include_str!("sql/epoch.sql"),
    include_str!("sql/acquire.sql"),
    include_str!("sql/renew.sql"),
    include_str!("sql/release.sql"),
    include_str!("sql/version.sql"),
];

/// Opens the transaction of a migration. The lock makes two processes that start together wait for
/// each other; it ends with the transaction, so a pool cannot keep it.
const BEGIN: &str = "BEGIN; SELECT pg_advisory_xact_lock(7310307612);\n";

/// Reads whether any version is installed.
const INSTALLED: &str = "\
-- lease_installed
SELECT EXISTS (SELECT FROM pg_proc WHERE proname = 'soldonce_lease_version'
    AND pg_function_is_visible(oid))";

const INSTALLED_VERSION: &str = "\
-- lease_version
SELECT soldonce_lease_version()";

/// Installs the tables and functions of leases and epochs in the first schema of the user's search
/// path. May run at every start and in many processes at once: what is there stays. The user needs
/// the right to create; a user that only leases does not need it afterwards.
///
/// # Errors
/// [`BackendError`]; `Config` when a newer version than this crate knows is installed.
///
/// # Cancel safety
/// All or nothing: it is one transaction.
pub async fn migrate(config: &PgConfig) -> Result<(), BackendError> {
    let link = Link::new(config.clone(), Arc::new(SystemClock), MIGRATE_TIMEOUT);
    match installed_within(&link, REACH).await? {
        Some(VERSION) => Ok(()),
        Some(newer) if newer > VERSION => Err(BackendError::Config(format!(
            "the lease tables have version {newer}, this client knows {VERSION}: update the client"
        ))),
        Some(_) | None => {
            link.batch(&format!("{BEGIN}{}COMMIT;", FILES.concat()))
                .await
        }
    }
}

pub(super) async fn installed(link: &Link) -> Result<Option<i32>, BackendError> {
    installed_within(link, link.limit.max(CONNECT_LEAST)).await
}

async fn installed_within(link: &Link, limit: Duration) -> Result<Option<i32>, BackendError> {
    let unreadable =
        || BackendError::Config("the version of the lease tables is unreadable".into());
    let first = |rows: Vec<tokio_postgres::Row>| rows.into_iter().next().ok_or_else(unreadable);
    let row = first(link.query_within(limit, INSTALLED, &[]).await?)?;
    if !row.try_get::<_, bool>(0).map_err(|_| unreadable())? {
        return Ok(None);
    }
    let row = first(link.query_within(limit, INSTALLED_VERSION, &[]).await?)?;
    row.try_get(0).map(Some).map_err(|_| unreadable())
}
