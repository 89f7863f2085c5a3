//! Who may come in: API keys and shoppers' sessions.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use soldonce_core::{Rejection, Span, Text};
use tokio_util::sync::CancellationToken;

use super::{Engine, EngineError};
use crate::caller::Caller;
use crate::keys::{ApiKey, KeyId, Scope, hash_key, mint_key_text};
use crate::ledger::ReadError;
use crate::limits::{KEYS_EVERY_MS, SESSION_MS};
use crate::secret::Session;

impl Engine {
    /// Who a bearer token stands for: an API key or a session; nobody when it is wrong or over.
    pub fn authenticate(&self, token: &str) -> Option<Caller> {
        if token.starts_with("ses_") {
            return self
                .parts
                .secrets
                .open_session(token, self.now())
                .map(Caller::Shopper);
        }
        let keys = self
            .parts
            .keys
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        // Looked up by its hash: timing tells nothing about the key's text.
        let key = keys
            .get(&hash_key(token))
            .filter(|key| key.revoked_at.is_none())?;
        Some(Caller::Key {
            id: key.id,
            scopes: key.scopes.as_slice().into(),
        })
    }

    /// A new session for a shopper, and its token.
    pub fn open_session(&self) -> (Session, String) {
        let expires_at = self.now().plus(Span::from_ms(SESSION_MS));
        let session = Session::new(self.parts.ids.caller(), expires_at);
        let token = self.parts.secrets.session_token(&session);
        (session, token)
    }

    /// Makes an API key; its text is told here and never again.
    ///
    /// # Errors
    /// `ReadOnly` when it cannot be stored.
    ///
    /// # Cancel safety
    /// Dropped, a key that nobody knows may exist: list and revoke it.
    pub async fn create_key(
        &self,
        name: Text,
        scopes: Vec<Scope>,
    ) -> Result<(ApiKey, String), EngineError> {
        let text = mint_key_text(&*self.parts.world.entropy);
        let key = self.adopt_key(name, scopes, &text).await?;
        Ok((key, text))
    }

    /// Makes an API key of a text that the operator chose.
    ///
    /// # Errors
    /// `ReadOnly` when it cannot be stored.
    ///
    /// # Cancel safety
    /// Dropped, the key may exist: repeat.
    pub async fn adopt_key(
        &self,
        name: Text,
        scopes: Vec<Scope>,
        text: &str,
    ) -> Result<ApiKey, EngineError> {
        let hash = hash_key(text);
        if let Some(known) = self.keys().into_iter().find(|key| key.hash == hash) {
            return Ok(known);
        }
        let (id, created_at) = (self.parts.ids.caller(), self.now());
        let key = ApiKey {
            id,
            name,
            scopes,
            hash,
            created_at,
            revoked_at: None,
        };
        self.parts.ledger.add_key(key.clone()).await?;
        // Another server may have adopted the same text at the same time: one of the two counts.
        self.refresh_keys().await?;
        let stored = self.keys().into_iter().find(|key| key.hash == hash);
        Ok(stored.unwrap_or(key))
    }

    /// Reads the API keys again: on a ledger that many servers share, others make and revoke them.
    ///
    /// # Errors
    /// [`ReadError`] when they cannot be read; then those known before stay.
    ///
    /// # Cancel safety
    /// Dropped, those known before stay.
    pub async fn refresh_keys(&self) -> Result<(), ReadError> {
        let keys = self.parts.ledger.keys().await?;
        *self.keys_mut() = keys.into_iter().map(|key| (key.hash, key)).collect();
        Ok(())
    }

    /// Every API key, oldest first, revoked ones too.
    pub fn keys(&self) -> Vec<ApiKey> {
        let keys = self
            .parts
            .keys
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        let mut keys: Vec<ApiKey> = keys.values().cloned().collect();
        keys.sort_by_key(|key| key.id);
        keys
    }

    /// Revokes an API key; whether there was one to revoke.
    ///
    /// # Errors
    /// `ReadOnly` when it cannot be stored.
    ///
    /// # Cancel safety
    /// Dropped, the key may be revoked in the ledger and still work here: repeat.
    pub async fn revoke_key(&self, id: KeyId) -> Result<bool, Rejection> {
        let at = self.now();
        let revoked = self.parts.ledger.revoke_key(id, at).await?;
        for key in self.keys_mut().values_mut().filter(|key| key.id == id) {
            key.revoked_at.get_or_insert(at);
        }
        Ok(revoked)
    }
}

/// Reads the API keys again every second until `shutdown`, so that a key that was revoked through
/// another server is soon refused here.
///
/// # Cancel safety
/// Dropped between two reads it leaves nothing half done.
pub async fn run_key_watch(engine: Engine, shutdown: CancellationToken) {
    let clock = Arc::clone(&engine.world().clock);
    loop {
        let next = clock.boot().plus(Duration::from_millis(KEYS_EVERY_MS));
        let wait = clock.sleep_until(next);
        if shutdown.run_until_cancelled(wait).await.is_none() {
            return;
        }
        if let Err(error) = engine.refresh_keys().await {
            tracing::debug!(%error, "the API keys could not be read again");
        }
    }
}
