//! Messages on their way to webhook endpoints.

use crate::ledger::rows::reader::Reader;
use crate::ledger::rows::{Damaged, deliveries};
use crate::webhook::DueDelivery;

/// Takes what is due and no other server has; what waits behind an older one of its subject is not
/// due. A server that asks again keeps what it has, and stores that when half of the time is over.
pub(in super::super) const TAKE_DELIVERIES: &str = "-- take_deliveries
WITH first AS MATERIALIZED (
    SELECT d.n FROM webhook_endpoints e CROSS JOIN LATERAL (
        SELECT n FROM deliveries o
        WHERE endpoint = e.id AND state = 0 AND next_at <= $2
          AND (taken_by = $1 OR taken_until <= $2)
          AND NOT EXISTS (SELECT FROM deliveries b WHERE b.endpoint = o.endpoint
                          AND b.subject = o.subject AND b.state = 0 AND b.n < o.n)
        ORDER BY next_at LIMIT $4
    ) AS d
    WHERE e.disabled_at IS NULL AND (e.quiet_until IS NULL OR e.quiet_until <= $2)
), free AS MATERIALIZED (
    SELECT d.n, d.taken_until FROM deliveries d JOIN first USING (n)
    WHERE d.state = 0 AND d.next_at <= $2 AND (d.taken_by = $1 OR d.taken_until <= $2)
    ORDER BY d.n FOR UPDATE OF d SKIP LOCKED
), taken AS (
    UPDATE deliveries d SET taken_by = $1, taken_until = $3
    FROM free WHERE d.n = free.n AND free.taken_until < ($2 + $3) / 2
)
SELECT d.n, d.endpoint, d.message, d.kind, d.subject, d.at, d.body, d.attempts
FROM deliveries d JOIN free USING (n) ORDER BY n";

/// Updates only deliveries that this server has taken. Endpoints that asked for something are
/// locked first, in one sequence. Deliveries behind one that waits are not looked at again and
/// again; those behind one that is over are due.
pub(in super::super) const NOTE_ATTEMPTS: &str = "-- note_attempts
WITH told AS MATERIALIZED (
    SELECT * FROM unnest($2::bigint[], $3::smallint[], $4::integer[], $5::text[], $6::bigint[],
                         $7::bigint[], $8::bigint[], $9::boolean[], $10::integer[])
        AS t (n, state, status, problem, tried_at, next_at, quiet_until, is_gone, attempts)
), asking AS MATERIALIZED (
    SELECT e.id FROM webhook_endpoints e
    WHERE e.id IN (SELECT d.endpoint FROM told t JOIN deliveries d USING (n)
                   WHERE t.is_gone OR t.quiet_until IS NOT NULL)
    ORDER BY e.id FOR UPDATE
), noted AS (
    UPDATE deliveries d
    SET state = t.state, attempts = d.attempts + 1, status = t.status, problem = t.problem,
        tried_at = t.tried_at, next_at = t.next_at, taken_by = NULL, taken_until = 0
    FROM told t
    WHERE d.n = t.n AND d.state = 0 AND d.taken_by = $1 AND (d.attempts = t.attempts OR t.state = 1)
      AND (SELECT count(*) FROM asking) >= 0
    RETURNING d.n, d.endpoint, d.subject, d.next_at, d.tried_at, t.quiet_until, t.is_gone
), heard AS (
    UPDATE webhook_endpoints e
    SET quiet_until = greatest(e.quiet_until, o.quiet_until),
        disabled_at = coalesce(e.disabled_at, o.gone_at)
    FROM (SELECT endpoint, max(quiet_until) AS quiet_until,
                 min(tried_at) FILTER (WHERE is_gone) AS gone_at
          FROM noted GROUP BY endpoint) AS o
    JOIN asking ON asking.id = o.endpoint
    WHERE e.id = o.endpoint
)
UPDATE deliveries b
SET next_at = CASE WHEN o.next_at IS NULL AND b.attempts = 0 THEN least(b.next_at, o.tried_at)
                   ELSE greatest(b.next_at, o.next_at) END
FROM noted o
WHERE b.endpoint = o.endpoint AND b.subject = o.subject AND b.state = 0 AND b.n > o.n";

pub(in super::super) const LOG_OF_ENDPOINT: &str = concat!(
    "-- log_of_endpoint\nSELECT",
    log_columns!(),
    " FROM deliveries WHERE endpoint = $1 AND n < $2 ORDER BY n DESC LIMIT $3"
);

pub(in super::super) const RESEND: &str = concat!(
    "-- resend\nUPDATE deliveries SET state = 0, attempts = 0, next_at = $3, taken_by = NULL,
        taken_until = 0
     WHERE n = (SELECT min(n) FROM deliveries WHERE endpoint = $1 AND message = $2) RETURNING",
    log_columns!()
);

/// Deletes old deliveries and those of deleted endpoints, some at a time. Finds the endpoints of
/// the log one after the other by its key, not by a look at each row. One that is sent again, or whose
/// endpoint is enabled, meanwhile stays.
pub(in super::super) const FORGET_DELIVERIES: &str = "-- forget_deliveries
WITH RECURSIVE named (id) AS (
    SELECT (SELECT endpoint FROM deliveries ORDER BY endpoint LIMIT 1)
    UNION ALL
    SELECT (SELECT endpoint FROM deliveries WHERE endpoint > named.id ORDER BY endpoint LIMIT 1)
    FROM named WHERE named.id IS NOT NULL
), old AS (
    (SELECT n FROM deliveries WHERE state > 0 AND at < $1 LIMIT $2)
    UNION
    (SELECT d.n FROM webhook_endpoints e JOIN deliveries d ON d.endpoint = e.id
     WHERE e.disabled_at IS NOT NULL AND d.state = 0 AND d.next_at < $1 LIMIT $2)
    UNION
    (SELECT d.n FROM named JOIN deliveries d ON d.endpoint = named.id
     WHERE named.id NOT IN (SELECT id FROM webhook_endpoints) LIMIT $2)
    LIMIT $2
)
DELETE FROM deliveries d USING old
WHERE d.n = old.n AND (d.state > 0 OR d.next_at < $1
                       OR d.endpoint NOT IN (SELECT id FROM webhook_endpoints)) RETURNING d.n";

pub(in super::super) fn get_due(row: &mut Reader<'_>) -> Result<DueDelivery, Damaged> {
    let due = deliveries::get_due(row)?;
    let attempts = row.get()?;
    Ok(DueDelivery { attempts, ..due })
}
