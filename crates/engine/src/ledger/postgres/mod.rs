//! The PostgreSQL ledger: many servers on one database. Each caches the events it works on, decides
//! with the rules of `core`, and stores its decisions in one statement that names the version of
//! every row they rest on. If one of these rows has another version by then, nothing is written:
//! the server reads what others wrote, and decides anew. So the database has the last word.
//!
//! Reading order: `replica` (the cache of an event), `ledger::batch` (decides), `read_set` (what
//! decisions rest on), `write/` (the call of `store_batch_12`; the function is SQL, migration 12),
//! `context` (refresh, store), `queue` (how commands come to the call), `resolve` (answers that
//! never came), `time`, `tables/` (the rows). `verify` changes nothing.

mod limits;
mod options;

mod address;
mod bind;
mod connect;
mod database;
mod failure;
mod horizon;
mod resolve;
mod schema;
#[macro_use]
mod tables;
mod time;

mod charts;
mod read_set;
mod replica;
mod write;

mod context;
mod correct;
mod create;
mod dropped;
mod event_slot;
mod event_tasks;
mod examine;
mod feed;
mod guards;
mod queue;
mod reads;
mod route;
mod sweep;
mod tasks;
mod verify;
mod webhooks;

use std::sync::{Arc, Mutex};

use soldonce_clock::{Clock, Entropy};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use self::address::Serves;
use self::context::Context;
use self::feed::own_batches::OwnBatches;
use super::{MasterKey, Observer};
use crate::locks::lock;
use crate::shared_reading::SharedReading;

pub use address::{is_remote, unverified_host};
pub use correct::correct_clock;
pub use dropped::dropped;
pub use examine::{DatabaseRole, Examination, examine};
pub use options::{Durability, OpenError, PostgresOptions, Statements, TimeSource};
pub use schema::{migrate, migration};
pub use verify::{unit_history, verify};

/// The ledger of one database, as one server sees it.
///
/// Dropping it ends its tasks at once; [`Ledger::close`](crate::ledger::Ledger::close) finishes everything that waits.
pub struct PostgresLedger {
    parts: Arc<Parts>,
    shutdown: CancellationToken,
    masters: Vec<MasterKey>,
}

/// The parts of a ledger that its tasks need to start other tasks.
struct Parts {
    context: Arc<Context>,
    tasks: Mutex<JoinSet<()>>,
    /// Locked while an event is created: one at a time.
    creating: tokio::sync::Mutex<()>,
    /// Readings of new events, one at a time: the task that publishes an event must also add it.
    discovering: SharedReading,
    sweeps: sweep::Sweeps,
}

impl Parts {
    fn tasks(&self) -> std::sync::MutexGuard<'_, JoinSet<()>> {
        lock(&self.tasks)
    }
}

impl PostgresLedger {
    /// Opens the ledger in a database that was migrated. Its tasks run on the present runtime.
    ///
    /// # Errors
    /// [`OpenError`], which says what to do.
    ///
    /// # Cancel safety
    /// A dropped call leaves no task and no connection behind. What it wrote stays: the first
    /// master key and the clock row.
    pub async fn open(
        options: &PostgresOptions,
        clock: Arc<dyn Clock>,
        entropy: &dyn Entropy,
        observer: Arc<dyn Observer>,
    ) -> Result<Self, OpenError> {
        let database = database::Database::new(options, Serves::Primary, Arc::clone(&clock))?;
        schema::require(&database, options).await?;
        let masters = schema::masters(&database, entropy).await?;
        let row_types = write::RowTypes::read(&mut database.connection().await?).await?;
        let mut server = [0; 16];
        entropy.fill(&mut server);
        let context = Arc::new(Context {
            time: time::Time::new(Arc::clone(&clock), options.time),
            server: tables::Id(server),
            catalogue: event_slot::Catalogue::default(),
            charts: charts::Charts::default(),
            next_batch: std::sync::atomic::AtomicU64::new(0),
            open: std::sync::atomic::AtomicBool::new(true),
            is_reachable: std::sync::atomic::AtomicBool::new(true),
            own_batches: OwnBatches::default(),
            numbered: Mutex::default(),
            hold_events: Mutex::default(),
            known_dropped: std::sync::atomic::AtomicI64::new(0),
            cold: Mutex::default(),
            trouble: Mutex::default(),
            database,
            clock,
            observer,
            row_types,
        });
        context.observer.opened(&soldonce_core::Inventory::new());
        let parts = Parts {
            context,
            tasks: Mutex::new(JoinSet::new()),
            creating: tokio::sync::Mutex::new(()),
            discovering: SharedReading::default(),
            sweeps: tokio::sync::Mutex::new(event_tasks::EventTasks::new("swept")),
        };
        let ledger = Self {
            parts: Arc::new(parts),
            shutdown: CancellationToken::new(),
            masters,
        };
        tasks::push_clock(&ledger.parts.context).await?;
        let mut connection = ledger.parts.context.database.connection().await?;
        feed::follow_move(&mut connection).await?;
        let known = feed::FeedPosition::end(&mut connection).await?;
        drop(connection);
        ledger.parts.discover().await?;
        ledger.start_tasks(known);
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

/// Waits for the end of every task.
async fn finish(mut tasks: JoinSet<()>) {
    while let Some(ended) = tasks.join_next().await {
        if let Err(error) = ended {
            tracing::error!(%error, "a task of the ledger panicked");
        }
    }
}
