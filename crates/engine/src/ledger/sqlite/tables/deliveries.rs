//! Deliveries of messages to webhook endpoints.

use rusqlite::{Connection, Row, params};
use soldonce_core::{Span, Timestamp};

use super::{all_rows, each_row, execute, first_row, summed};
use crate::ledger::Page;
use crate::ledger::rows::codes::number;
use crate::ledger::rows::column::Column;
use crate::ledger::rows::deliveries::{get, get_due, put};
use crate::ledger::rows::most;
use crate::ledger::rows::reader::Reader;
use crate::ledger::sqlite::fault::Fault;
use crate::webhook::{
    Attempt, Delivery, DeliveryState, DueDelivery, Endpoint, EndpointId, Message, MessageId,
};

const TABLE: &str = "deliveries";

statements! {
    INSERT_DELIVERY = "-- insert_delivery
INSERT INTO deliveries (n, endpoint, message, kind, subject, at, body, state, attempts, next_at,
                        checksum)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 0, 0, ?6, ?8)";

    // One that waits for an older one of its subject is not due, even if its `next_at` has passed.
    DUE_DELIVERIES = "-- due_deliveries
SELECT n, endpoint, message, kind, subject, at, body, checksum, attempts FROM deliveries AS d
WHERE endpoint = ?1 AND state = 0 AND next_at <= ?2
  AND NOT EXISTS (SELECT 1 FROM deliveries AS e WHERE e.endpoint = d.endpoint
                  AND e.subject = d.subject AND e.state = 0 AND e.n < d.n)
ORDER BY next_at LIMIT ?3";

    NOTE_ATTEMPT = "-- note_attempt
UPDATE deliveries SET state = ?2, attempts = attempts + 1, status = ?3, problem = ?4, tried_at = ?5,
                      next_at = ?6
WHERE n = ?1 AND state = 0 AND (attempts = ?7 OR ?2 = 1)";

    // So that the later ones of its subject are not read again and again while it waits.
    WAIT_BEHIND = "-- wait_behind
UPDATE deliveries SET next_at = max(next_at, ?2)
WHERE state = 0 AND n > ?1 AND (endpoint, subject) = (SELECT endpoint, subject FROM deliveries WHERE n = ?1)";

    GO_ON_BEHIND = "-- go_on_behind
UPDATE deliveries SET next_at = min(next_at, ?2)
WHERE state = 0 AND n > ?1 AND attempts = 0
  AND (endpoint, subject) = (SELECT endpoint, subject FROM deliveries WHERE n = ?1)";

    LOG_OF_ENDPOINT = concat!(
        "-- log_of_endpoint\nSELECT",
        log_columns!(),
        " FROM deliveries WHERE endpoint = ?1 AND n < ?2 ORDER BY n DESC LIMIT ?3"
    );

    RESEND = concat!(
        "-- resend\nUPDATE deliveries SET state = 0, attempts = 0, next_at = ?3
     WHERE n = (SELECT min(n) FROM deliveries WHERE endpoint = ?1 AND message = ?2) RETURNING",
        log_columns!()
    );

    OPEN_ALL = "-- open_all
UPDATE deliveries SET attempts = 0, next_at = ?2 WHERE endpoint = ?1 AND state = 0";

    SET_DELIVERIES_BACK = "-- set_deliveries_back
UPDATE deliveries SET next_at = next_at - ?1 WHERE state = 0";

    FORGET_DELIVERIES = "-- forget_deliveries
DELETE FROM deliveries WHERE n IN (SELECT n FROM deliveries WHERE state > 0 AND at < ?1 LIMIT ?2)";

    FORGET_WAITING = "-- forget_waiting
DELETE FROM deliveries WHERE n IN (
    SELECT d.n FROM webhook_endpoints AS e JOIN deliveries AS d ON d.endpoint = e.id
    WHERE e.disabled_at IS NOT NULL AND d.state = 0 AND d.next_at < ?1 LIMIT ?2)";

    // The endpoints of the log are found one after the other by its index, not by a full scan.
    FORGET_STRAYS = "-- forget_strays
WITH RECURSIVE named (id) AS (
    SELECT (SELECT endpoint FROM deliveries ORDER BY endpoint LIMIT 1)
    UNION ALL
    SELECT (SELECT endpoint FROM deliveries WHERE endpoint > named.id ORDER BY endpoint LIMIT 1)
    FROM named WHERE named.id IS NOT NULL
)
DELETE FROM deliveries WHERE n IN (
    SELECT d.n FROM named JOIN deliveries AS d ON d.endpoint = named.id
    WHERE named.id NOT IN (SELECT id FROM webhook_endpoints) LIMIT ?1)";

    LAST_DELIVERY = "-- last_delivery
SELECT coalesce(max(n), 0) FROM deliveries";

    DELIVERIES = "-- deliveries
SELECT n, endpoint, message, kind, subject, at, body, checksum, attempts FROM deliveries ORDER BY n";
}

