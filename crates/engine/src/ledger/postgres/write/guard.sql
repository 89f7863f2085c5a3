-- Stores a batch of decided commands, or nothing. Answers when it was stored (null: a row or the
-- clock had moved) and what the clock reads. Its parts are turn, guard, holds, sales and end; one without
-- sales and the like goes without that part.
-- What the decisions rest on is locked in the same order by everybody: event, units, holders, bookings.
-- Needs READ COMMITTED: FOR UPDATE that has waited for a row tests the condition, `version = seen`, again on
-- what the other transaction left. On a snapshot it would find the row as it was before, and fail.
, event_seen AS MATERIALIZED (
    SELECT 1 FROM events
    WHERE event_no = $1 AND version = $22 AND (SELECT is_taken FROM turn) FOR SHARE
), units_seen AS MATERIALIZED (
    -- Found one after the other in the sequence of the list, each by its whole key, whatever the
    -- size of the table was when this was planned: so, too, for holders and bookings.
    SELECT locked.at, n.state, n.owner, n.until, n.fence, n.version, n.was, n.was_owner
    FROM ROWS FROM (unnest($3::touched_unit[]), unnest($30::smallint[]), unnest($31::bytea[]))
         AS n (unit_no, seen, state, owner, until, fence, version, was, was_owner)
    CROSS JOIN LATERAL (
        SELECT u.ctid AS at FROM units u
        WHERE u.event_no = $1 AND u.unit_no = n.unit_no
          AND u.version = n.seen FOR UPDATE
    ) AS locked
), holders_seen AS MATERIALIZED (
    SELECT 1 FROM unnest($4::seen_row[]) AS seen
    CROSS JOIN LATERAL (
        SELECT FROM holders h
        WHERE h.event_no = $1 AND h.key = seen.key AND h.version = seen.version FOR UPDATE
    ) AS locked
), bookings_seen AS MATERIALIZED (
    SELECT 1 FROM unnest($5::seen_row[]) AS seen
    CROSS JOIN LATERAL (
        SELECT FROM bookings b WHERE b.id = seen.key AND b.version = seen.version FOR UPDATE
    ) AS locked
), same AS MATERIALIZED (
    SELECT 1
    WHERE (SELECT count(*) FROM event_seen) = 1
      AND (SELECT count(*) FROM units_seen) = cardinality($3::touched_unit[])
      AND (SELECT count(*) FROM holders_seen) = cardinality($4::seen_row[])
      AND (SELECT count(*) FROM bookings_seen) = cardinality($5::seen_row[])
-- Read with all locks in hand, so that times of one unit rise with its versions.
), read_clock AS MATERIALIZED (
    SELECT coalesce($6::bigint, greatest((SELECT clock.at FROM clock), ledger_clock())) AS wall
    FROM same
), go AS MATERIALIZED (
    SELECT greatest(wall, $7::bigint) AS at, nextval('places') AS place
    FROM read_clock
    WHERE abs(wall - $7::bigint) <= $8::bigint AND greatest(wall, $7::bigint) < $9::bigint
