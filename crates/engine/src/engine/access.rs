//! Authentication of callers: API keys and shoppers' sessions.

use std::sync::Arc;

use soldonce_core::{Invalid, Rejection, Span, Text};
use tokio_util::sync::CancellationToken;

use super::{Engine, EngineError};
use crate::caller::Caller;
use crate::keys::{
    ADOPTED_NAME, ApiKey, KeyId, Revocation, Scope, hash_key, mint_key_text, refuses_name,
};
use crate::ledger::ReadError;
use crate::limits::{KEYS_EVERY_MS, SESSION_MS};
use crate::locks::{read, write};
use crate::pause::pause;
use crate::secret::Session;

/// The admin key of a setting, and the keys that it replaced.
#[derive(Clone, Debug)]
pub struct AdoptedKey {
    pub key: ApiKey,
    /// The keys that the setting named before, now revoked.
    pub ended: Vec<KeyId>,
}

impl Engine {
    /// Finds the caller of an API key or session token; `None` when wrong, revoked or expired.
    pub fn authenticate(&self, token: &str) -> Option<Caller> {
        if token.starts_with("ses_") {
            let session = self.parts.secrets.open_session(token, self.now());
            return session.map(Caller::Shopper);
        }
        let keys = read(&self.parts.keys);
        // Looked up by its hash: timing tells nothing about the key's text.
        let key = keys.get(&hash_key(token));
        let key = key.filter(|key| key.revoked_at.is_none())?;
        Some(Caller::Key {
            id: key.id,
            scopes: key.scopes.as_slice().into(),
        })
    }

    /// Reads the keys again if this token is not known here: another server may have made it a
    /// moment ago. Returns whether it may be known now. Concurrent callers share a reading.
    ///
    /// # Errors
    /// [`ReadError`] when the keys cannot be read.
    ///
    /// # Cancel safety
    /// Dropped, the next caller reads for itself.
    pub async fn look_for_key(&self, token: &str) -> Result<bool, ReadError> {
        let is_shared = self.parts.ledger.is_shared();
        let is_known = || read(&self.parts.keys).contains_key(&hash_key(token));
        if !is_shared || token.starts_with("ses_") || is_known() {
            return Ok(false);
        }
        let readings = &self.parts.key_readings;
        readings.share(self.refresh_keys()).await.map(|()| true)
    }

    /// Creates a session for a shopper; returns it and its token.
    pub fn open_session(&self) -> (Session, String) {
        let expires_at = self.now().plus(Span::from_ms(SESSION_MS));
        let session = Session::new(self.parts.ids.caller(), expires_at);
        let token = self.parts.secrets.session_token(&session);
        (session, token)
    }

    /// Creates an API key; its text is returned here and never again.
    ///
    /// # Errors
    /// `Invalid` for a blank name and for that of keys of the setting; `ReadOnly` when it cannot be stored.
    ///
    /// # Cancel safety
    /// Dropped, a key whose text is lost may exist: list and revoke it.
    pub async fn create_key(
        &self,
        name: Text,
        scopes: Vec<Scope>,
    ) -> Result<(ApiKey, String), EngineError> {
        if let Some(reason) = refuses_name(&name) {
            return Err(Rejection::from(Invalid::new("name", reason.to_owned())).into());
        }
        let text = mint_key_text(&*self.parts.world.entropy);
        Ok((self.store_key(name, scopes, &text).await?, text))
    }

    /// Takes the admin key that the operator chose by a setting, and revokes those that the setting
    /// named before. A key that was revoked stays so.
    ///
    /// # Errors
    /// `ReadOnly` when it cannot be stored.
    ///
    /// # Cancel safety
    /// Dropped, the key may exist and the ones before still work: repeat.
    pub async fn adopt_admin_key(&self, text: &str) -> Result<AdoptedKey, EngineError> {
        let hash = hash_key(text);
        let key = if let Some(key) = self.keys().into_iter().find(|key| key.hash == hash) {
            key
        } else {
            let name = Text::parse(ADOPTED_NAME)
                .map_err(|error| Rejection::from(Invalid::new("name", error.to_string())))?;
            self.store_key(name, vec![Scope::Admin], text).await?
        };
        let mut ended = Vec::new();
        if key.revoked_at.is_none() {
            let is_before = |other: &ApiKey| {
                let is_adopted = other.name.as_str() == ADOPTED_NAME;
                is_adopted && other.id != key.id && other.revoked_at.is_none()
            };
            for before in self.keys().into_iter().filter(is_before) {
                self.revoke_key(before.id).await?;
                ended.push(before.id);
            }
        }
        Ok(AdoptedKey { key, ended })
    }

