//! Webhook endpoints.

use rusqlite::{Connection, Row, params};
use soldonce_core::Timestamp;

use super::codes::require_sum;
use crate::ledger::rows::codes::small;
use crate::ledger::sqlite::checksum::Checksum;
use crate::ledger::sqlite::fault::{Fault, one_row};
use crate::webhook::{Endpoint, EndpointChange, EndpointId, Kinds};

const TABLE: &str = "webhook_endpoints";

const INSERT_ENDPOINT: &str = "-- insert_endpoint
INSERT INTO webhook_endpoints (id, url, kinds, rotation, rotated_at, created_at, checksum)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";

const ROTATE_ENDPOINT: &str = "-- rotate_endpoint
UPDATE webhook_endpoints SET rotation = ?2, rotated_at = ?3, checksum = ?4 WHERE id = ?1";

const DELETE_ENDPOINT: &str = "-- delete_endpoint
DELETE FROM webhook_endpoints WHERE id = ?1";

const ENDPOINTS: &str = "-- endpoints
SELECT id, url, kinds, rotation, rotated_at, created_at, checksum FROM webhook_endpoints
ORDER BY id";

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] =
    &[INSERT_ENDPOINT, ROTATE_ENDPOINT, DELETE_ENDPOINT, ENDPOINTS];

fn checksum(endpoint: &Endpoint) -> Checksum {
    Checksum::of(TABLE)
        .bytes(endpoint.id.bytes())
        .text(&endpoint.url)
        .int(i64::from(endpoint.kinds.bits()))
        .int(i64::from(endpoint.rotation))
        .opt_int(endpoint.rotated_at.map(Timestamp::ms))
        .int(endpoint.created_at.ms())
}

/// Writes a new endpoint.
pub(crate) fn insert(connection: &Connection, endpoint: &Endpoint) -> Result<(), Fault> {
    let mut statement = connection.prepare_cached(INSERT_ENDPOINT)?;
    let rows = statement.execute(params![
        endpoint.id.bytes(),
        &*endpoint.url,
        endpoint.kinds.bits(),
        endpoint.rotation,
        endpoint.rotated_at.map(Timestamp::ms),
        endpoint.created_at.ms(),
        checksum(endpoint).stored(),
    ])?;
    one_row("insert_endpoint", rows)
}

/// Changes an endpoint; gives it as it is afterwards, or was at last.
pub(crate) fn change(
    connection: &Connection,
    id: EndpointId,
    change: EndpointChange,
    at: Timestamp,
) -> Result<Option<Endpoint>, Fault> {
    let known = all(connection)?.into_iter().find(|known| known.id == id);
    let Some(known) = known else { return Ok(None) };
    match change {
        EndpointChange::Delete => {
            let mut statement = connection.prepare_cached(DELETE_ENDPOINT)?;
            one_row("delete_endpoint", statement.execute([id.bytes()])?)?;
            Ok(Some(known))
        }
        EndpointChange::Rotate => {
            let next = Endpoint {
                rotation: known.rotation.saturating_add(1),
                rotated_at: Some(at),
                ..known
            };
            let sum = checksum(&next).stored();
            let mut statement = connection.prepare_cached(ROTATE_ENDPOINT)?;
            let values = params![id.bytes(), next.rotation, at.ms(), sum];
            one_row("rotate_endpoint", statement.execute(values)?)?;
            Ok(Some(next))
        }
    }
}

/// Every endpoint, oldest first.
pub(crate) fn all(connection: &Connection) -> Result<Vec<Endpoint>, Fault> {
    let mut statement = connection.prepare_cached(ENDPOINTS)?;
    statement.query_and_then([], read)?.collect()
}

fn read(row: &Row<'_>) -> Result<Endpoint, Fault> {
    let id = EndpointId::from_bytes(row.get(0)?);
    let url: String = row.get(1)?;
    let endpoint = Endpoint {
        id,
        url: url.into(),
        kinds: Kinds::from_bits(row.get(2)?),
        rotation: small(row.get(3)?, TABLE)?,
        rotated_at: row.get::<_, Option<i64>>(4)?.map(Timestamp::from_ms),
        created_at: Timestamp::from_ms(row.get(5)?),
    };
    require_sum(TABLE, checksum(&endpoint), row.get(6)?, || id.to_string())?;
    Ok(endpoint)
}
