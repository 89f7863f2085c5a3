//! API keys, as hashes, and the master keys.

pub(in super::super) const API_KEYS: &str = concat!(
    "-- api_keys\nSELECT",
    key_columns!(),
    " FROM api_keys ORDER BY id"
);

pub(in super::super) const ADD_API_KEY: &str = "-- add_api_key
INSERT INTO api_keys (id, name, scopes, sha256, created_at, revoked_at)
VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (sha256) DO NOTHING";

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

/// Stores the first master key, unless there is one: the first server's counts, the others use it.
pub(in super::super) const ADD_MASTER_KEY: &str = "-- add_master_key
INSERT INTO master_keys (version, secret) VALUES (1, $1) ON CONFLICT (version) DO NOTHING";
