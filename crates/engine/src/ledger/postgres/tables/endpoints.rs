//! Webhook endpoints.

pub(in super::super) const ENDPOINTS: &str = concat!(
    "-- endpoints\nSELECT",
    endpoint_columns!(),
    " FROM webhook_endpoints ORDER BY id"
);

/// Keeps commands from being stored meanwhile: each has read the endpoints before, and is stored by
/// now, or reads them after this.
pub(in super::super) const LOCK_ENDPOINTS: &str = "-- lock_endpoints
LOCK TABLE webhook_endpoints IN ACCESS EXCLUSIVE MODE";

/// Stores an endpoint with the record of its idempotency key, if it has one.
pub(in super::super) const ADD_ENDPOINT: &str = "-- add_endpoint
WITH recorded AS (
    INSERT INTO idempotency (key, fingerprint, at, kind, subject, body)
    SELECT $5, $6, $4, $7, $1, $8 WHERE $5::bytea IS NOT NULL
)
INSERT INTO webhook_endpoints (id, url, kinds, rotation, created_at) VALUES ($1, $2, $3, 0, $4)";

pub(in super::super) const ROTATE_ENDPOINT: &str = concat!(
    "-- rotate_endpoint
     UPDATE webhook_endpoints SET rotation = rotation + 1, rotated_at = $2 WHERE id = $1 RETURNING",
    endpoint_columns!()
);

pub(in super::super) const DISABLE_ENDPOINT: &str = concat!(
    "-- disable_endpoint
     UPDATE webhook_endpoints SET disabled_at = coalesce(disabled_at, $2) WHERE id = $1 RETURNING",
    endpoint_columns!()
);

/// Makes all that waits due, with all its attempts; a server that still works on one keeps it until
/// its time is over. The endpoint is locked first, as it is to note attempts.
pub(in super::super) const ENABLE_ENDPOINT: &str = concat!(
    "-- enable_endpoint
     WITH enabled AS (
         UPDATE webhook_endpoints SET disabled_at = NULL, quiet_until = NULL WHERE id = $1 RETURNING",
    endpoint_columns!(),
    "), opened AS (
         UPDATE deliveries d SET attempts = 0, next_at = $2
         FROM enabled e WHERE d.endpoint = e.id AND d.state = 0
     ) SELECT * FROM enabled"
);

pub(in super::super) const DELETE_ENDPOINT: &str = concat!(
    "-- delete_endpoint\nDELETE FROM webhook_endpoints WHERE id = $1 RETURNING",
    endpoint_columns!()
);
