//! The interface to the one source of truth. A ledger takes whole commands, never get and put, so
//! that check-then-act cannot be written against it. It makes the decisions of `core` durable and
//! answers only then.

#[macro_use]
pub(crate) mod rows;

mod batch;
mod clock;
mod corrected;
mod dropped;
mod migrated;
mod named;
pub mod postgres;
pub mod sqlite;
mod stored_keys;
pub mod verify;
mod webhooks;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

pub(crate) use clock::AgeClock;
pub use corrected::ClockCorrected;
pub use dropped::{Tombstone, TombstoneBody};
pub use migrated::Migrated;
pub(crate) use named::{NamedIds, Subject, named, subject};
pub(crate) use webhooks::require_room;
pub use webhooks::{AddOutcome, NewEndpoint, Webhooks};

use soldonce_core::{
    Answer, Applied, Booking, BookingId, Command, Commit, Effect, EventId, EventNo, History, Hold,
    HoldId, Holder, Inventory, Origin, Rejection, Seq, Span, Timestamp, UnitNo,
};

use crate::keys::{ApiKey, KeyId};
use crate::reply::StoredReply;

/// What every call on a ledger returns. Dropping it does not undo a call that has been accepted.
pub type LedgerFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What a call that only reads returns.
///
/// # Errors
/// [`ReadError`] when the store cannot be read.
pub type Read<'a, T> = LedgerFuture<'a, Result<T, ReadError>>;

/// What a call that writes returns. Its errors are those of [`Ledger::transact`] if it names none.
pub type Write<'a, T> = LedgerFuture<'a, Result<T, Rejection>>;

/// Sixteen bytes of SHA-256 over caller, route and key: the name of an idempotency record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ScopedKey(pub [u8; 16]);

/// Sixteen bytes of SHA-256 over path and body: which request a key was used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint(pub [u8; 16]);

/// An idempotency key as the ledger sees it (model.md 8).
#[derive(Clone, Copy, Debug)]
pub struct RequestKey {
    /// The hash of caller, route and key.
    pub scoped: ScopedKey,
    /// The hash of the request it was used for.
    pub fingerprint: Fingerprint,
}

/// One command on its way to the ledger.
#[derive(Clone, Debug)]
pub struct Transaction {
    /// The caller and the id of its request.
    pub origin: Origin,
    pub command: Command,
    /// The idempotency key that is stored in the commit of the effect, if the caller sent one.
    pub key: Option<RequestKey>,
    /// For a new event: the chart document as the caller sent it, which the ledger stores.
    pub chart: Option<Arc<[u8]>>,
}

/// What the ledger did.
#[derive(Clone, Debug)]
pub enum Done {
    /// The command was decided now.
    Fresh {
        answer: Answer,
        /// The commit number of the event, if anything changed.
        seq: Option<Seq>,
    },
    /// The same request was decided before: its answer again.
    Replayed(StoredReply),
}

impl Done {
    /// Wraps an answer that has no feed number.
    pub(crate) const fn unnumbered(answer: Answer) -> Self {
        Self::Fresh { answer, seq: None }
    }
}