/// Writes the messages of a batch for each endpoint that wants them, numbered after `last`; returns
/// the new last number.
pub(crate) fn write(
    connection: &Connection,
    endpoints: &[Endpoint],
    messages: &[Message],
    at: Timestamp,
    mut last: i64,
) -> Result<i64, Fault> {
    for message in messages {
        let wanted = |endpoint: &&Endpoint| endpoint.kinds.has(message.kind);
        for endpoint in endpoints.iter().filter(wanted) {
            last = last.saturating_add(1);
            let [id, kind, subject, body] = put(message);
            let endpoint = Column::Id(*endpoint.id.bytes());
            let (number, at) = (Column::Long(last), Column::Long(at.ms()));
            let row = [number, endpoint, id, kind, subject, at, body];
            summed::write(connection, INSERT_DELIVERY, TABLE, &row)?;
        }
    }
    Ok(last)
}

/// Sets the next attempts of open deliveries back by `by`, with the ledger's clock.
pub(crate) fn set_back(connection: &Connection, by: Span) -> Result<(), Fault> {
    let by = i64::try_from(by.ms()).unwrap_or(i64::MAX);
    execute(connection, SET_DELIVERIES_BACK, [by]).map(drop)
}

/// Reads the deliveries that are due at `now`, at most `limit` for each endpoint that accepts some.
pub(crate) fn due(
    connection: &Connection,
    endpoints: &[Endpoint],
    now: Timestamp,
    limit: usize,
) -> Result<Vec<DueDelivery>, Fault> {
    let mut found = Vec::new();
    for endpoint in endpoints.iter().filter(|known| known.takes_at(now)) {
        let values = params![endpoint.id.bytes(), now.ms(), most(limit)];
        let due: Vec<_> = all_rows(connection, DUE_DELIVERIES, values, read_due)?;
        found.extend(due);
    }
    Ok(found)
}

fn read_due(row: &Row<'_>) -> Result<DueDelivery, Fault> {
    let mut row = Reader::sqlite(row, TABLE);
    let mut due = get_due(&mut row)?;
    row.require_sum(|| format!("delivery {}", due.number))?;
    due.attempts = row.get()?;
    Ok(due)
}

/// Records attempts; returns those that count: one whose delivery is over does not.
pub(crate) fn note<'a>(
    connection: &Connection,
    attempts: &'a [Attempt],
) -> Result<Vec<&'a Attempt>, Fault> {
    let mut note = connection.prepare_cached(NOTE_ATTEMPT)?;
    let mut wait = connection.prepare_cached(WAIT_BEHIND)?;
    let mut go_on = connection.prepare_cached(GO_ON_BEHIND)?;
    let mut counted = Vec::with_capacity(attempts.len());
    for attempt in attempts {
        let next_at = attempt.next_at().map(Timestamp::ms);
        let noted = note.execute(params![
            attempt.number,
            number(&DeliveryState::ALL, &attempt.then.state()),
            attempt.status,
            attempt.problem,
            attempt.at.ms(),
            next_at,
            attempt.before,
        ])?;
        if noted == 0 {
            continue;
        }
        counted.push(attempt);
        match next_at {
            Some(next_at) => wait.execute([attempt.number, next_at])?,
            None => go_on.execute([attempt.number, attempt.at.ms()])?,
        };
    }
    Ok(counted)
}

/// Reads deliveries of an endpoint, newest first; the key is their number.
pub(crate) fn log(
    connection: &Connection,
    endpoint: EndpointId,
    (before, limit): Page<i64>,
) -> Result<Vec<Delivery>, Fault> {
    let values = params![endpoint.bytes(), before.unwrap_or(i64::MAX), most(limit)];
    all_rows(connection, LOG_OF_ENDPOINT, values, read)
}

fn read(row: &Row<'_>) -> Result<Delivery, Fault> {
    Ok(get(&mut Reader::sqlite(row, TABLE))?)
}

/// Opens a delivery again; returns it as it is then, or none if the log does not have it.
pub(crate) fn resend(
    connection: &Connection,
    endpoint: EndpointId,
    message: MessageId,
    at: Timestamp,
) -> Result<Option<Delivery>, Fault> {
    let values = params![endpoint.bytes(), message.bytes(), at.ms()];
    first_row(connection, RESEND, values, read)
}

/// Makes all open deliveries of an endpoint due at `at`, with all attempts left.
pub(crate) fn open_all(
    connection: &Connection,
    endpoint: EndpointId,
    at: Timestamp,
) -> Result<usize, Fault> {
    execute(connection, OPEN_ALL, params![endpoint.bytes(), at.ms()])
}

/// Deletes old deliveries from the log, those that waited too long for a disabled endpoint, and
/// those of deleted endpoints; returns how many.
pub(crate) fn forget(
    connection: &Connection,
    before: Timestamp,
    limit: usize,
) -> Result<usize, Fault> {
    let mut forgotten = 0;
    for sql in [FORGET_DELIVERIES, FORGET_WAITING] {
        let rest = most(limit.saturating_sub(forgotten));
        forgotten += execute(connection, sql, [before.ms(), rest])?;
    }
    let rest = most(limit.saturating_sub(forgotten));
    Ok(forgotten + execute(connection, FORGET_STRAYS, [rest])?)
}

/// Reads the number of the newest delivery; 0 if there is none.
pub(crate) fn last(connection: &Connection) -> Result<i64, Fault> {
    let last = first_row(connection, LAST_DELIVERY, [], |row| Ok(row.get(0)?))?;
    Ok(last.unwrap_or_default())
}

/// Verifies the checksum of every delivery.
pub(crate) fn check(connection: &Connection) -> Result<(), Fault> {
    each_row(connection, DELIVERIES, [], |row| read_due(row).map(drop))
}
