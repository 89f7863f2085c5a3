//! Where the ledger is, and the engine on it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use clap::Args;
use soldonce_clock::{SystemClock, SystemEntropy};
use soldonce_engine::ledger::Migrated;
use soldonce_engine::ledger::postgres::{
    self, Durability, PostgresLedger, PostgresOptions, Statements,
};
use soldonce_engine::ledger::sqlite::{self, OpenError, SqliteLedger, SqliteOptions};
use soldonce_engine::live::Live;
use soldonce_engine::metrics::Metrics;
use soldonce_engine::shield::Shield;
use soldonce_engine::{Engine, World};
use soldonce_lease::backend::postgres::PgConfig;

use super::words;
use crate::env;
use crate::exit::usage;

/// The file of a ledger, in its folder.
pub(crate) const LEDGER: &str = "ledger.sqlite";

/// The database of a ledger that many servers share.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct DatabaseArgs {
    /// PostgreSQL in place of the embedded ledger: `postgres://user:password@host:5432/database`
    #[arg(id = "database_url", long = "database-url", global = true)]
    #[arg(env = "SOLDONCE_DATABASE_URL", value_name = "URL")]
    #[arg(hide_env_values = true)]
    pub(crate) url: Option<String>,
    /// Most connections to the database [default: 8]
    #[arg(id = "database_connections", long = "database-connections")]
    #[arg(global = true, env = "SOLDONCE_DATABASE_CONNECTIONS")]
    #[arg(value_name = "COUNT")]
    pub(crate) connections: Option<usize>,
    /// How statements are sent; `unprepared` for a pool in transaction mode [default: prepared]
    #[arg(
        id = "database_statements",
        long = "database-statements",
        global = true,
        env = "SOLDONCE_DATABASE_STATEMENTS",
        value_parser = words([
            ("prepared", "Prepared once for each connection", Statements::Prepared),
            ("unprepared", "Whole, each time", Statements::Unprepared),
        ])
    )]
    pub(crate) statements: Option<Statements>,
}

/// Most connections of one server to the database.
const CONNECTIONS_MAX: usize = 256;

impl DatabaseArgs {
    /// Checks these arguments and returns the options of the database; None without a URL.
    ///
    /// # Errors
    /// Names the setting and what would be right.
    pub(crate) fn options(&self) -> anyhow::Result<Option<PostgresOptions>> {
        let Some(url) = &self.url else {
            let is_alone = self.connections.is_some() || self.statements.is_some();
            anyhow::ensure!(
                !is_alone,
                "database_url: is missing; without it the embedded ledger is used, which has no \
                 connections or statements to set"
            );
            return Ok(None);
        };
        PgConfig::url(url).context("database_url")?;
        let mut options = PostgresOptions::new(url.clone());
        if let Some(connections) = self.connections {
            anyhow::ensure!(
                (2..=CONNECTIONS_MAX).contains(&connections),
                "database_connections: {connections} is outside 2 ..= {CONNECTIONS_MAX}"
            );
            options.connections = connections;
        }
        options.statements = self.statements.unwrap_or_default();
        Ok(Some(options))
    }
}

#[derive(Clone, Debug)]
pub(crate) enum LedgerPlace {
    /// In a folder of this machine, for one server.
    Folder(SqliteOptions),
    Database(PostgresOptions),
}

/// Adds `meanwhile` to the error of a folder that a server has: what works without stopping it.
pub(crate) fn in_use(error: anyhow::Error, meanwhile: &str) -> anyhow::Error {
    if matches!(error.downcast_ref(), Some(OpenError::Locked { .. })) {
        return anyhow::anyhow!("{error}; {meanwhile}");
    }
    error
}

impl std::fmt::Display for LedgerPlace {
    /// Writes the folder, or that it is the database, whose address may be secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Folder(options) => write!(f, "{}", options.folder.display()),
            Self::Database(_) => f.write_str("the database"),
        }
    }
}

/// The ledger that a command is about.
#[derive(Clone, Debug, Args)]
pub(crate) struct LedgerArgs {
    /// The folder of the embedded ledger [default: ./data]
    #[arg(long, env = "SOLDONCE_DATA", value_name = "FOLDER")]
    data: Option<PathBuf>,
    #[command(flatten)]
    database: DatabaseArgs,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

impl LedgerArgs {
    /// Returns the place of the ledger; see [`LedgerPlace::named`].
    pub(crate) fn place(&self) -> anyhow::Result<LedgerPlace> {
        LedgerPlace::named(self.data.as_deref(), &self.database)
    }
}

impl LedgerPlace {
    /// Chooses the database if one is given, else the folder, `./data` by default.
    pub(crate) fn new(data: Option<PathBuf>, database: &DatabaseArgs) -> anyhow::Result<Self> {
        let folder = || SqliteOptions::new(data.unwrap_or_else(|| PathBuf::from("./data")));
        let database = database.options().map_err(usage)?;
        Ok(database.map_or_else(|| Self::Folder(folder()), Self::Database))
    }

