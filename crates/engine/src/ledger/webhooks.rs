//! The part of a ledger that keeps webhook endpoints and what is on its way to them. Messages come into
//! it with the commits that they tell of; nothing else writes any.

use soldonce_core::{Invalid, Rejection, Span, Timestamp};

use super::{Read, RequestKey, Write};
use crate::limits::WEBHOOK_ENDPOINTS_MAX;
use crate::reply::{self, StoredReply};
use crate::webhook::{
    Attempt, Delivery, DueDelivery, Endpoint, EndpointChange, EndpointId, MessageId,
};

/// An endpoint that is to be stored.
#[derive(Clone, Debug)]
pub struct NewEndpoint {
    /// As it is from then on.
    pub endpoint: Endpoint,
    /// The record that is committed with it, if the caller sent a key.
    pub key: Option<RequestKey>,
    /// What is answered, and answered again to the same key.
    pub reply: StoredReply,
}

impl NewEndpoint {
    /// This endpoint, asked for with this key.
    pub fn new(endpoint: Endpoint, key: Option<RequestKey>) -> Self {
        let reply = reply::endpoint(&endpoint);
        Self {
            endpoint,
            key,
            reply,
        }
    }
}

/// What came of a new endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Added {
    /// It is stored.
    Stored,
    /// The same request made one before: its answer again.
    Replayed(StoredReply),
}

/// Passes when there is room for one more endpoint besides `known`.
pub(crate) fn require_room(known: usize) -> Result<(), Rejection> {
    if known < WEBHOOK_ENDPOINTS_MAX {
        return Ok(());
    }
    let rule = format!("there are {WEBHOOK_ENDPOINTS_MAX} endpoints already: delete one");
    Err(Invalid::new("url", rule).into())
}

/// Endpoints and deliveries, as durable as everything in the ledger.
pub trait Webhooks: Send + Sync {
    /// Every endpoint, oldest first.
    fn endpoints(&self) -> Read<'_, Vec<Endpoint>>;

    /// Stores a new endpoint, and its idempotency record in the same commit. It hears of every commit
    /// after this one, whichever server makes it.
    ///
    /// # Errors
    /// `Invalid` when there are too many; `IdempotencyKeyReused`; `Overloaded` when commands take so long
    /// that it cannot be put between them; `ReadOnly` when it cannot be stored.
    ///
    /// # Cancel safety
    /// Dropped, it may be stored: the same key tells.
    fn add_endpoint(&self, new: NewEndpoint) -> Write<'_, Added>;

    /// Changes an endpoint; gives it as it is afterwards, or was at last. Nothing if there is none.
    /// Enabled, all that waits for it is due at once, with all its attempts.
    ///
    /// # Errors
    /// `ReadOnly` when it cannot be stored.
    fn change_endpoint(
        &self,
        endpoint: EndpointId,
        change: EndpointChange,
        at: Timestamp,
    ) -> Write<'_, Option<Endpoint>>;

    /// What is due now, at most `limit` for each endpoint that takes something now: of each subject the
    /// oldest that is open.
    /// Those it gives are reserved for the caller for `keep`; other servers do not get them meanwhile.
    fn take_deliveries(&self, keep: Span, limit: usize) -> Read<'_, Vec<DueDelivery>>;

    /// Records attempts, and the pauses that their endpoints asked for, in one commit. An attempt at a delivery
    /// that another server took meanwhile, or that is over, is ignored.
    ///
    /// # Errors
    /// `ReadOnly` when it cannot be stored.
    ///
    /// # Cancel safety
    /// Dropped, it may be noted; if not, they are delivered again.
    fn note_attempts(&self, attempts: Vec<Attempt>) -> Write<'_, ()>;

    /// The deliveries of an endpoint below number `before`, newest first, at most `limit`.
    fn deliveries(
        &self,
        endpoint: EndpointId,
        before: i64,
        limit: usize,
    ) -> Read<'_, Vec<Delivery>>;

    /// Opens a delivery again, due at once and with all its attempts; gives it as it is then. Nothing
    /// if the log does not have it.
    ///
    /// # Errors
    /// `ReadOnly` when it cannot be stored.
    fn resend(
        &self,
        endpoint: EndpointId,
        message: MessageId,
        at: Timestamp,
    ) -> Write<'_, Option<Delivery>>;

    /// Takes deliveries out of the log that are over and tell of something before `before`, those that
    /// wait for a disabled endpoint since then, and those of endpoints that are no more; at most `limit`.
    /// Tells how many.
    ///
    /// # Errors
    /// `ReadOnly` when it cannot be stored.
    fn forget_deliveries(&self, before: Timestamp, limit: usize) -> Write<'_, usize>;
}
