//! Webhook endpoints.

use rusqlite::{Connection, Row};
use soldonce_core::{Span, Timestamp};

use super::{all_rows, deliveries, execute, summed};
use crate::ledger::rows::endpoints::{get, put};
use crate::ledger::sqlite::fault::{Fault, one_row};
use crate::webhook::{Attempt, Endpoint, EndpointChange, EndpointId};

const TABLE: &str = "webhook_endpoints";

statements! {
    INSERT_ENDPOINT = "-- insert_endpoint
INSERT INTO webhook_endpoints (id, url, kinds, rotation, rotated_at, created_at, disabled_at,
                               quiet_until, checksum)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";

    UPDATE_ENDPOINT = "-- update_endpoint
UPDATE webhook_endpoints SET rotation = ?4, rotated_at = ?5, disabled_at = ?7, quiet_until = ?8,
                             checksum = ?9
WHERE id = ?1 AND url = ?2 AND kinds = ?3 AND created_at = ?6";

    DELETE_ENDPOINT = "-- delete_endpoint
DELETE FROM webhook_endpoints WHERE id = ?1";

    ENDPOINTS = concat!(
        "-- endpoints\nSELECT",
        endpoint_columns!(),
        ", checksum FROM webhook_endpoints ORDER BY id"
    );
}

pub(crate) fn insert(connection: &Connection, endpoint: &Endpoint) -> Result<(), Fault> {
    summed::write(connection, INSERT_ENDPOINT, TABLE, &put(endpoint))
}

/// Changes an endpoint; returns it as it is then, or was when deleted; `None` if it is unknown.
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
            let rows = execute(connection, DELETE_ENDPOINT, [id.bytes()])?;
            one_row("delete_endpoint", rows)?;
        }
        EndpointChange::Rotate | EndpointChange::Disable => update(connection, &changed)?,
        EndpointChange::Enable => {
            update(connection, &changed)?;
            deliveries::open_all(connection, id, at)?;
        }
    }
    Ok(Some(changed))
}

/// Updates endpoints by the attempts at them; returns all as they are then.
pub(crate) fn note(
    connection: &Connection,
    known: Vec<Endpoint>,
    attempts: &[&Attempt],
) -> Result<Vec<Endpoint>, Fault> {
    let mut noted = Vec::with_capacity(known.len());
    for endpoint in known {
        let told = attempts.iter();
        let told = told.filter(|attempt| attempt.endpoint == endpoint.id);
        let next = told.fold(endpoint.clone(), |next, attempt| next.after(attempt));
        if next != endpoint {
            update(connection, &next)?;
        }
        noted.push(next);
    }
    Ok(noted)
}

/// Sets the times of all endpoints back by `by`, with the ledger's clock; returns all of them.
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
    summed::write(connection, UPDATE_ENDPOINT, TABLE, &put(endpoint))
}

/// Reads every endpoint, oldest first.
pub(crate) fn all(connection: &Connection) -> Result<Vec<Endpoint>, Fault> {
    all_rows(connection, ENDPOINTS, [], read)
}

fn read(row: &Row<'_>) -> Result<Endpoint, Fault> {
    summed::read(row, TABLE, get, |endpoint| endpoint.id.to_string())
}
