-- lab_raw_batch
-- The rows that a batch of holds leaves behind, in one statement and one commit, without any guard:
-- what `queue` could reach if nothing had to be decided, locked or compared.
WITH held AS (
    INSERT INTO lab_raw_units (event_no, unit_no, state, owner, until, fence, version)
    SELECT $1, n.unit_no, 1, n.hold, $2, 1, 1
    FROM unnest($3::integer[], $4::bytea[]) AS n (unit_no, hold)
), holds AS (
    INSERT INTO lab_raw_holds (id, event_no, caller, holder, state, fence, units, created_at,
                               expires_at, max_expires_at)
    SELECT n.hold, $1, $5, 'buyer-' || n.unit_no, 0, 1, n.hold || n.hold, $2, $2, $2
    FROM unnest($3::integer[], $4::bytea[]) AS n (unit_no, hold)
), holders AS (
    INSERT INTO lab_raw_holders (event_no, key, caller, holder, bought, version)
    SELECT $1, n.key, $5, 'buyer-' || n.unit_no, 0, 1
    FROM unnest($3::integer[], $6::bytea[]) AS n (unit_no, key)
), audited AS (
    INSERT INTO lab_raw_audit (event_no, unit_no, version, batch, command, n, at, from_state, to_state,
                               to_owner, to_until, fence, cause, hold, actor, request)
    SELECT $1, n.unit_no, 1, $7, n.nth, 0, $2, 0, 1, n.hold, $2, 1, 0, n.hold, $5, 'race'
    FROM unnest($3::integer[], $4::bytea[]) WITH ORDINALITY AS n (unit_no, hold, nth)
)
INSERT INTO lab_raw_batches (id, event_no, server, place, at, commands, renews, units, versions, holds,
                             bookings, holders)
VALUES ($7, $1, $5, $8, $2, cardinality($3), false, $3,
        array_fill(1::bigint, ARRAY[cardinality($3)]), $4, '{}', $6)
