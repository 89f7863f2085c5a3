//! Acquires, and reads of a holder.

use std::time::Duration;

use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::{Postgres, column, columns, failure, garbled, micros, prune, span};
use crate::backend::{Acquire, AcquireReply, Holder};
use crate::{BackendError, Conflict, EPOCH_MAX, FenceError, FencingToken, Name, Owner, Refusal};

const ACQUIRE: &str = "\
-- lease_acquire
SELECT out_outcome, out_name, out_life_us, out_token
FROM soldonce_lease_acquire($1, $2, $3, $4, $5, $6, $7, $8)";

const INSPECT: &str = "\
-- lease_inspect
SELECT l.owner, l.token, soldonce_lease_us(t.now - l.born_at),
    soldonce_lease_us(l.expires_at - t.now), soldonce_lease_us(l.cap_at - t.now), l.meta
FROM soldonce_lease l, (SELECT clock_timestamp() AS now) t
WHERE l.ns = $1 AND l.name = $2 AND l.owner IS NOT NULL AND l.expires_at > t.now";

/// When to ask again after a time-out of row locks: their holder needs about this long.
const CONTENDED_RETRY: Duration = Duration::from_millis(50);

// The outcomes of `sql/acquire.sql`.
const CONFLICT: i32 = 0;
const GRANTED: i32 = 1;
const AGAIN: i32 = 2;
const NO_EPOCH: i32 = 3;

pub(super) async fn acquire(backend: &Postgres, command: &Acquire) -> AcquireReply {
    let names: Vec<String> = columns(&command.names).collect();
    let owner = command.owner.expose();
    let cap = command.cap.map(micros);
    let floor = command.floor.map(FencingToken::sql);
    let params = [
        (&backend.namespace.as_str() as _, Type::TEXT),
        (&names as _, Type::TEXT_ARRAY),
        (&&owner[..] as _, Type::BYTEA),
        (&micros(command.ttl) as _, Type::INT8),
        (&cap as _, Type::INT8),
        (&floor as _, Type::INT8),
        (&&*command.meta as _, Type::TEXT),
        (&command.names.is_any() as _, Type::BOOL),
    ];
    let connection = backend.acquirer(command.names.routing_key());
    match connection.query(ACQUIRE, &params).await {
        Ok(rows) => {
            let reply = read(command, &rows).unwrap_or_else(AcquireReply::Failed);
            if matches!(reply, AcquireReply::Granted { again: false, .. }) {
                prune::sometimes(backend, command.owner);
            }
            reply
        }
        Err(error) if failure::is_contention(&error) => AcquireReply::Refused(Refusal {
            retry_after: CONTENDED_RETRY,
            ..Refusal::default()
        }),
        Err(error) => AcquireReply::Failed(error),
    }
}

pub(super) fn token(number: i64) -> Result<FencingToken, BackendError> {
    let token = u64::try_from(number).ok().and_then(FencingToken::new);
    token.ok_or_else(|| garbled("token"))
}

fn read(command: &Acquire, rows: &[Row]) -> Result<AcquireReply, BackendError> {
    let first = rows.first().ok_or_else(|| garbled("row"))?;
    let outcome: i32 = first.try_get(0).map_err(|_| garbled("outcome"))?;
    match outcome {
        GRANTED | AGAIN => Ok(AcquireReply::Granted {
            picked: if command.names.is_any() {
                Some(asked_name(command, first)?)
            } else {
                None
            },
            token: token(number_at(first, 3)?)?,
            granted: span(number_at(first, 2)?),
            again: outcome == AGAIN,
            replicas: None,
        }),
        NO_EPOCH => Ok(AcquireReply::Epoch(FenceError::Exhausted {
            above: command.floor.map_or(EPOCH_MAX, FencingToken::epoch).into(),
        })),
        CONFLICT => refused(command, rows).map(AcquireReply::Refused),
        _ => Err(garbled("known outcome")),
    }
}

fn number_at(row: &Row, at: usize) -> Result<i64, BackendError> {
    row.try_get(at).map_err(|_| garbled("number"))
}

/// Reads the name of a row, which is one of those that were asked for.
fn asked_name(command: &Acquire, row: &Row) -> Result<Name, BackendError> {
    let shown: &str = row.try_get(1).map_err(|_| garbled("name"))?;
    let name = shown.rsplit('/').next().unwrap_or(shown);
    let mut asked = command.names.as_slice().iter();
    let name = asked.find(|asked| asked.as_str() == name);
    name.cloned().ok_or_else(|| garbled("asked name"))
}

fn refused(command: &Acquire, rows: &[Row]) -> Result<Refusal, BackendError> {
    let mut refusal = Refusal::default();
    for row in rows {
        let remaining = span(number_at(row, 2)?);
        refusal.retry_after = refusal.retry_after.max(remaining);
        let (name, token) = (asked_name(command, row)?, token(number_at(row, 3)?)?);
        let conflict = Conflict::new(name, remaining, token);
        refusal.conflicts.push(conflict);
    }
    Ok(refusal)
}

pub(super) async fn inspect(
    backend: &Postgres,
    group: Option<&Name>,
    name: &Name,
) -> Result<Option<Holder>, BackendError> {
    let name = column(group, name);
    let params = [
        (&backend.namespace.as_str() as _, Type::TEXT),
        (&name as _, Type::TEXT),
    ];
    let rows = backend.settling.query(INSPECT, &params).await?;
    rows.first().map(holder).transpose()
}

fn holder(row: &Row) -> Result<Holder, BackendError> {
    let owner: &[u8] = row.try_get(0).map_err(|_| garbled("owner"))?;
    let owner: [u8; 16] = owner.try_into().map_err(|_| garbled("owner"))?;
    let cap: Option<i64> = row.try_get(4).map_err(|_| garbled("cap"))?;
    Ok(Holder {
        owner: Owner::from_bits(owner),
        token: token(number_at(row, 1)?)?,
        held: span(number_at(row, 2)?),
        remaining: span(number_at(row, 3)?),
        cap: cap.map(span),
        meta: row.try_get(5).map_err(|_| garbled("meta"))?,
    })
}
