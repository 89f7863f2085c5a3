//! API keys, as hashes, and the master keys.

use std::sync::Arc;

use rusqlite::{Connection, Row, params};
use secrecy::{ExposeSecret, SecretBox};
use soldonce_core::{Text, Timestamp};

use super::codes::require_sum;
use crate::keys::{ApiKey, KeyId, Scope, is_last_admin};
use crate::ledger::MasterKey;
use crate::ledger::rows::codes::small;
use crate::ledger::sqlite::checksum::Checksum;
use crate::ledger::sqlite::fault::{Fault, one_row};

const TABLE: &str = "api_keys";
const MASTER: &str = "master_keys";

const INSERT_API_KEY: &str = "-- insert_api_key
INSERT INTO api_keys (id, name, scopes, sha256, created_at, revoked_at, checksum)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";

const REVOKE_API_KEY: &str = "-- revoke_api_key
UPDATE api_keys SET revoked_at = ?2, checksum = ?3 WHERE id = ?1 AND revoked_at IS NULL";

const API_KEYS: &str = "-- api_keys
SELECT id, name, scopes, sha256, created_at, revoked_at, checksum FROM api_keys ORDER BY id";

const INSERT_MASTER_KEY: &str = "-- insert_master_key
INSERT INTO master_keys (version, secret, checksum) VALUES (?1, ?2, ?3)";

const MASTER_KEYS: &str = "-- master_keys
SELECT version, secret, checksum FROM master_keys ORDER BY version DESC";

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[
    INSERT_API_KEY,
    REVOKE_API_KEY,
    API_KEYS,
    INSERT_MASTER_KEY,
    MASTER_KEYS,
];

fn scopes_text(key: &ApiKey) -> String {
    key.scopes
        .iter()
        .map(|scope| scope.as_str())
        .collect::<Vec<_>>()
        .join(",")
}

fn checksum(key: &ApiKey) -> Checksum {
    Checksum::of(TABLE)
        .bytes(key.id.bytes())
        .text(key.name.as_str())
        .text(&scopes_text(key))
        .bytes(&key.hash)
        .int(key.created_at.ms())
        .opt_int(key.revoked_at.map(Timestamp::ms))
}

/// Writes a new key.
pub(crate) fn insert(connection: &Connection, key: &ApiKey) -> Result<(), Fault> {
    let mut statement = connection.prepare_cached(INSERT_API_KEY)?;
    let rows = statement.execute(params![
        key.id.bytes(),
        key.name.as_str(),
        scopes_text(key),
        key.hash,
        key.created_at.ms(),
        key.revoked_at.map(Timestamp::ms),
        checksum(key).stored(),
    ])?;
    one_row("insert_api_key", rows)
}

/// Revokes a key; whether there was one to revoke. The last admin key stays.
pub(crate) fn revoke(connection: &Connection, id: KeyId, at: Timestamp) -> Result<bool, Fault> {
    let keys = all(connection)?;
    if is_last_admin(&keys, id) {
        return Ok(false);
    }
    let known = keys
        .into_iter()
        .find(|key| key.id == id && key.revoked_at.is_none());
    let Some(key) = known else { return Ok(false) };
    let sum = checksum(&ApiKey {
        revoked_at: Some(at),
        ..key
    })
    .stored();
    let mut statement = connection.prepare_cached(REVOKE_API_KEY)?;
    one_row(
        "revoke_api_key",
        statement.execute(params![id.bytes(), at.ms(), sum])?,
    )?;
    Ok(true)
}

/// Every API key.
pub(crate) fn all(connection: &Connection) -> Result<Vec<ApiKey>, Fault> {
    let mut statement = connection.prepare_cached(API_KEYS)?;
    statement.query_and_then([], read)?.collect()
}

fn read(row: &Row<'_>) -> Result<ApiKey, Fault> {
    let id = KeyId::from_bytes(row.get(0)?);
    let illegal = |what: &str| Fault::damaged(TABLE, format!("{what} of {id} is illegal"));
    let (name, scopes): (String, String) = (row.get(1)?, row.get(2)?);
    let words = scopes.split(',').filter(|word| !word.is_empty());
    let scopes: Option<Vec<Scope>> = words.map(Scope::parse).collect();
    let key = ApiKey {
        id,
        name: Text::parse(&name).map_err(|_| illegal("name"))?,
        scopes: scopes.ok_or_else(|| illegal("scope"))?,
        hash: row.get(3)?,
        created_at: Timestamp::from_ms(row.get(4)?),
        revoked_at: row.get::<_, Option<i64>>(5)?.map(Timestamp::from_ms),
    };
    require_sum(TABLE, checksum(&key), row.get(6)?, || id.to_string())?;
    Ok(key)
}

fn master_checksum(version: u32, secret: &[u8; 32]) -> Checksum {
    Checksum::of(MASTER).int(i64::from(version)).bytes(secret)
}

/// Writes a new master key.
pub(crate) fn insert_master(connection: &Connection, key: &MasterKey) -> Result<(), Fault> {
    let secret = key.secret.expose_secret();
    let sum = master_checksum(key.version, secret).stored();
    let mut statement = connection.prepare_cached(INSERT_MASTER_KEY)?;
    one_row(
        "insert_master_key",
        statement.execute(params![key.version, secret, sum])?,
    )
}

/// Every master key, newest first.
pub(crate) fn masters(connection: &Connection) -> Result<Vec<MasterKey>, Fault> {
    let mut statement = connection.prepare_cached(MASTER_KEYS)?;
    let read = |row: &Row<'_>| -> Result<MasterKey, Fault> {
        let version = small(row.get(0)?, MASTER)?;
        let secret: Box<[u8; 32]> = Box::new(row.get(1)?);
        let name = || format!("master key {version}");
        require_sum(MASTER, master_checksum(version, &secret), row.get(2)?, name)?;
        Ok(MasterKey {
            version,
            secret: Arc::new(SecretBox::new(secret)),
        })
    };
    statement.query_and_then([], read)?.collect()
}