    /// Chooses like [`LedgerPlace::new`] for a command line, where a flag wins over a variable.
    ///
    /// # Errors
    /// As [`DatabaseArgs::options`], and when two flags name a ledger.
    pub(crate) fn named(data: Option<&Path>, database: &DatabaseArgs) -> anyhow::Result<Self> {
        let folder = data.map(Path::to_owned);
        match (env::is_flag("data"), env::is_flag("database_url")) {
            (true, true) => {
                let both = "--data and --database-url: each names a ledger, leave one out";
                Err(usage(anyhow::anyhow!(both)))
            }
            (true, false) => Self::new(folder, &DatabaseArgs::default()),
            (false, _) => Self::new(folder, database),
        }
    }

    /// Lets it open although it has lost or may lose commits, as the operator accepts that.
    pub(crate) fn accept_loss(self) -> Self {
        match self {
            Self::Folder(options) => Self::Folder(SqliteOptions {
                accept_loss: true,
                ..options
            }),
            Self::Database(options) => Self::Database(PostgresOptions {
                durability: Durability::Waived,
                ..options
            }),
        }
    }

    pub(crate) fn folder(&self) -> Option<PathBuf> {
        match self {
            Self::Folder(options) => Some(options.folder.clone()),
            Self::Database(_) => None,
        }
    }

    /// Tells whether other servers may work on it too.
    pub(crate) fn is_shared(&self) -> bool {
        matches!(self, Self::Database(_))
    }

    /// Tells whether it exists. Always true of a database, which is asked when it is opened.
    pub(crate) fn is_made(&self) -> anyhow::Result<bool> {
        match self {
            Self::Folder(options) => Ok(options.is_made()?),
            Self::Database(_) => Ok(true),
        }
    }

    /// Brings the schema up to date and returns the steps that were taken.
    ///
    /// # Errors
    /// When it cannot be reached, or is newer than this program.
    pub(crate) async fn migrate(&self) -> anyhow::Result<Migrated> {
        match self {
            Self::Folder(options) => {
                let migrated = sqlite::migrate(options)?;
                // What does not start afterwards is said now.
                self.open().await?.close().await;
                Ok(migrated)
            }
            Self::Database(options) => postgres::migrate(options).await.context("database_url"),
        }
    }

    /// Returns what [`LedgerPlace::migrate`] would do, without doing it.
    pub(crate) async fn migration(&self) -> anyhow::Result<Migrated> {
        match self {
            Self::Folder(options) => Ok(sqlite::migration(options)?),
            Self::Database(options) => postgres::migration(options).await.context("database_url"),
        }
    }

    /// Adds to the error of a folder without a ledger the option that names another place.
    pub(crate) fn unread(error: OpenError) -> anyhow::Error {
        let OpenError::Missing { folder } = &error else {
            return error.into();
        };
        let demo = Path::new("./soldonce-demo");
        let is_here = demo.join(LEDGER).exists() && folder != demo;
        let hint = if is_here {
            "that of `soldonce demo` is here: --data ./soldonce-demo"
        } else {
            "name its folder with --data, or its database with --database-url"
        };
        anyhow::anyhow!("{error}; {hint}")
    }

    /// Opens the ledger and the engine on it.
    ///
    /// # Errors
    /// When it belongs to another process, is damaged, cannot be reached, or has another schema.
    pub(crate) async fn open(&self) -> anyhow::Result<Engine> {
        self.open_behind(None).await
    }

    /// Opens like [`LedgerPlace::open`], behind a shield that servers share.
    pub(crate) async fn open_behind(
        &self,
        shield: Option<Arc<dyn Shield>>,
    ) -> anyhow::Result<Engine> {
        let world = World {
            clock: Arc::new(SystemClock),
            entropy: Arc::new(SystemEntropy),
        };
        let metrics = Arc::new(Metrics::default());
        let live = Live::new(Arc::clone(&metrics));
        let live = Arc::new(match shield {
            Some(shield) => live.behind(shield),
            None => live,
        });
        let clock = Arc::clone(&world.clock);
        let ledger: Arc<dyn soldonce_engine::ledger::Ledger> = match self {
            Self::Folder(options) => {
                let opened = SqliteLedger::open(options, clock, &SystemEntropy, live.clone());
                Arc::new(opened?)
            }
            Self::Database(options) => {
                let opened = PostgresLedger::open(options, clock, &SystemEntropy, live.clone());
                Arc::new(opened.await.context("database_url")?)
            }
        };
        Ok(Engine::new(ledger, live, metrics, world).await?)
    }
}
