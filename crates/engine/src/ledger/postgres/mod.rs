//! The PostgreSQL ledger: many servers on one database. Each remembers the events it works on,
//! decides with the rules of `core`, and stores what it decided in one statement that names the
//! versions of every row the decision rests on. A row that has moved, and nothing is written: the
//! server reads what others wrote, and decides anew. So the database has the last word.
//!
//! Reading order: `replica` (what a server remembers), `decide`, `batch`, `read_set` (what its decisions
//! rest on), `write/` (the call of `store_batch_12`; the function is SQL, in migration 12), `context`
//! (refresh, store), `queue` (how commands come to the call), `resolve` (answers that never came), `time`,
//! `tables/` (the rows). `verify` changes nothing.

mod limits;
mod options;

mod address;
mod bind;
mod connect;
mod database;
mod failure;
mod resolve;
mod schema;
#[macro_use]
mod tables;
mod time;

mod charts;
mod decide;
mod read_set;
mod replica;
mod write;

mod catch_panic;
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

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use soldonce_clock::{Clock, Entropy};
use soldonce_core::{
    Booking, BookingId, Commit, EventId, EventNo, History, Hold, HoldId, Holder, Origin, Rejection,
    Seq, Span, Timestamp, UnitNo,
};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use self::address::Serves;
use self::context::Context;
use self::event_slot::HoldEvents;
use self::feed::own_batches::OwnBatches;
use super::{
    Done, Ledger, LedgerFuture, MadeAt, MasterKey, Observer, OpenEffect, ReadError, Transaction,
    Webhooks,
};
use crate::keys::{ApiKey, KeyId};

