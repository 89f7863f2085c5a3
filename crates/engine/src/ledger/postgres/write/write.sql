-- write
-- Stores a batch of decided commands, or nothing. Answers when it was stored (null: a row or the
-- clock had moved) and what the clock reads.
WITH
-- What the decisions rest on, locked in the same order by everybody: event, units, holders, bookings.
event_seen AS MATERIALIZED (
    SELECT 1 FROM events WHERE event_no = $1 AND version = $2 FOR SHARE
), units_seen AS MATERIALIZED (
    -- Version -1 is any: the row is locked, and the keys tell whether it had moved.
    -- Found one after the other in the sequence of the list, each by its whole key, whatever the
    -- size of the table was when this was planned: so, too, for holders and bookings.
    SELECT 1 FROM unnest($3::integer[], $4::bigint[]) AS seen (unit_no, version)
    CROSS JOIN LATERAL (
        SELECT FROM units u
        WHERE u.event_no = $1 AND u.unit_no = seen.unit_no
          AND (u.version = seen.version OR seen.version = -1) FOR UPDATE
    ) AS locked
), holders_seen AS MATERIALIZED (
    SELECT 1 FROM unnest($5::bytea[], $6::bigint[]) AS seen (key, version)
    CROSS JOIN LATERAL (
        SELECT FROM holders h
        WHERE h.event_no = $1 AND h.key = seen.key AND h.version = seen.version FOR UPDATE
    ) AS locked
), bookings_seen AS MATERIALIZED (
    SELECT 1 FROM unnest($7::bytea[], $8::bigint[]) AS seen (id, version)
    CROSS JOIN LATERAL (
        SELECT FROM bookings b WHERE b.id = seen.id AND b.version = seen.version FOR UPDATE
    ) AS locked
), same AS MATERIALIZED (
    SELECT 1
    WHERE (SELECT count(*) FROM event_seen) = 1
      AND (SELECT count(*) FROM units_seen) = cardinality($3::integer[])
      AND (SELECT count(*) FROM holders_seen) = cardinality($5::bytea[])
      AND (SELECT count(*) FROM bookings_seen) = cardinality($7::bytea[])
-- Read with all locks in hand, so that times of one unit rise with its versions.
), read_clock AS MATERIALIZED (
    SELECT coalesce($9::bigint, greatest(
        (SELECT clock.at FROM clock),
        floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint + (SELECT clock.ahead FROM clock)
    )) AS wall
    FROM same
), go AS MATERIALIZED (
    SELECT greatest(wall, $10::bigint) AS at, nextval('places') AS place
    FROM read_clock
    WHERE abs(wall - $10::bigint) <= $11::bigint AND greatest(wall, $10::bigint) < $12::bigint
), write_units AS (
    UPDATE units u
    SET state = n.state, owner = n.owner, until = n.until, fence = n.fence, version = n.version,
        token = CASE WHEN $19::bigint = 0 THEN u.token ELSE $19::bigint END
    FROM go, unnest($13::integer[], $14::smallint[], $15::bytea[], $16::bigint[], $17::bigint[],
                    $18::bigint[]) AS n (unit_no, state, owner, until, fence, version)
    CROSS JOIN LATERAL (
        SELECT ctid AS at FROM units WHERE event_no = $1 AND unit_no = n.unit_no OFFSET 0
    ) AS found
    WHERE u.ctid = found.at
    RETURNING 1
), write_holds AS (
    INSERT INTO holds AS h (id, event_no, caller, holder, state, booking, reason, fence, units,
                            created_at, expires_at, max_expires_at, together)
    SELECT n.id, $1, n.caller, n.holder, n.state, n.booking, n.reason, n.fence, n.units,
           n.created_at, n.expires_at, n.max_expires_at, n.together
    FROM go, unnest($20::bytea[], $21::bytea[], $22::text[], $23::smallint[], $24::bytea[],
                    $25::text[], $26::bigint[], $27::bytea[], $28::bigint[], $29::bigint[],
                    $30::bigint[], $31::boolean[])
        AS n (id, caller, holder, state, booking, reason, fence, units, created_at, expires_at,
              max_expires_at, together)
    ON CONFLICT (id) DO UPDATE
    SET state = excluded.state, booking = excluded.booking, reason = excluded.reason,
        fence = excluded.fence, units = excluded.units, expires_at = excluded.expires_at
    WHERE h.state IN (0, 1) AND h.fence <= excluded.fence
    RETURNING 1
), write_audit AS (
    INSERT INTO audit (event_no, unit_no, version, batch, command, n, at, from_state, from_owner,
                       from_until, to_state, to_owner, to_until, fence, cause, hold, actor, request,
                       reason)
    SELECT $1, n.unit_no, n.version, $79, n.command, n.n, go.at, n.from_state, n.from_owner,
           n.from_until, n.to_state, n.to_owner, n.to_until, n.fence, n.cause, n.hold, n.actor,
           n.request, n.reason
    FROM go, unnest($32::integer[], $33::bigint[], $34::integer[], $35::integer[], $36::smallint[],
                    $37::bytea[], $38::bigint[], $39::smallint[], $40::bytea[], $41::bigint[],
                    $42::bigint[], $43::smallint[], $44::bytea[], $45::bytea[], $46::text[],
                    $47::text[])
        AS n (unit_no, version, command, n, from_state, from_owner, from_until, to_state, to_owner,
              to_until, fence, cause, hold, actor, request, reason)
), add_holders AS (
    INSERT INTO holders (event_no, key, caller, holder, bought, version)
    SELECT $1, n.key, n.caller, n.holder, n.bought, 1
    FROM go, unnest($49::bytea[], $50::bytea[], $51::text[], $52::integer[], $53::bigint[])
        AS n (key, caller, holder, bought, version)
    WHERE n.version = 0
), write_holders AS (
    UPDATE holders h SET bought = n.bought, version = h.version + 1
    FROM go, unnest($49::bytea[], $52::integer[], $53::bigint[]) AS n (key, bought, version)
    CROSS JOIN LATERAL (
        SELECT ctid AS at FROM holders WHERE event_no = $1 AND key = n.key OFFSET 0
    ) AS found
    WHERE n.version > 0 AND h.ctid = found.at
), write_bookings AS (
    INSERT INTO bookings AS b (id, event_no, caller, holder, holder_key, hold, state, fence, reference,
                               payment, created_at, confirmed_at, payment_detail, version)
    SELECT n.id, $1, n.caller, n.holder, n.holder_key, n.hold, n.state, n.fence, n.reference,
           n.payment, n.created_at, n.confirmed_at, n.payment_detail, 1
    FROM go, unnest($54::bytea[], $55::bytea[], $56::text[], $57::bytea[], $58::bytea[],
                    $59::smallint[], $60::bigint[], $61::text[], $62::smallint[], $63::bigint[],
                    $64::bigint[], $85::text[])
        AS n (id, caller, holder, holder_key, hold, state, fence, reference, payment, created_at,
              confirmed_at, payment_detail)
    ON CONFLICT (id) DO UPDATE
    SET state = excluded.state, fence = excluded.fence, payment = excluded.payment,
        confirmed_at = excluded.confirmed_at, payment_detail = excluded.payment_detail,
        version = b.version + 1
), write_lines AS (
    INSERT INTO lines (booking, n, event_no, unit_no, price, version, state)
    SELECT n.booking, n.n, $1, n.unit_no, n.price, n.version, n.state
    FROM go, unnest($65::bytea[], $66::integer[], $67::integer[], $68::bigint[], $69::bigint[],
                    $70::smallint[]) AS n (booking, n, unit_no, price, version, state)
), write_records AS (
    INSERT INTO idempotency (key, fingerprint, at, kind, subject, body)
    SELECT n.key, n.fingerprint, go.at, n.kind, n.subject, n.body
    FROM go, unnest($71::bytea[], $72::bytea[], $73::smallint[], $74::bytea[], $75::bytea[])
        AS n (key, fingerprint, kind, subject, body)
), write_effects AS (
    INSERT INTO outbox (at, kind, booking, amount, total)
    SELECT go.at, n.kind, n.booking, n.amount, n.total
    FROM go, unnest($76::smallint[], $77::bytea[], $78::bigint[], $86::bigint[])
        AS n (kind, booking, amount, total)
), settle_effects AS (
    UPDATE outbox o SET done_at = go.at
    FROM go, unnest($87::smallint[], $88::bytea[], $89::bigint[]) AS n (kind, booking, total)
    WHERE o.done_at IS NULL AND o.booking = n.booking AND o.kind = n.kind
      AND o.total IS NOT DISTINCT FROM n.total
), write_deliveries AS (
    INSERT INTO deliveries (endpoint, message, kind, subject, at, body, next_at)
    SELECT e.id, n.message, n.kind, n.subject, go.at, n.body, go.at
    FROM go, unnest($90::bytea[], $91::smallint[], $92::bytea[], $93::text[])
        WITH ORDINALITY AS n (message, kind, subject, body, place)
    JOIN webhook_endpoints e ON e.kinds & (1 << n.kind::integer) <> 0
    ORDER BY n.place, e.id
), write_event AS (
    UPDATE events SET policy = $83, cancelled = $84, version = version + 1
    FROM go WHERE event_no = $1 AND $83::text IS NOT NULL
), write_batch AS (
    INSERT INTO batches (id, event_no, server, place, at, commands, renews, units, versions, holds,
                         bookings, holders)
    SELECT $79, $1, $80, go.place, go.at, $48::integer, $81, $32::integer[], $33::bigint[],
           $20::bytea[], $54::bytea[], $82::bytea[]
    FROM go
)
SELECT (SELECT at FROM go) AS at,
       coalesce((SELECT wall FROM read_clock), $9::bigint, greatest(
           (SELECT clock.at FROM clock),
           floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint
               + (SELECT clock.ahead FROM clock)
       )) AS wall,
       CASE WHEN EXISTS (SELECT FROM go) THEN
           require_rows('units', (SELECT count(*) FROM write_units), cardinality($13::integer[]))
           AND require_rows('holds', (SELECT count(*) FROM write_holds), cardinality($20::bytea[]))
       END
