//! API keys, as hashes, and the master keys.

use std::sync::Arc;

use secrecy::SecretBox;
use soldonce_core::Timestamp;

use super::Damaged;
use super::column::Column;
use super::reader::Reader;
use crate::keys::{ApiKey, Scope};
use crate::ledger::MasterKey;

/// The columns that [`get`] reads.
macro_rules! key_columns {
    () => {
        " id, name, scopes, sha256, created_at, revoked_at"
    };
}

/// Joins the scopes of a key with commas, as they are stored.
pub(crate) fn scopes(key: &ApiKey) -> String {
    let words: Vec<&str> = key.scopes.iter().map(|scope| scope.as_str()).collect();
    words.join(",")
}

/// Returns the columns of a key with these [`scopes`].
pub(crate) fn put<'a>(key: &'a ApiKey, scopes: &'a str) -> [Column<'a>; 6] {
    [
        Column::Id(*key.id.bytes()),
        Column::Text(key.name.as_str()),
        Column::Text(scopes),
        Column::Bytes(&key.hash),
        Column::Long(key.created_at.ms()),
        Column::OptLong(key.revoked_at.map(Timestamp::ms)),
    ]
}

pub(crate) fn get(row: &mut Reader<'_>) -> Result<ApiKey, Damaged> {
    let (id, name, scopes): (_, _, &str) = (row.get()?, row.get()?, row.get()?);
    let words = scopes.split(',').filter(|word| !word.is_empty());
    let scopes: Option<Vec<Scope>> = words.map(Scope::parse).collect();
    Ok(ApiKey {
        id,
        name,
        scopes: scopes.ok_or_else(|| row.illegal("scope"))?,
        hash: row.get()?,
        created_at: row.get()?,
        revoked_at: row.get()?,
    })
}

/// Reads a master key from the columns `version, secret`.
pub(crate) fn get_master(row: &mut Reader<'_>) -> Result<MasterKey, Damaged> {
    let version = row.get()?;
    let secret = Arc::new(SecretBox::new(Box::new(row.get()?)));
    Ok(MasterKey { version, secret })
}
