//! API keys, as hashes, and the master keys.

use rusqlite::{Connection, Row};
use secrecy::ExposeSecret;
use soldonce_core::Timestamp;

use super::{all_rows, summed};
use crate::keys::{ApiKey, KeyId, is_last_admin};
use crate::ledger::MasterKey;
use crate::ledger::rows::column::Column;
use crate::ledger::rows::keys::{get, get_master, put, scopes};
use crate::ledger::sqlite::fault::Fault;

const TABLE: &str = "api_keys";
const MASTER: &str = "master_keys";

statements! {
    INSERT_API_KEY = "-- insert_api_key
INSERT INTO api_keys (id, name, scopes, sha256, created_at, revoked_at, checksum)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";

    REVOKE_API_KEY = "-- revoke_api_key
UPDATE api_keys SET revoked_at = ?6, checksum = ?7
WHERE id = ?1 AND name = ?2 AND scopes = ?3 AND sha256 = ?4 AND created_at = ?5 AND revoked_at IS NULL";

    API_KEYS = concat!(
        "-- api_keys\nSELECT",
        key_columns!(),
        ", checksum FROM api_keys ORDER BY id"
    );

    INSERT_MASTER_KEY = "-- insert_master_key
INSERT INTO master_keys (version, secret, checksum) VALUES (?1, ?2, ?3)";

    MASTER_KEYS = "-- master_keys
SELECT version, secret, checksum FROM master_keys ORDER BY version DESC";
}

pub(crate) fn insert(connection: &Connection, key: &ApiKey) -> Result<(), Fault> {
    summed::write(connection, INSERT_API_KEY, TABLE, &put(key, &scopes(key)))
}

/// Revokes a key; returns whether there was one to revoke. The last admin key is not revoked.
pub(crate) fn revoke(connection: &Connection, id: KeyId, at: Timestamp) -> Result<bool, Fault> {
    let keys = all(connection)?;
    if is_last_admin(&keys, id) {
        return Ok(false);
    }
    let mut keys = keys.into_iter();
    let known = keys.find(|key| key.id == id && key.revoked_at.is_none());
    let Some(key) = known else { return Ok(false) };
    let key = ApiKey {
        revoked_at: Some(at),
        ..key
    };
    summed::write(connection, REVOKE_API_KEY, TABLE, &put(&key, &scopes(&key)))?;
    Ok(true)
}

/// Reads every API key, revoked ones too.
pub(crate) fn all(connection: &Connection) -> Result<Vec<ApiKey>, Fault> {
    all_rows(connection, API_KEYS, [], read)
}

fn read(row: &Row<'_>) -> Result<ApiKey, Fault> {
    summed::read(row, TABLE, get, |key| key.id.to_string())
}

pub(crate) fn insert_master(connection: &Connection, key: &MasterKey) -> Result<(), Fault> {
    let secret = Column::Bytes(key.secret.expose_secret());
    let row = [Column::Small(key.version), secret];
    summed::write(connection, INSERT_MASTER_KEY, MASTER, &row)
}

/// Reads every master key, newest first.
pub(crate) fn masters(connection: &Connection) -> Result<Vec<MasterKey>, Fault> {
    let name = |key: &MasterKey| format!("master key {}", key.version);
    let read = |row: &Row<'_>| summed::read(row, MASTER, get_master, name);
    all_rows(connection, MASTER_KEYS, [], read)
}
