//! API keys, as hashes, and the master keys.

use std::sync::Arc;

use secrecy::SecretBox;
use soldonce_core::Timestamp;
use tokio_postgres::Row;

use super::{Columns, Id};
use crate::keys::{ApiKey, KeyId, Scope};
use crate::ledger::MasterKey;
use crate::ledger::rows::Damaged;

const TABLE: &str = "api_keys";
const MASTER: &str = "master_keys";

pub(in super::super) const API_KEYS: &str = "-- api_keys
SELECT id, name, scopes, sha256, created_at, revoked_at FROM api_keys ORDER BY id";

pub(in super::super) const ADD_API_KEY: &str = "-- add_api_key
INSERT INTO api_keys (id, name, scopes, sha256, created_at) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (sha256) DO NOTHING";

/// Locks the admin keys, so that two of them cannot revoke each other: the last one stays.
pub(in super::super) const REVOKE_API_KEY: &str = "-- revoke_api_key
WITH admins AS MATERIALIZED (
    SELECT id FROM api_keys
    WHERE revoked_at IS NULL AND 'admin' = ANY (string_to_array(scopes, ','))
    ORDER BY id FOR UPDATE
)
UPDATE api_keys SET revoked_at = $2
WHERE id = $1 AND revoked_at IS NULL
  AND (id NOT IN (SELECT id FROM admins) OR (SELECT count(*) FROM admins) > 1)
RETURNING 1";

pub(in super::super) const MASTER_KEYS: &str = "-- master_keys
SELECT version, secret FROM master_keys ORDER BY version DESC";

/// The first server makes the first key; the others take it.
pub(in super::super) const ADD_MASTER_KEY: &str = "-- add_master_key
INSERT INTO master_keys (version, secret) VALUES (1, $1) ON CONFLICT (version) DO NOTHING";

pub(in super::super) fn read(row: &Row) -> Result<ApiKey, Damaged> {
    let columns = Columns::new(row, TABLE);
    let (id, scopes, hash): (Id, &str, &[u8]) = (columns.get(0)?, columns.get(2)?, columns.get(3)?);
    let revoked_at: Option<i64> = columns.get(5)?;
    let scope = |word: &str| Scope::parse(word).ok_or_else(|| columns.illegal("scope"));
    Ok(ApiKey {
        id: KeyId::from_bytes(id.0),
        name: columns.text(1)?.ok_or_else(|| columns.illegal("name"))?,
        scopes: scopes.split(',').map(scope).collect::<Result<_, _>>()?,
        hash: hash.try_into().map_err(|_| columns.illegal("hash"))?,
        created_at: Timestamp::from_ms(columns.get(4)?),
        revoked_at: revoked_at.map(Timestamp::from_ms),
    })
}

/// The scopes as they are stored.
pub(in super::super) fn scopes_text(key: &ApiKey) -> String {
    let words: Vec<&str> = key.scopes.iter().map(|scope| scope.as_str()).collect();
    words.join(",")
}

pub(in super::super) fn read_master(row: &Row) -> Result<MasterKey, Damaged> {
    let columns = Columns::new(row, MASTER);
    let secret: &[u8] = columns.get(1)?;
    let secret = secret.try_into().map_err(|_| columns.illegal("secret"))?;
    Ok(MasterKey {
        version: columns.small(0)?,
        secret: Arc::new(SecretBox::new(Box::new(secret))),
    })
}
