//! Webhook endpoints and the log of what was delivered to them, for staff.

mod deliver;

use soldonce_core::{Invalid, Rejection, Span, Timestamp};

use super::{Engine, EngineError, Reply};
use crate::ledger::{AddOutcome, NewEndpoint, RequestKey};
use crate::limits::{LIST_MAX, WEBHOOK_OLD_SECRET_MS};
use crate::webhook::address::Destinations;
use crate::webhook::{
    Delivery, Endpoint, EndpointChange, EndpointId, Kinds, MessageId, Sender, secret_text,
};

pub use deliver::run_webhooks;

impl Engine {
    /// Returns the engine with a sender of messages. A sender that was set before stays.
    #[must_use]
    pub fn posted_by(self, sender: Sender) -> Self {
        self.parts.sender.set(sender).ok();
        self
    }

    /// Returns the sender of messages, if one is set.
    pub fn sender(&self) -> Option<&Sender> {
        self.parts.sender.get()
    }

    /// Lists every webhook endpoint, oldest first.
    ///
    /// # Errors
    /// `Read` when they cannot be read.
    pub async fn endpoints(&self) -> Result<Vec<Endpoint>, EngineError> {
        Ok(self.parts.ledger.webhooks().endpoints().await?)
    }

    /// Creates an endpoint, which is sent the messages of its kinds about every commit from now on.
    /// The reply has its signing secret, which is returned by [`Engine::rotate_endpoint`], too, and
    /// by nothing else. With an idempotency key the same request gives the same reply, the first
    /// secret included.
    ///
    /// # Errors
    /// `Invalid` when nothing may be sent to this URL, or there are too many endpoints;
    /// `IdempotencyKeyReused`; `Overloaded` when it must be tried again; `ReadOnly`.
    ///
    /// # Cancel safety
    /// Dropped, an endpoint whose secret is lost may exist: repeat with the same key, or list and
    /// delete it.
    pub async fn add_endpoint(
        &self,
        url: &str,
        kinds: Kinds,
        key: Option<RequestKey>,
    ) -> Result<Reply, EngineError> {
        let sender = self.sender();
        let destinations = sender.map_or(Destinations::Public, Sender::destinations);
        let allowed = destinations.require(url);
        let understood =
            allowed.map_err(|problem| Rejection::from(Invalid::new("url", problem.to_string())))?;
        let endpoint = Endpoint {
            id: EndpointId::from_bytes(self.parts.ids.bits().to_be_bytes()),
            url: understood.into(),
            kinds,
            rotation: 0,
            rotated_at: None,
            created_at: self.now(),
            disabled_at: None,
            quiet_until: None,
        };
        let new = NewEndpoint::new(endpoint, key);
        let stored = new.reply.clone();
        let (stored, replayed) = match self.parts.ledger.webhooks().add_endpoint(new).await? {
            AddOutcome::Stored => (stored, false),
            AddOutcome::Replayed(first) => (first, true),
        };
        Ok(Reply {
            replayed,
            ..self.answered(stored)
        })
    }

    /// Gives an endpoint another signing secret. The two before sign too for a day. `None` if there
    /// is no such endpoint.
    ///
    /// # Errors
    /// `ReadOnly`.
    ///
    /// # Cancel safety
    /// Dropped, the secret may have changed: repeat.
    pub async fn rotate_endpoint(
        &self,
        endpoint: EndpointId,
    ) -> Result<Option<(Endpoint, String)>, EngineError> {
        let rotated = self.change_endpoint(endpoint, EndpointChange::Rotate);
        Ok(rotated.await?.map(|endpoint| {
            let secrets = self.secrets_of(&endpoint, endpoint.created_at);
            let secret = secrets.first().map(secret_text).unwrap_or_default();
            (endpoint, secret)
        }))
    }

    /// Changes an endpoint; returns it as it is then, or was at last. `None` if there is none.
    ///
    /// # Errors
    /// `ReadOnly`.
    ///
    /// # Cancel safety
    /// Dropped, it may be changed: repeat.
    pub async fn change_endpoint(
        &self,
        endpoint: EndpointId,
        change: EndpointChange,
    ) -> Result<Option<Endpoint>, EngineError> {
        let webhooks = self.parts.ledger.webhooks();
        Ok(webhooks.change_endpoint(endpoint, change).await?)
    }

    /// Lists the deliveries of an endpoint below number `before`, newest first, at most
    /// [`LIST_MAX`]. `None` if there is no such endpoint.
    ///
    /// # Errors
    /// `Read` when they cannot be read.
    pub async fn deliveries(
        &self,
        endpoint: EndpointId,
        before: Option<i64>,
        limit: usize,
    ) -> Result<Option<Vec<Delivery>>, EngineError> {
        if !self.has_endpoint(endpoint).await? {
            return Ok(None);
        }
        let (webhooks, page) = (self.parts.ledger.webhooks(), (before, limit.min(LIST_MAX)));
        Ok(Some(webhooks.deliveries(endpoint, page).await?))
    }

    /// Delivers a message to an endpoint again, at once and with all attempts. `None` if the log
    /// does not have it.
    ///
    /// # Errors
    /// `ReadOnly`.
    ///
    /// # Cancel safety
    /// Dropped, it may be delivered again.
    pub async fn resend(
        &self,
        endpoint: EndpointId,
        message: MessageId,
    ) -> Result<Option<Delivery>, EngineError> {
        if !self.has_endpoint(endpoint).await? {
            return Ok(None);
        }
        let webhooks = self.parts.ledger.webhooks();
        Ok(webhooks.resend(endpoint, message).await?)
    }

    async fn has_endpoint(&self, endpoint: EndpointId) -> Result<bool, EngineError> {
        let all = self.endpoints().await?;
        Ok(all.iter().any(|known| known.id == endpoint))
    }

    /// Derives the signing secrets that are valid at `now`, newest first.
    fn secrets_of(&self, endpoint: &Endpoint, now: Timestamp) -> Vec<[u8; 32]> {
        let secrets = &self.parts.secrets;
        let mut all = secrets.of_endpoint(endpoint.id, endpoint.rotation);
        let old = Span::from_ms(WEBHOOK_OLD_SECRET_MS);
        if endpoint.rotated_at.is_some_and(|at| now < at.plus(old)) {
            // Two: a rotation whose answer was lost is asked for again, and the receiver has the one before both.
            let before = (1..=2).filter_map(|back| endpoint.rotation.checked_sub(back));
            all.extend(before.flat_map(|rotation| secrets.of_endpoint(endpoint.id, rotation)));
        }
        all
    }
}