    async fn store_key(
        &self,
        name: Text,
        scopes: Vec<Scope>,
        text: &str,
    ) -> Result<ApiKey, EngineError> {
        let (id, created_at) = (self.parts.ids.caller(), self.now());
        let key = ApiKey {
            id,
            name,
            scopes,
            hash: hash_key(text),
            created_at,
            revoked_at: None,
        };
        self.parts.ledger.add_key(key.clone()).await?;
        // Another server may have adopted the same text at the same time: one of the two counts.
        self.refresh_keys().await?;
        let stored = self.keys().into_iter().find(|known| known.hash == key.hash);
        Ok(stored.unwrap_or(key))
    }

    /// Reads the API keys again: on a shared ledger other servers create and revoke them.
    ///
    /// Readings may come back in another sequence than they were made. Keys are only added and
    /// revoked, so what is known already is added to and never taken back.
    ///
    /// # Errors
    /// [`ReadError`] when they cannot be read; then those known before stay.
    ///
    /// # Cancel safety
    /// Dropped, those known before stay.
    pub async fn refresh_keys(&self) -> Result<(), ReadError> {
        let read = self.parts.ledger.keys().await?;
        let mut keys = write(&self.parts.keys);
        for key in read {
            let known = keys.get(&key.hash).and_then(|known| known.revoked_at);
            let revoked_at = key.revoked_at.or(known);
            keys.insert(key.hash, ApiKey { revoked_at, ..key });
        }
        Ok(())
    }

    /// Lists every API key, oldest first, revoked ones too.
    pub fn keys(&self) -> Vec<ApiKey> {
        let mut keys: Vec<ApiKey> = read(&self.parts.keys).values().cloned().collect();
        keys.sort_by_key(|key| key.id);
        keys
    }

    /// Revokes an API key: this server refuses it once this has returned. The last admin key stays.
    ///
    /// # Errors
    /// `ReadOnly` when it cannot be stored.
    ///
    /// # Cancel safety
    /// Dropped, the key may be revoked in the ledger and still work here: repeat.
    pub async fn revoke_key(&self, id: KeyId) -> Result<Revocation, EngineError> {
        let at = self.now();
        if self.parts.ledger.revoke_key(id, at).await? {
            let mut keys = write(&self.parts.keys);
            for key in keys.values_mut().filter(|key| key.id == id) {
                key.revoked_at.get_or_insert(at);
            }
        }
        let of_id = |key: &ApiKey| key.id == id;
        let mut found = self.keys().into_iter().find(of_id);
        // Another server may have made it, or revoked it, just now.
        if found.as_ref().is_none_or(|key| key.revoked_at.is_none()) {
            self.refresh_keys().await?;
            found = self.keys().into_iter().find(of_id);
        }
        Ok(match found {
            None => Revocation::Unknown,
            Some(key) if key.revoked_at.is_some() => Revocation::Revoked(key),
            Some(_) => Revocation::LastAdmin,
        })
    }
}

/// Reads the API keys again twice a second until `shutdown`, so that a key that was revoked through
/// another server is soon refused here.
///
/// # Cancel safety
/// Dropped between two reads it leaves nothing half done.
pub async fn run_key_watch(engine: Engine, shutdown: CancellationToken) {
    let clock = Arc::clone(&engine.world().clock);
    while pause(&*clock, &shutdown, KEYS_EVERY_MS).await {
        if let Err(error) = engine.refresh_keys().await {
            tracing::debug!(%error, "the API keys could not be read again");
        }
    }
}
