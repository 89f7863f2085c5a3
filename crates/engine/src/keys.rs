//! API keys and their scopes. A key is shown once; only its hash is kept.

use sha2::{Digest, Sha256};
use soldonce_clock::Entropy;
use soldonce_core::{CallerId, Text, Timestamp, encode_128, words};

/// The name of an API key; also its id as a caller.
pub type KeyId = CallerId;

words! {
    /// What a key may do.
    #[derive(serde::Serialize, serde::Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub Scope:
    /// Every right.
    Admin = "admin",
    /// Sells for holders that it names itself.
    Sell = "sell",
    /// Sees events, charts, seats and feeds.
    Read = "read",
    /// Acquires leases. May look at events as every key may.
    Lease = "lease",
}

impl Scope {
    /// Parses the word of a scope.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.as_str() == word)
    }
}

/// SHA-256 of an API key's text.
pub type KeyHash = [u8; 32];

/// An API key as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiKey {
    /// Its name, and its id as a caller.
    pub id: KeyId,
    pub name: Text,
    pub scopes: Vec<Scope>,
    /// The hash of its text.
    pub hash: KeyHash,
    pub created_at: Timestamp,
    /// The time from which on it is refused.
    pub revoked_at: Option<Timestamp>,
}

/// The outcome of a request to revoke a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Revocation {
    /// It is revoked, perhaps since before.
    Revoked(ApiKey),
    /// There is no key of this id.
    Unknown,
    /// It is the last one with scope `admin`, which stays: without it no other could be made.
    LastAdmin,
}

/// The name of keys that an operator chose by a setting: the setting replaces them, and no other key
/// may be called so.
pub const ADOPTED_NAME: &str = "admin (of the setting)";

/// Explains why no key may be created with this name; `None` if one may.
pub fn refuses_name(name: &Text) -> Option<&'static str> {
    if name.is_blank() {
        return Some("it is blank, and people know a key by it");
    }
    let is_adopted = name.as_str() == ADOPTED_NAME;
    is_adopted.then_some("keys of the setting `admin_key` are called so")
}

pub(crate) fn is_last_admin(keys: &[ApiKey], id: KeyId) -> bool {
    let is_admin = |key: &&ApiKey| key.revoked_at.is_none() && key.scopes.contains(&Scope::Admin);
    let mut admins = keys.iter().filter(is_admin);
    admins.next().is_some_and(|key| key.id == id) && admins.next().is_none()
}

/// Hashes the text of a key, as it is stored. The text has 128 random bits or more, so a fast hash
/// is enough.
pub fn hash_key(text: &str) -> KeyHash {
    Sha256::digest(text.as_bytes()).into()
}

/// Mints the text of a key: `sk_` and 256 random bits.
pub fn mint_key_text(entropy: &dyn Entropy) -> String {
    let (mut high, mut low) = ([0; 16], [0; 16]);
    entropy.fill(&mut high);
    entropy.fill(&mut low);
    let half = |bytes| encode_128(u128::from_be_bytes(bytes));
    format!("sk_{}{}", half(high), half(low))
}
