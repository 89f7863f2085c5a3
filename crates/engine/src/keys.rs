//! API keys: who may call and what for. A key is shown once; only its hash is kept.

use sha2::{Digest, Sha256};
use soldonce_clock::Entropy;
use soldonce_core::{CallerId, Text, Timestamp, encode_128, words};

/// The name of an API key; also the caller it stands for.
pub type KeyId = CallerId;

words! {
    /// What a key may do.
    #[derive(serde::Serialize, serde::Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub Scope:
    /// Everything.
    Admin = "admin",
    /// Sells for holders that it names itself.
    Sell = "sell",
    /// Sees events, charts, seats and feeds.
    Read = "read",
    /// Has leases. May look at events as every key may.
    Lease = "lease",
}

impl Scope {
    /// The scope of this word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.as_str() == word)
    }
}

/// SHA-256 of an API key's text.
pub type KeyHash = [u8; 32];

/// An API key as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiKey {
    /// Its name, and the caller it stands for.
    pub id: KeyId,
    pub name: Text,
    pub scopes: Vec<Scope>,
    /// Of its text.
    pub hash: KeyHash,
    pub created_at: Timestamp,
    /// Since when it is refused.
    pub revoked_at: Option<Timestamp>,
}

/// What became of a key that was to be revoked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Revocation {
    /// It is refused, perhaps since before.
    Revoked(ApiKey),
    /// There is none of this id.
    Unknown,
    /// It is the last one with scope `admin`, which stays: without it no other could be made.
    LastAdmin,
}

/// The name of keys that an operator chose by a setting: the setting replaces them, and no other key
/// may be called so.
pub const ADOPTED_NAME: &str = "admin (of the setting)";

/// Whether this is the last admin key.
pub(crate) fn is_last_admin(keys: &[ApiKey], id: KeyId) -> bool {
    let is_admin = |key: &&ApiKey| key.revoked_at.is_none() && key.scopes.contains(&Scope::Admin);
    let mut admins = keys.iter().filter(is_admin);
    admins.next().is_some_and(|key| key.id == id) && admins.next().is_none()
}

/// The hash under which the key of this text is stored. The text has 128 random bits or more, so a
/// fast hash is enough.
pub fn hash_key(text: &str) -> KeyHash {
    Sha256::digest(text.as_bytes()).into()
}

/// A fresh key's text: `sk_` and 256 random bits.
pub fn mint_key_text(entropy: &dyn Entropy) -> String {
    let (mut high, mut low) = ([0; 16], [0; 16]);
    entropy.fill(&mut high);
    entropy.fill(&mut low);
    let half = |bytes| encode_128(u128::from_be_bytes(bytes));
    format!("sk_{}{}", half(high), half(low))
}
