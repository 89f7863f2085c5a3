//! Webhook endpoints.

use rusqlite::{Connection, Row, params};
use soldonce_core::{Span, Timestamp};

use super::codes::require_sum;
use super::deliveries;
use crate::ledger::rows::codes::small;
use crate::ledger::sqlite::checksum::Checksum;
use crate::ledger::sqlite::fault::{Fault, one_row};
use crate::webhook::{Attempt, Endpoint, EndpointChange, EndpointId, Kinds};

const TABLE: &str = "webhook_endpoints";

const INSERT_ENDPOINT: &str = "-- insert_endpoint
INSERT INTO webhook_endpoints (id, url, kinds, rotation, rotated_at, created_at, disabled_at,
                               quiet_until, checksum)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";

const UPDATE_ENDPOINT: &str = "-- update_endpoint
UPDATE webhook_endpoints SET rotation = ?2, rotated_at = ?3, disabled_at = ?4, quiet_until = ?5,
                             checksum = ?6
WHERE id = ?1";

const DELETE_ENDPOINT: &str = "-- delete_endpoint
DELETE FROM webhook_endpoints WHERE id = ?1";

const ENDPOINTS: &str = "-- endpoints
SELECT id, url, kinds, rotation, rotated_at, created_at, disabled_at, quiet_until, checksum
FROM webhook_endpoints ORDER BY id";

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] =
    &[INSERT_ENDPOINT, UPDATE_ENDPOINT, DELETE_ENDPOINT, ENDPOINTS];

fn checksum(endpoint: &Endpoint) -> Checksum {
    Checksum::of(TABLE)
        .bytes(endpoint.id.bytes())
        .text(&endpoint.url)
        .int(i64::from(endpoint.kinds.bits()))
        .int(i64::from(endpoint.rotation))
        .opt_int(endpoint.rotated_at.map(Timestamp::ms))
        .int(endpoint.created_at.ms())
        .opt_int(endpoint.disabled_at.map(Timestamp::ms))
        .opt_int(endpoint.quiet_until.map(Timestamp::ms))
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
        endpoint.disabled_at.map(Timestamp::ms),
        endpoint.quiet_until.map(Timestamp::ms),
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
    let changed = known.changed(change, at);
    match change {
        EndpointChange::Delete => {
            let mut statement = connection.prepare_cached(DELETE_ENDPOINT)?;
            one_row("delete_endpoint", statement.execute([id.bytes()])?)?;
        }
        EndpointChange::Rotate | EndpointChange::Disable => update(connection, &changed)?,
        EndpointChange::Enable => {
            update(connection, &changed)?;
            deliveries::open_all(connection, id, at)?;
        }
    }
    Ok(Some(changed))
}

/// Writes what endpoints said to attempts; gives all as they are then.
pub(crate) fn note(
    connection: &Connection,
    known: Vec<Endpoint>,
    attempts: &[&Attempt],
) -> Result<Vec<Endpoint>, Fault> {
    let mut noted = Vec::with_capacity(known.len());
    for endpoint in known {
        let told = attempts
            .iter()
            .filter(|attempt| attempt.endpoint == endpoint.id);
        let next = told.fold(endpoint.clone(), |next, attempt| next.after(attempt));
        if next != endpoint {
            update(connection, &next)?;
        }
        noted.push(next);
    }
    Ok(noted)
}

/// Moves the times of all with the clock, which is set back; gives all as they are then.
pub(crate) fn set_back(connection: &Connection, by: Span) -> Result<Vec<Endpoint>, Fault> {
    let earlier = |at: Option<Timestamp>| at.map(|at| at.minus(by));
    let mut all = all(connection)?;
    for endpoint in &mut all {
        endpoint.rotated_at = earlier(endpoint.rotated_at);
        endpoint.disabled_at = earlier(endpoint.disabled_at);
        endpoint.quiet_until = earlier(endpoint.quiet_until);
        update(connection, endpoint)?;
    }
    Ok(all)
}

fn update(connection: &Connection, endpoint: &Endpoint) -> Result<(), Fault> {
    let mut statement = connection.prepare_cached(UPDATE_ENDPOINT)?;
    let rows = statement.execute(params![
        endpoint.id.bytes(),
        endpoint.rotation,
        endpoint.rotated_at.map(Timestamp::ms),
        endpoint.disabled_at.map(Timestamp::ms),
        endpoint.quiet_until.map(Timestamp::ms),
        checksum(endpoint).stored(),
    ])?;
    one_row("update_endpoint", rows)
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
        disabled_at: row.get::<_, Option<i64>>(6)?.map(Timestamp::from_ms),
        quiet_until: row.get::<_, Option<i64>>(7)?.map(Timestamp::from_ms),
    };
    require_sum(TABLE, checksum(&endpoint), row.get(8)?, || id.to_string())?;
    Ok(endpoint)
}
