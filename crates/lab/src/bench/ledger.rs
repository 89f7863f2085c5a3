//! Where a server under test keeps its ledger: made for a run, gone with its value.

use std::ffi::OsStr;
use std::path::Path;

use anyhow::Context;
use soldonce_engine::ledger::postgres::{self, PostgresOptions};
use soldonce_engine::ledger::sqlite::verify::verify;
use soldonce_testkit::TempFolder;
use soldonce_testkit::postgres::Postgres;

use crate::kit::{Service, private_postgres};
use crate::limits::BENCH_DATABASE_CONNECTIONS_MAX;

pub(super) enum Ledger {
    Folder(TempFolder),
    Database(Service<Postgres>),
}

impl Ledger {
    /// Makes an empty folder in this one.
    pub(super) fn folder(parent: Option<&Path>) -> anyhow::Result<Self> {
        run_folder(parent).map(Self::Folder)
    }

    /// Starts a private PostgreSQL and makes the tables.
    pub(super) async fn database() -> anyhow::Result<Self> {
        let most = format!("max_connections = {BENCH_DATABASE_CONNECTIONS_MAX}");
        let database = private_postgres(&[most])?;
        let migrated = postgres::migrate(&PostgresOptions::new(database.url.clone())).await;
        migrated.context("no tables were made")?;
        Ok(Self::Database(database))
    }

    /// Returns the arguments of `soldonce serve` that name it.
    pub(super) fn arguments(&self) -> [&OsStr; 2] {
        match self {
            Self::Folder(folder) => ["--data".as_ref(), folder.path().as_os_str()],
            Self::Database(database) => ["--database-url".as_ref(), database.url.as_ref()],
        }
    }

    /// Counts the findings of `verify`, once no server uses the ledger any more.
    pub(super) async fn violations(&self) -> anyhow::Result<usize> {
        let report = match self {
            Self::Folder(folder) => verify(folder.path(), &mut |_| {}).map_err(Into::into),
            Self::Database(database) => {
                let options = PostgresOptions::new(database.url.clone());
                let verified = postgres::verify(&options, &mut |_| {}).await;
                verified.map_err(anyhow::Error::from)
            }
        };
        let report = report.context("the ledger was not verified")?;
        Ok(report.findings.len())
    }
}

/// Creates a folder in this one, or in the system's temporary folder.
pub(super) fn run_folder(parent: Option<&Path>) -> anyhow::Result<TempFolder> {
    let Some(parent) = parent else {
        return TempFolder::new();
    };
    let made = TempFolder::within(parent);
    made.with_context(|| format!("--data: {} cannot be used", parent.display()))
}
