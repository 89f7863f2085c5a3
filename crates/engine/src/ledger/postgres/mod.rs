//! The PostgreSQL ledger: many servers on one database. Each remembers the events it works on,
//! decides with the rules of `core`, and stores what it decided in one statement that names the
//! versions of every row the decision rests on. A row that has moved, and nothing is written: the
//! server reads what others wrote, and decides anew. So the database has the last word, and no
//! transaction waits for a server's thoughts.
//!
//! Reading order: `replica` (what a server remembers), `decide`, `batch` (what one statement is made
//! of), `write.sql` (the statement), `desk` (what every strategy is made of), the strategies
//! (`queue`), `settle` (answers that never came), `time`, `tables/` (the rows).

mod limits;

mod database;
mod failure;
mod schema;
mod settle;
mod tables;
mod time;

mod batch;
mod charts;
mod decide;
mod replica;
mod write;

mod booth;
mod create;
mod desk;
mod follow;
mod queue;
mod reads;
mod route;
mod sequencer;
mod survive;
mod tasks;

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use soldonce_core::{
    Booking, BookingId, Commit, EventId, EventNo, History, Hold, HoldId, Holder, Rejection, Seq,
    Timestamp, UnitNo,
};
use soldonce_lease::{Clock, Entropy};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use self::desk::Desk;
use super::{Done, Ledger, LedgerFuture, MasterKey, Observer, ReadError, Transaction};
use crate::keys::{ApiKey, KeyId};

pub use schema::migrate;

/// Connections of a server, unless it is set.
const CONNECTIONS: usize = 8;

/// Where the database is and how it is used.
#[derive(Clone)]
pub struct PostgresOptions {
    /// `postgres://user:password@host:5432/database`, or `host=.. user=.. dbname=..`.
    pub url: String,
    /// Most connections of this server.
    pub connections: usize,
    /// How statements are sent.
    pub statements: Statements,
    /// What the database must promise.
    pub durability: Durability,
    /// Whose clock decides.
    pub time: TimeSource,
}

/// How statements are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Statements {
    /// Prepared once for each connection.
    #[default]
    Prepared,
    /// Whole, each time: for a pool in transaction mode that does not keep prepared ones.
    Unprepared,
}

/// What the database must promise of a commit that it acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Durability {
    /// That it survives a power cut: `fsync`, `full_page_writes` and `synchronous_commit` are on.
    #[default]
    Required,
    /// Nothing: for tests.
    Waived,
}

/// Whose clock decides (T1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum TimeSource {
    /// The database's.
    #[default]
    Database,
    /// The one that is given to [`PostgresLedger::open`]: for tests.
    Given,
}

impl PostgresOptions {
    /// The ledger in this database.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            connections: CONNECTIONS,
            statements: Statements::default(),
            durability: Durability::default(),
            time: TimeSource::default(),
        }
    }
}

impl std::fmt::Debug for PostgresOptions {
    /// Without the address, which may hold a password.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PostgresOptions")
            .field("connections", &self.connections)
            .field("statements", &self.statements)
            .field("durability", &self.durability)
            .field("time", &self.time)
            .finish_non_exhaustive()
    }
}

/// Why the ledger does not start.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The address cannot be read.
    #[error("the database address is illegal: {0}; write postgres://user@host:5432/database")]
    Address(String),
    /// The server does not answer, or does not let us in.
    #[error("the database cannot be reached: {0}")]
    Away(String),
    /// It only follows another server, which decides.
    #[error("the database is a standby: give the address of the primary")]
    Standby,
    /// The tables are not those of this version.
    #[error("the database has schema {found}, this program knows {known}: {mend}")]
    Schema {
        /// The schema found; 0 is none.
        found: i64,
        /// The newest one of this program.
        known: i64,
        /// What to do.
        mend: &'static str,
    },
    /// A setting of the database loses acknowledged commits.
    #[error("the database has {setting} = {value}: what it acknowledges may be lost; set it to on")]
    Unsafe {
        /// Which.
        setting: String,
        /// What it says.
        value: String,
    },
    /// What is stored cannot be, or cannot be read.
    #[error("the ledger cannot be opened: {0}")]
    Failed(String),
}

/// The ledger of one database, as one server sees it.
///
/// Dropping it ends its tasks at once; [`Ledger::close`] finishes everything that waits.
pub struct PostgresLedger {
    parts: Arc<Parts>,
    shutdown: CancellationToken,
    masters: Vec<MasterKey>,
}

/// What its tasks need to begin other tasks.
struct Parts {
    desk: Arc<Desk>,
    tasks: Mutex<JoinSet<()>>,
    /// One new event at a time.
    creating: tokio::sync::Mutex<()>,
    /// One reader of new events at a time.
    discovering: tokio::sync::Mutex<()>,
}

