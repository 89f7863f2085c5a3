//! The part of a ledger that keeps webhook endpoints and the deliveries to them. A message is
//! stored in the commit that it reports; nothing else writes any.

use soldonce_core::{Invalid, Rejection, Span, Timestamp};

use super::{Page, Read, RequestKey, Write};
use crate::limits::WEBHOOK_ENDPOINTS_MAX;
use crate::reply::{self, StoredReply};
use crate::webhook::{
    Attempt, Delivery, DueDelivery, Endpoint, EndpointChange, EndpointId, MessageId,
};

/// An endpoint that is to be stored.
#[derive(Clone, Debug)]
pub struct NewEndpoint {
    /// The endpoint as it is stored.
    pub endpoint: Endpoint,
    /// The idempotency key that is stored in the same commit, if the caller sent one.
    pub key: Option<RequestKey>,
    /// The reply, which is sent again to the same key.
    pub reply: StoredReply,
}

impl NewEndpoint {
    /// Creates the request to store `endpoint`, with the key that the caller sent.
    pub fn new(endpoint: Endpoint, key: Option<RequestKey>) -> Self {
        let reply = reply::endpoint(&endpoint);
        Self {
            endpoint,
            key,
            reply,
        }
    }
}

/// The outcome of [`Webhooks::add_endpoint`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AddOutcome {
    /// The endpoint is stored now.
    Stored,
    /// The same request stored one before: its reply again.
    Replayed(StoredReply),
}

/// Fails with `Invalid` when `known` endpoints leave no room for one more.
pub(crate) fn require_room(known: usize) -> Result<(), Rejection> {
    if known < WEBHOOK_ENDPOINTS_MAX {
        return Ok(());
    }
    let rule = format!("there are {WEBHOOK_ENDPOINTS_MAX} endpoints already: delete one");
    Err(Invalid::new("url", rule).into())
}

/// Endpoints and deliveries, as durable as everything in the ledger.
pub trait Webhooks: Send + Sync {
    /// Reads every endpoint, oldest first.
    fn endpoints(&self) -> Read<'_, Vec<Endpoint>>;

    /// Stores a new endpoint, and its idempotency record in the same commit. Every later commit is
    /// reported to it, whichever server makes it.
    ///
    /// # Errors
    /// `Invalid` when there are too many; `IdempotencyKeyReused`; `Overloaded` when commands take so long
    /// that it cannot be put between them; `ReadOnly` when it cannot be stored.
    ///
    /// # Cancel safety
    /// If the future is dropped, it may still be stored: a retry with the same key tells.
    fn add_endpoint(&self, new: NewEndpoint) -> Write<'_, AddOutcome>;

    /// Changes an endpoint; returns it as it is then, or was when deleted; `None` if unknown.
    /// When it is enabled, all that waits for it is due at once, with all attempts left.
    ///
    /// # Errors
    /// `ReadOnly` when it cannot be stored.
    fn change_endpoint(&self, id: EndpointId, how: EndpointChange) -> Write<'_, Option<Endpoint>>;

    /// Takes the deliveries that are due now, at most `limit` for each endpoint that accepts some
    /// now: of each subject the oldest open one. They are reserved for the caller for `keep`; other
    /// servers do not get them meanwhile.
    fn take_deliveries(&self, keep: Span, limit: usize) -> Read<'_, Vec<DueDelivery>>;

    /// Records attempts, and the pauses that their endpoints asked for, in one commit. Ignores an
    /// attempt at a delivery that another server took meanwhile, or that is over.
    ///
    /// # Errors
    /// `ReadOnly` when it cannot be stored.
    ///
    /// # Cancel safety
    /// If the future is dropped, the attempts may still be recorded; if not, the messages are
    /// delivered again.
    fn note_attempts(&self, attempts: Vec<Attempt>) -> Write<'_, ()>;

    /// Reads deliveries of an endpoint, newest first; the key is their number.
    fn deliveries(&self, endpoint: EndpointId, page: Page<i64>) -> Read<'_, Vec<Delivery>>;

    /// Opens a delivery again, due at once and with all attempts left; returns it as it is then.
    /// None if the log does not have it.
    ///
    /// # Errors
    /// `ReadOnly` when it cannot be stored.
    fn resend(&self, endpoint: EndpointId, message: MessageId) -> Write<'_, Option<Delivery>>;

    /// Deletes deliveries from the log, at most `limit`: those that are over and report something
    /// before `before`, those that have waited for a disabled endpoint since before then, and those
    /// of deleted endpoints. Returns how many.
    ///
    /// # Errors
    /// `ReadOnly` when it cannot be stored.
    fn forget_deliveries(&self, before: Timestamp, limit: usize) -> Write<'_, usize>;
}