/// The one source of truth of a deployment.
pub trait Ledger: Send + Sync + 'static {
    /// Decides a command and makes it durable.
    ///
    /// # Errors
    /// The rejection of `core`; `IdempotencyKeyReused`; `Overloaded` when too much waits;
    /// `ReadOnly` when the ledger can store nothing, `ShuttingDown` when it is closed: then nothing
    /// was done, as with `MemoryMismatch`, after which this server accepts no more commands;
    /// `OutcomeUnknown` when it did not answer: a retry with the same key tells.
    ///
    /// # Cancel safety
    /// If the future is dropped, the command may still be carried out.
    fn transact(&self, transaction: Transaction) -> Write<'_, Done>;

    /// Reads a hold as it is stored; none if there is no such hold.
    fn hold(&self, hold: HoldId) -> Read<'_, Option<Hold>>;

    /// Reads a booking with its lines as it is stored; none if there is no such booking.
    fn booking(&self, booking: BookingId) -> Read<'_, Option<Booking>>;

    /// Reads holds of a holder that are not over, newest first; some of them may have just ended.
    fn holds_of(&self, holder: Holder, page: Page<HoldId>) -> Read<'_, Vec<Hold>>;

    /// Reads bookings of a holder, newest first.
    fn bookings_of(&self, holder: Holder, page: Page<BookingId>) -> Read<'_, Vec<Booking>>;

    /// Reads holds of an event, in the order of ids.
    fn holds_in(&self, event: EventNo, page: Page<HoldId>) -> Read<'_, Vec<Hold>>;

    /// Reads bookings of an event, in the order of ids.
    fn bookings_in(&self, event: EventNo, page: Page<BookingId>) -> Read<'_, Vec<Booking>>;

    /// Takes the oldest open effect of each booking, at most `limit`, to be done at the provider.
    /// They are reserved for the caller for `keep`; other servers do not get them meanwhile.
    fn take_effects(&self, keep: Span, limit: usize) -> Read<'_, Vec<OpenEffect>>;

    /// Reads the oldest open effect of each booking, if it was stored before `before`; also those
    /// that other servers have reserved. This reserves nothing.
    fn overdue_effects(&self, before: Timestamp) -> Read<'_, Vec<OpenEffect>>;

    /// Reads bookings made before `before` whose payment has not ended, or whose money must go
    /// back, oldest first.
    fn unsettled(&self, before: Timestamp, page: Page<MadeAt>) -> Read<'_, Vec<Booking>>;

    /// Reads the newest `limit` transitions of a unit, oldest first.
    fn unit_history(&self, event: EventNo, unit: UnitNo, limit: usize) -> Read<'_, Vec<Commit>>;

    /// Reads all commits of an event, for the auditor.
    ///
    /// # Errors
    /// [`ReadError`] when the store cannot be read, or there is no such event.
    fn history(&self, event: EventId) -> Read<'_, History>;

    /// Drops an event that is over for `keep` and at least [`DROP_AFTER_MS_MIN`]; returns when.
    /// From then on nothing of it is shown or changed; [`Ledger::clear_dropped`] deletes its rows.
    ///
    /// [`DROP_AFTER_MS_MIN`]: soldonce_core::limits::DROP_AFTER_MS_MIN
    ///
    /// # Errors
    /// `EventNotOver`, `EventInUse`, `EventDropped`, and those of the store as [`Ledger::transact`].
    ///
    /// # Cancel safety
    /// If the future is dropped, the event may still be dropped.
    fn drop_event(&self, event: EventNo, keep: Span, origin: Origin) -> Write<'_, Timestamp>;

    /// Deletes some rows of dropped events in one transaction; returns whether there may be more.
    ///
    /// # Errors
    /// Those of the store as [`Ledger::transact`].
    ///
    /// # Cancel safety
    /// If the future is dropped, the rows may still be deleted.
    fn clear_dropped(&self) -> Write<'_, bool>;

    /// Reads every API key, revoked ones too.
    fn keys(&self) -> Read<'_, Vec<ApiKey>>;

    /// Stores a new API key.
    ///
    /// # Errors
    /// `ReadOnly` when it cannot be stored.
    fn add_key(&self, key: ApiKey) -> Write<'_, ()>;

    /// Revokes an API key; returns whether there was one to revoke. The last one with scope `admin`
    /// is not revoked, also when two are revoked at once.
    ///
    /// # Errors
    /// `ReadOnly` when it cannot be stored.
    fn revoke_key(&self, key: KeyId, at: Timestamp) -> Write<'_, bool>;

    /// Returns the part of the ledger that keeps webhook endpoints and deliveries.
    fn webhooks(&self) -> &dyn Webhooks;

    /// Returns the secrets from which hold secrets and sessions are derived, newest first. They are
    /// made with the ledger and stored in it.
    fn master_keys(&self) -> Vec<MasterKey>;

    /// Reads the ledger's clock, which never goes back (T1).
    fn now(&self) -> Timestamp;

    /// Tells whether other servers write to the same store: then this server's memory may be stale,
    /// and only a refusal by [`Ledger::transact`] is final.
    fn is_shared(&self) -> bool {
        false
    }

    /// Looks for events that other servers created and this one does not know yet. Concurrent
    /// callers share one query.
    fn find_new_events(&self) -> Read<'_, ()> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Tells whether commands are accepted, as far as this server knows without asking the store.
    fn is_writable(&self) -> bool;

    /// Stops accepting commands, finishes those that wait, and closes the store.
    fn close(&self) -> LedgerFuture<'_, ()>;
}