impl Parts {
    fn tasks(&self) -> std::sync::MutexGuard<'_, JoinSet<()>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PostgresLedger {
    /// Opens the ledger in a database that was migrated. Its tasks run on the present runtime.
    ///
    /// # Errors
    /// [`OpenError`], which says what to do.
    ///
    /// # Cancel safety
    /// Dropped, nothing of it stays.
    pub async fn open(
        options: &PostgresOptions,
        clock: Arc<dyn Clock>,
        entropy: &dyn Entropy,
        observer: Arc<dyn Observer>,
    ) -> Result<Self, OpenError> {
        let database = database::Database::new(options, Arc::clone(&clock))?;
        schema::require(&database, options).await?;
        let masters = schema::masters(&database, entropy).await?;
        let desk = Arc::new(Desk {
            time: time::Time::new(Arc::clone(&clock), options.time),
            server: desk::server_id(entropy),
            catalogue: booth::Catalogue::default(),
            charts: charts::Charts::default(),
            next_batch: std::sync::atomic::AtomicU64::new(0),
            open: std::sync::atomic::AtomicBool::new(true),
            routes: route::Routes::default(),
            database,
            clock,
            observer,
        });
        desk.observer.opened(&soldonce_core::Inventory::new());
        let parts = Parts {
            desk,
            tasks: Mutex::new(JoinSet::new()),
            creating: tokio::sync::Mutex::new(()),
            discovering: tokio::sync::Mutex::new(()),
        };
        let ledger = Self {
            parts: Arc::new(parts),
            shutdown: CancellationToken::new(),
            masters,
        };
        tasks::push_clock(&ledger.parts.desk).await?;
        let last = follow::last(&mut ledger.parts.desk.database.lane().await?).await?;
        ledger.parts.discover().await?;
        ledger.start_tasks(last);
        Ok(ledger)
    }
}

impl Drop for PostgresLedger {
    fn drop(&mut self) {
        self.shutdown.cancel();
        // Tasks hold each other: ended here, they let go.
        self.parts.tasks().abort_all();
    }
}

impl Ledger for PostgresLedger {
    fn transact(&self, transaction: Transaction) -> LedgerFuture<'_, Result<Done, Rejection>> {
        Box::pin(self.parts.route(transaction))
    }

    fn hold(&self, hold: HoldId) -> LedgerFuture<'_, Result<Option<Hold>, ReadError>> {
        Box::pin(async move { Ok(reads::hold(&self.parts.desk, hold).await?) })
    }

    fn booking(&self, booking: BookingId) -> LedgerFuture<'_, Result<Option<Booking>, ReadError>> {
        Box::pin(async move { Ok(reads::booking(&self.parts.desk, booking).await?) })
    }

    fn holds_of(
        &self,
        holder: Holder,
        limit: usize,
    ) -> LedgerFuture<'_, Result<Vec<Hold>, ReadError>> {
        Box::pin(async move { Ok(reads::holds_of(&self.parts.desk, &holder, limit).await?) })
    }

    fn bookings_of(
        &self,
        holder: Holder,
        limit: usize,
    ) -> LedgerFuture<'_, Result<Vec<Booking>, ReadError>> {
        Box::pin(async move { Ok(reads::bookings_of(&self.parts.desk, &holder, limit).await?) })
    }

    fn unit_history(
        &self,
        event: EventNo,
        unit: UnitNo,
        limit: usize,
    ) -> LedgerFuture<'_, Result<Vec<Commit>, ReadError>> {
        Box::pin(
            async move { Ok(reads::unit_history(&self.parts.desk, (event, unit), limit).await?) },
        )
    }

    fn commits_after(
        &self,
        event: EventNo,
        after: Seq,
        limit: usize,
    ) -> LedgerFuture<'_, Result<Vec<Commit>, ReadError>> {
        Box::pin(
            async move { Ok(reads::commits_after(&self.parts.desk, (event, after), limit).await?) },
        )
    }

    fn history(&self, event: EventId) -> LedgerFuture<'_, Result<History, ReadError>> {
        Box::pin(async move { reads::history(&self.parts.desk, &event).await })
    }

    fn keys(&self) -> LedgerFuture<'_, Result<Vec<ApiKey>, ReadError>> {
        Box::pin(async move { Ok(reads::keys(&self.parts.desk).await?) })
    }

    fn add_key(&self, key: ApiKey) -> LedgerFuture<'_, Result<(), Rejection>> {
        Box::pin(async move {
            let added = reads::add_key(&self.parts.desk, &key).await;
            added.map_err(|failure| failure.rejection())
        })
    }

    fn revoke_key(&self, key: KeyId, at: Timestamp) -> LedgerFuture<'_, Result<bool, Rejection>> {
        Box::pin(async move {
            let revoked = reads::revoke_key(&self.parts.desk, key, at).await;
            revoked.map_err(|failure| failure.rejection())
        })
    }

    fn master_keys(&self) -> Vec<MasterKey> {
        self.masters.clone()
    }

    fn now(&self) -> Timestamp {
        self.parts.desk.time.now()
    }

    fn is_writable(&self) -> bool {
        self.parts.desk.is_open()
    }

    fn close(&self) -> LedgerFuture<'_, ()> {
        self.parts.desk.open.store(false, Ordering::Release);
        self.shutdown.cancel();
        for booth in self.parts.desk.catalogue.all() {
            booth.close();
        }
        let tasks = std::mem::take(&mut *self.parts.tasks());
        Box::pin(async move {
            finish(tasks).await;
            // What is stored and shown stays readable.
            if let Err(failure) = tasks::push_clock(&self.parts.desk).await {
                tracing::debug!(%failure, "the ledger's clock was not pushed on at the end");
            }
        })
    }
}

/// Waits for the end of every task.
async fn finish(mut tasks: JoinSet<()>) {
    while let Some(ended) = tasks.join_next().await {
        if let Err(error) = ended {
            tracing::error!(%error, "a task of the ledger panicked");
        }
    }
}
