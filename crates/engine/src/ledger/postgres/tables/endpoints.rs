//! Webhook endpoints.

use soldonce_core::Timestamp;
use tokio_postgres::Row;

use super::{Columns, Id};
use crate::ledger::rows::Damaged;
use crate::webhook::{Endpoint, EndpointId, Kinds};

pub(in super::super) const ENDPOINTS: &str = "-- endpoints
SELECT id, url, kinds, rotation, rotated_at, created_at FROM webhook_endpoints ORDER BY id";

pub(in super::super) const ADD_ENDPOINT: &str = "-- add_endpoint
INSERT INTO webhook_endpoints (id, url, kinds, rotation, created_at) VALUES ($1, $2, $3, 0, $4)";

pub(in super::super) const ROTATE_ENDPOINT: &str = "-- rotate_endpoint
UPDATE webhook_endpoints SET rotation = rotation + 1, rotated_at = $2 WHERE id = $1
RETURNING id, url, kinds, rotation, rotated_at, created_at";

pub(in super::super) const DELETE_ENDPOINT: &str = "-- delete_endpoint
DELETE FROM webhook_endpoints WHERE id = $1
RETURNING id, url, kinds, rotation, rotated_at, created_at";

pub(in super::super) fn read(row: &Row) -> Result<Endpoint, Damaged> {
    let columns = Columns::new(row, "webhook_endpoints");
    let (id, url): (Id, &str) = (columns.get(0)?, columns.get(1)?);
    let rotated_at: Option<i64> = columns.get(4)?;
    Ok(Endpoint {
        id: EndpointId::from_bytes(id.0),
        url: url.into(),
        kinds: Kinds::from_bits(columns.get(2)?),
        rotation: columns.small(3)?,
        rotated_at: rotated_at.map(Timestamp::from_ms),
        created_at: Timestamp::from_ms(columns.get(5)?),
    })
}
