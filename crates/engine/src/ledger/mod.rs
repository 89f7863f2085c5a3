//! The seam to the one source of truth. A ledger takes whole commands, never get and put, so that
//! check-then-act cannot be written against it. It makes the decisions of `core` durable and answers
//! only then.

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

pub use corrected::ClockCorrected;
pub use dropped::{Tombstone, TombstoneBody};
pub use migrated::Migrated;
pub(crate) use named::named;
pub(crate) use webhooks::require_room;
pub use webhooks::{Added, NewEndpoint, Webhooks};

use soldonce_core::{
    Answer, Applied, Booking, BookingId, Command, Commit, Effect, EventId, EventNo, History, Hold,
    HoldId, Holder, Inventory, Origin, Rejection, Seq, Span, Timestamp, UnitNo,
};

use crate::keys::{ApiKey, KeyId};
use crate::reply::StoredReply;

/// What every call on a ledger returns. Dropping it does not undo what the ledger already took.
pub type LedgerFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What a call that only reads returns.
///
/// # Errors
/// [`ReadError`] when the store cannot be read.
pub type Read<'a, T> = LedgerFuture<'a, Result<T, ReadError>>;

/// What a call that changes something returns; its errors are those of [`Ledger::transact`], if it says nothing else.
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
    /// Whose key, on which route.
    pub scoped: ScopedKey,
    /// For which request.
    pub fingerprint: Fingerprint,
}

/// One command on its way to the ledger.
#[derive(Clone, Debug)]
pub struct Transaction {
    /// Who asked and in which request.
    pub origin: Origin,
    pub command: Command,
    /// The record that is committed with the effect, if the caller sent a key.
    pub key: Option<RequestKey>,
    /// For a new event: the chart as it was given, which the ledger keeps.
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
    /// An answer without a feed number.
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
    /// `ReadOnly` when the ledger can store nothing, `ShuttingDown` when it is closed: then nothing was
    /// done, as with `MemoryMismatch`, after which this server takes no more commands; `OutcomeUnknown` when
    /// it did not answer: the same key asked again tells.
    ///
    /// # Cancel safety
    /// Dropped, the command may still be carried out.
    fn transact(&self, transaction: Transaction) -> Write<'_, Done>;

    /// A hold as it is stored.
    fn hold(&self, hold: HoldId) -> Read<'_, Option<Hold>>;

    /// A booking as it is stored.
    fn booking(&self, booking: BookingId) -> Read<'_, Option<Booking>>;

    /// The newest holds of a holder that are not over and older than `before`, at most `limit`; among
    /// them may be some that have just ended.
    fn holds_of(&self, holder: Holder, before: Option<HoldId>, limit: usize)
    -> Read<'_, Vec<Hold>>;

    /// The newest bookings of a holder that are older than `before`, at most `limit`.
    fn bookings_of(
        &self,
        holder: Holder,
        before: Option<BookingId>,
        limit: usize,
    ) -> Read<'_, Vec<Booking>>;

    /// The holds of an event after an id, in the order of their ids, at most `limit`.
    fn holds_in(&self, event: EventNo, after: Option<HoldId>, limit: usize) -> Read<'_, Vec<Hold>>;

    /// The bookings of an event after an id, in the order of their ids, at most `limit`.
    fn bookings_in(
        &self,
        event: EventNo,
        after: Option<BookingId>,
        limit: usize,
    ) -> Read<'_, Vec<Booking>>;

    /// What is to be done outside next: the oldest effect of each booking, at most `limit`. Those it
    /// gives are reserved for the caller for `keep`; other servers do not get them meanwhile.
    fn take_effects(&self, keep: Span, limit: usize) -> Read<'_, Vec<OpenEffect>>;

    /// What is to be done outside next, also by other servers, and was left to be done before `before`:
    /// the oldest effect of each booking, at most `limit`. This reserves nothing.
    fn overdue_effects(&self, before: Timestamp, limit: usize) -> Read<'_, Vec<OpenEffect>>;

    /// Bookings made before `before` whose payment is not at its end, or whose money must go back: oldest first,
    /// those behind `after`, at most `limit`.
    fn unsettled(
        &self,
        before: Timestamp,
        after: Option<MadeAt>,
        limit: usize,
    ) -> Read<'_, Vec<Booking>>;

    /// The newest `limit` transitions of a unit, oldest first.
    fn unit_history(&self, event: EventNo, unit: UnitNo, limit: usize) -> Read<'_, Vec<Commit>>;

    /// Everything that happened in an event, for the auditor.
    ///
    /// # Errors
    /// [`ReadError`] when the store cannot be read, or there is no such event.
    fn history(&self, event: EventId) -> Read<'_, History>;

    /// Drops an event that is over for `keep` and at least [`DROP_AFTER_MS_MIN`]; gives when that was. From then
    /// on nothing of it is shown or changed; its rows are deleted by [`Ledger::clear_dropped`].
    ///
    /// [`DROP_AFTER_MS_MIN`]: soldonce_core::limits::DROP_AFTER_MS_MIN
    ///
    /// # Errors
    /// `EventNotOver`, `EventInUse`, `EventDropped`, and those of the store as [`Ledger::transact`].
    ///
    /// # Cancel safety
    /// Dropped, the event may be dropped.
    fn drop_event(&self, event: EventNo, keep: Span, origin: Origin) -> Write<'_, Timestamp>;