/// A page of a list: what comes behind this key in the order of the list, or its begin if there is
/// none; and the most rows.
pub type Page<Key> = (Option<Key>, usize);

/// The sort key of a booking among all of them: when it was made, and its id.
pub type MadeAt = (Timestamp, BookingId);

/// A call to the payment provider that a commit asked for and that is not reported as done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenEffect {
    pub effect: Effect,
    pub at: Timestamp,
}

/// Payments and refunds of a ledger that have not ended.
#[derive(Clone, Debug, Default)]
pub struct OpenMoney {
    /// Bookings whose payment has not ended, or whose money must go back.
    pub unsettled: Vec<Booking>,
    /// Calls to the payment provider that are not done, with their bookings.
    pub steps: Vec<(Booking, Effect)>,
}

/// A secret of the ledger, with its version.
#[derive(Clone)]
pub struct MasterKey {
    pub version: u32,
    /// 256 random bits.
    pub secret: Arc<secrecy::SecretBox<[u8; 32]>>,
}

/// Why a read failed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ReadError {
    /// The store cannot be reached now; a retry may succeed.
    #[error("the ledger cannot be reached: {0}")]
    Away(String),
    /// Too many reads wait for the store already.
    #[error("the ledger is busy: {0}")]
    Full(String),
    /// The store cannot be read, or has illegal values: a retry will not help.
    #[error("the ledger cannot be read: {0}")]
    Failed(String),
}

/// Is told of every commit, after it is durable and before it is answered. Ignores what it does not implement.
pub trait Observer: Send + Sync + 'static {
    /// Starts from the state of a ledger that has just opened.
    fn opened(&self, _inventory: &Inventory) {}

    /// Receives the hash of an event's audit up to its newest commit, before the commits that it covers.
    fn chained(&self, _event: EventNo, _hash: &[u8; 32]) {}

    /// Receives commands that were made durable, in this order.
    fn committed(&self, _inventory: &Inventory, _applied: &[Applied]) {}

    /// Receives commands that were made durable in a ledger that numbers its commits afterwards:
    /// the numbers they carry are this process's own.
    fn stored_unnumbered(&self, inventory: &Inventory, applied: &[Applied]) {
        self.committed(inventory, applied);
    }

    /// Notes that another server may have changed the event itself in `inventory`.
    fn event_changed(&self, _inventory: &Inventory, _event: EventNo) {}

    /// Notes that an event was dropped: nothing of it may be shown any more.
    fn event_dropped(&self, _event: EventNo, _id: &EventId) {}

    /// Notes that an event cannot be read: what is asked of it is refused.
    fn event_unreadable(&self, _event: EventNo, _id: &EventId) {}

    /// Notes that other servers changed these units; `inventory` has their new state.
    fn refreshed(&self, _inventory: &Inventory, _event: EventNo, _units: &[UnitNo]) {}

    /// Receives commits that got their numbers, dense and in order for each event.
    fn numbered(&self, _commits: &[Commit]) {}

    /// Notes that a batch of so many commands took this time to become durable.
    fn batch(&self, _commands: usize, _commit: std::time::Duration) {}

    /// Notes the age of the oldest commit without a number, while the database is away the greatest that
    /// it can have, and the process of the database whose transaction is the oldest that writes: of this user, else
    /// one of the cluster that is left open.
    fn feed_lag(&self, _behind: std::time::Duration, _process: Option<i32>) {}

    /// Notes that the store refused what memory had of an event: the event is read again; on
    /// SQLite the ledger stops.
    fn distrusted(&self) {}

    /// Notes that the ledger failed to store and accepts no more commands.
    fn failed(&self, _why: &str) {}
}
