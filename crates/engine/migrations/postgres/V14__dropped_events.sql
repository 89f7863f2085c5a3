-- What is left of an event that was over and was dropped: its row in `events` keeps its number and its id, and this
-- one says the rest. Where it is, `guards.sql` lets the rows of the event go.
CREATE TABLE dropped_events (
    event_no     integer PRIMARY KEY REFERENCES events,
    n            bigint NOT NULL UNIQUE,    -- dense from 1: servers look for those that they do not know
    at           bigint NOT NULL,
    actor        bytea,                     -- an API key; null for the engine itself
    request      text NOT NULL,
    seq          bigint NOT NULL,           -- of the last commit
    hash         bytea NOT NULL,            -- of the event's audit up to there
    units        bigint NOT NULL DEFAULT 0,     -- rows that were deleted so far
    bookings     bigint NOT NULL DEFAULT 0,
    transitions  bigint NOT NULL DEFAULT 0,
    numbered     bigint NOT NULL DEFAULT 0,     -- of feed
    is_cleared   boolean NOT NULL DEFAULT false -- once none is left
);

CREATE INDEX dropped_events_not_cleared ON dropped_events (event_no) WHERE NOT is_cleared;

-- What goes with a booking.
CREATE INDEX outbox_done ON outbox (booking) WHERE done_at IS NOT NULL;
CREATE INDEX idempotency_kept ON idempotency (subject) WHERE kind = 7;

-- As in V12, for servers of that schema, too: nothing is stored, from any memory, for an event that was
-- dropped. It is dropped under this lock.
CREATE OR REPLACE FUNCTION lock_event_12(event integer, alone boolean) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    SET LOCAL lock_timeout = 200;
    IF alone THEN
        PERFORM pg_advisory_xact_lock(731030761, event);
    ELSE
        PERFORM pg_advisory_xact_lock_shared(731030761, event);
    END IF;
    SET LOCAL lock_timeout = 3000;
    IF EXISTS (SELECT FROM dropped_events WHERE event_no = event) THEN
        RAISE EXCEPTION 'event % was dropped', event
            USING ERRCODE = 'check_violation', CONSTRAINT = 'event_dropped';
    END IF;
END $$;

-- Deletes about so many rows of an event that was dropped; whether there may be more of any. Servers may run it at
-- once: each has another event. Units go first, because sold ones keep their lines; then the rows that a batch
-- names, with the batch, so that every row is found by a key and a cut leaves nothing that no batch names.
CREATE FUNCTION clear_dropped_14(most bigint) RETURNS boolean LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
DECLARE
    dropped integer;
    part bytea[];
    ids bytea[];
    gone bigint := 0;
    gone_units bigint := 0;
    gone_bookings bigint := 0;
    gone_steps bigint := 0;
    gone_numbers bigint := 0;
BEGIN
    SELECT event_no INTO dropped FROM dropped_events WHERE NOT is_cleared
    ORDER BY event_no LIMIT 1 FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN false;
    END IF;

    DELETE FROM units WHERE event_no = dropped AND unit_no = ANY (
        ARRAY(SELECT unit_no FROM units WHERE event_no = dropped ORDER BY unit_no LIMIT most));
    GET DIAGNOSTICS gone_units = ROW_COUNT;

    IF gone_units < most THEN
        DELETE FROM holders WHERE event_no = dropped AND key = ANY (
            ARRAY(SELECT key FROM holders WHERE event_no = dropped ORDER BY key LIMIT most - gone_units));
        GET DIAGNOSTICS gone = ROW_COUNT;
        gone := gone + gone_units;
    END IF;

    IF gone_units < most AND gone < most THEN
        -- The first batches, until they name as many rows.
        part := ARRAY(
            SELECT id FROM (
                SELECT id, names, sum(names) OVER (ORDER BY xid, id) AS up_to
                FROM (SELECT id, xid, 1 + cardinality(units) + cardinality(holds) + cardinality(bookings) AS names
                      FROM batches WHERE event_no = dropped ORDER BY xid, id LIMIT most) AS first
            ) AS counted
            WHERE up_to - names < most - gone);

        ids := ARRAY(SELECT unnest(bookings) FROM batches WHERE id = ANY (part));
        DELETE FROM outbox WHERE booking = ANY (ids) AND done_at IS NOT NULL;
        DELETE FROM idempotency WHERE subject = ANY (ids) AND kind = 7;
        DELETE FROM lines WHERE booking = ANY (ids);
        DELETE FROM bookings WHERE id = ANY (ids) AND event_no = dropped;
        GET DIAGNOSTICS gone_bookings = ROW_COUNT;

        DELETE FROM holds WHERE id = ANY (ARRAY(SELECT unnest(holds) FROM batches WHERE id = ANY (part)))
                            AND event_no = dropped;

        DELETE FROM audit a
        USING batches b CROSS JOIN LATERAL unnest(b.units, b.versions) AS step (unit_no, version)
        WHERE b.id = ANY (part) AND a.event_no = dropped AND a.unit_no = step.unit_no
          AND a.version = step.version;
        GET DIAGNOSTICS gone_steps = ROW_COUNT;

        DELETE FROM feed WHERE batch = ANY (part);
        GET DIAGNOSTICS gone_numbers = ROW_COUNT;
        DELETE FROM batches WHERE id = ANY (part);
        IF cardinality(part) = 0 THEN
            DELETE FROM feed_heads WHERE event_no = dropped;
        END IF;
    END IF;

    UPDATE dropped_events
    SET units = units + gone_units, bookings = bookings + gone_bookings, transitions = transitions + gone_steps,
        numbered = numbered + gone_numbers, is_cleared = coalesce(cardinality(part) = 0, false)
    WHERE event_no = dropped;
    RETURN true;
END $$;