pub use address::{is_remote, unverified_host};
pub use correct::correct_clock;
pub use dropped::dropped;
pub use examine::{Examination, examine};
pub use options::{Durability, OpenError, PostgresOptions, Statements, TimeSource};
pub use schema::{migrate, migration};
pub use verify::{unit_history, verify};

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
    context: Arc<Context>,
    tasks: Mutex<JoinSet<()>>,
    /// One new event at a time.
    creating: tokio::sync::Mutex<()>,
    /// Looks for new events, one at a time.
    discovering: create::Looks,
    sweeps: sweep::Sweeps,
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
        let database = database::Database::new(options, Serves::Primary, Arc::clone(&clock))?;
        schema::require(&database, options).await?;
        let masters = schema::masters(&database, entropy).await?;
        let row_types = write::RowTypes::read(&mut database.connection().await?).await?;
        let context = Arc::new(Context {
            time: time::Time::new(Arc::clone(&clock), options.time),
            server: context::server_id(entropy),
            catalogue: event_slot::Catalogue::default(),
            charts: charts::Charts::default(),
            next_batch: std::sync::atomic::AtomicU64::new(0),
            open: std::sync::atomic::AtomicBool::new(true),
            is_reachable: std::sync::atomic::AtomicBool::new(true),
            own_batches: OwnBatches::default(),
            hold_events: HoldEvents::default(),
            known_dropped: std::sync::atomic::AtomicI64::new(0),
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
            discovering: create::Looks::default(),
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
        let known = feed::Known::end(&mut connection).await?;
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

impl Ledger for PostgresLedger {
    fn is_shared(&self) -> bool {
        true
    }

    fn find_new_events(&self) -> LedgerFuture<'_, Result<(), ReadError>> {
        Box::pin(async move { Ok(self.parts.find_new_events().await?) })
    }

    fn transact(&self, transaction: Transaction) -> LedgerFuture<'_, Result<Done, Rejection>> {
        Box::pin(self.parts.route(transaction))
    }

    fn hold(&self, hold: HoldId) -> LedgerFuture<'_, Result<Option<Hold>, ReadError>> {
        Box::pin(async move { Ok(reads::hold(&self.parts.context, hold).await?) })
    }

    fn booking(&self, booking: BookingId) -> LedgerFuture<'_, Result<Option<Booking>, ReadError>> {
        Box::pin(async move { Ok(reads::booking(&self.parts.context, booking).await?) })
    }

    fn holds_of(
        &self,
        holder: Holder,
        before: Option<HoldId>,
        limit: usize,
    ) -> LedgerFuture<'_, Result<Vec<Hold>, ReadError>> {
        Box::pin(
            async move { Ok(reads::holds_of(&self.parts.context, &holder, before, limit).await?) },
        )
    }

    fn bookings_of(
        &self,
        holder: Holder,
        before: Option<BookingId>,
        limit: usize,
    ) -> LedgerFuture<'_, Result<Vec<Booking>, ReadError>> {
        Box::pin(async move {
            Ok(reads::bookings_of(&self.parts.context, &holder, before, limit).await?)
        })
    }

    fn holds_in(
        &self,
        event: EventNo,
        after: Option<HoldId>,
        limit: usize,
    ) -> LedgerFuture<'_, Result<Vec<Hold>, ReadError>> {
        Box::pin(
            async move { Ok(reads::holds_in(&self.parts.context, event, after, limit).await?) },
        )
    }

    fn bookings_in(
        &self,
        event: EventNo,
        after: Option<BookingId>,
        limit: usize,
    ) -> LedgerFuture<'_, Result<Vec<Booking>, ReadError>> {
        Box::pin(
            async move { Ok(reads::bookings_in(&self.parts.context, event, after, limit).await?) },
        )
    }

    fn take_effects(
        &self,
        keep: Span,
        limit: usize,
    ) -> LedgerFuture<'_, Result<Vec<OpenEffect>, ReadError>> {
        Box::pin(async move { Ok(reads::take_effects(&self.parts.context, keep, limit).await?) })
    }

    fn overdue_effects(
        &self,
        before: Timestamp,
        limit: usize,
    ) -> LedgerFuture<'_, Result<Vec<OpenEffect>, ReadError>> {
        Box::pin(
            async move { Ok(reads::overdue_effects(&self.parts.context, before, limit).await?) },
        )
    }

    fn unsettled(
        &self,
        before: Timestamp,
        after: Option<MadeAt>,
        limit: usize,
    ) -> LedgerFuture<'_, Result<Vec<Booking>, ReadError>> {
        Box::pin(
            async move { Ok(reads::unsettled(&self.parts.context, before, after, limit).await?) },
        )
    }

    fn unit_history(
        &self,
        event: EventNo,
        unit: UnitNo,
        limit: usize,
    ) -> LedgerFuture<'_, Result<Vec<Commit>, ReadError>> {
        Box::pin(async move {
            Ok(reads::unit_history(&self.parts.context, (event, unit), limit).await?)
        })
    }

    fn commits_after(
        &self,
        event: EventNo,
        after: Seq,
        limit: usize,
    ) -> LedgerFuture<'_, Result<Vec<Commit>, ReadError>> {
        Box::pin(async move {
            Ok(reads::commits_after(&self.parts.context, (event, after), limit).await?)
        })
    }

    fn history(&self, event: EventId) -> LedgerFuture<'_, Result<History, ReadError>> {
        Box::pin(async move { reads::history(&self.parts.context, &event).await })
    }

    fn drop_event(
        &self,
        event: EventNo,
        keep: Span,
        origin: Origin,
    ) -> LedgerFuture<'_, Result<Timestamp, Rejection>> {
        Box::pin(self.parts.drop_event(event, keep, origin))
    }

    fn clear_dropped(&self) -> LedgerFuture<'_, Result<bool, Rejection>> {
        Box::pin(async move {
            let cleared = self.parts.context.clear_dropped().await;
            cleared.map_err(|failure| failure.rejection())
        })
    }

    fn keys(&self) -> LedgerFuture<'_, Result<Vec<ApiKey>, ReadError>> {
        Box::pin(async move { Ok(reads::keys(&self.parts.context).await?) })
    }

    fn add_key(&self, key: ApiKey) -> LedgerFuture<'_, Result<(), Rejection>> {
        Box::pin(async move {
            let added = reads::add_key(&self.parts.context, &key).await;
            added.map_err(|failure| failure.rejection())
        })
    }

    fn revoke_key(&self, key: KeyId, at: Timestamp) -> LedgerFuture<'_, Result<bool, Rejection>> {
        Box::pin(async move {
            let revoked = reads::revoke_key(&self.parts.context, key, at).await;
            revoked.map_err(|failure| failure.rejection())
        })
    }

    fn webhooks(&self) -> &dyn Webhooks {
        self
    }

    fn master_keys(&self) -> Vec<MasterKey> {
        self.masters.clone()
    }

    fn now(&self) -> Timestamp {
        self.parts.context.time.now()
    }

    fn is_writable(&self) -> bool {
        self.parts.context.is_open() && self.parts.context.is_reachable()
    }

    fn close(&self) -> LedgerFuture<'_, ()> {
        self.parts.context.open.store(false, Ordering::Release);
        self.shutdown.cancel();
        for slot in self.parts.context.catalogue.all() {
            slot.close();
        }
        let tasks = std::mem::take(&mut *self.parts.tasks());
        Box::pin(async move {
            finish(tasks).await;
            // What is stored and shown stays readable.
            if let Err(failure) = tasks::push_clock(&self.parts.context).await {
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