    /// Deletes some rows of dropped events in one transaction; whether there may be more.
    ///
    /// # Errors
    /// Those of the store as [`Ledger::transact`].
    ///
    /// # Cancel safety
    /// Dropped, they may be deleted.
    fn clear_dropped(&self) -> Write<'_, bool>;

    /// Every API key, revoked ones too.
    fn keys(&self) -> Read<'_, Vec<ApiKey>>;

    /// Stores a new API key.
    ///
    /// # Errors
    /// `ReadOnly` when it cannot be stored.
    fn add_key(&self, key: ApiKey) -> Write<'_, ()>;

    /// Revokes an API key; whether there was one to revoke. The last one with scope `admin` stays, also
    /// when two are revoked at once.
    ///
    /// # Errors
    /// `ReadOnly` when it cannot be stored.
    fn revoke_key(&self, key: KeyId, at: Timestamp) -> Write<'_, bool>;

    /// Where news of commits goes.
    fn webhooks(&self) -> &dyn Webhooks;

    /// The secrets from which hold secrets and sessions are derived, newest first. Made with the
    /// ledger and kept in it.
    fn master_keys(&self) -> Vec<MasterKey>;

    /// The ledger's time now: never goes back (T1).
    fn now(&self) -> Timestamp;

    /// Whether other servers write to the same store: then what this one remembers may be old, and
    /// only [`Ledger::transact`] refuses for good.
    fn is_shared(&self) -> bool {
        false
    }

    /// Looks for events that other servers created and this one does not know yet. Concurrent callers
    /// share one look at the store.
    fn find_new_events(&self) -> Read<'_, ()> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Whether commands are taken, as far as this server knows without asking.
    fn is_writable(&self) -> bool;

    /// Stops taking commands, finishes those that wait, closes the store.
    fn close(&self) -> LedgerFuture<'_, ()>;
}

/// Where a booking stands among all of them: when it was made, and its id.
pub type MadeAt = (Timestamp, BookingId);

/// What a commit left to be done outside, and is not reported as done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenEffect {
    pub effect: Effect,
    pub at: Timestamp,
}

/// What a ledger has of money that is still on its way.
#[derive(Clone, Debug, Default)]
pub struct OpenMoney {
    /// Bookings whose payment is not at its end, or whose money must go back.
    pub unsettled: Vec<Booking>,
    /// Steps at the provider that are not done, with their bookings.
    pub steps: Vec<(Booking, Effect)>,
}

/// A secret of the ledger, with its version.
#[derive(Clone)]
pub struct MasterKey {
    pub version: u32,
    /// 256 random bits.
    pub secret: Arc<secrecy::SecretBox<[u8; 32]>>,
}

/// Why the store told nothing.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ReadError {
    /// It cannot be reached now.
    #[error("the ledger cannot be reached: {0}")]
    Away(String),
    /// Too much waits for it already.
    #[error("the ledger is busy: {0}")]
    Full(String),
    /// It cannot be read, or what was read cannot be: no time will fix it.
    #[error("the ledger cannot be read: {0}")]
    Failed(String),
}

/// Who must know of every commit, after it is durable and before it is answered.
pub trait Observer: Send + Sync + 'static {
    /// The ledger is open and has this state.
    fn opened(&self, inventory: &Inventory);

    /// These commands were made durable, in this order.
    fn committed(&self, inventory: &Inventory, applied: &[Applied]);

    /// These commands were made durable in a ledger that numbers its commits afterwards: the
    /// numbers they carry are this process's own.
    fn stored_unnumbered(&self, inventory: &Inventory, applied: &[Applied]) {
        self.committed(inventory, applied);
    }

    /// Another server may have changed this event's policy or state; the inventory knows.
    fn event_changed(&self, _inventory: &Inventory, _event: EventNo) {}

    /// This event was dropped: nothing of it is to be shown any more.
    fn event_dropped(&self, _event: EventNo, _id: &EventId) {}

    /// Other servers changed these units; the inventory knows.
    fn refreshed(&self, _inventory: &Inventory, _event: EventNo, _units: &[UnitNo]) {}

    /// These commits got their numbers, dense and in order for each event.
    fn numbered(&self, _commits: &[Commit]) {}

    /// A batch of commands took so long to become durable.
    fn batch(&self, commands: usize, commit: std::time::Duration);

    /// The oldest commit that has no number is so old; a transaction of this process of the database is the
    /// oldest that writes.
    fn feed_lag(&self, _behind: std::time::Duration, _process: Option<i32>) {}

    /// The store refused what this server remembered of an event, which is read anew.
    fn distrusted(&self) {}

    /// The ledger failed to store and takes no more commands.
    fn failed(&self, why: &str);
}
