-- How a batch of decided commands is stored: `store_batch_12`. The number is that of the schema. A change makes
-- the function anew under the next number in a migration of its own; the old one stays for servers that run
-- on while the schema is migrated, until the migration after that drops it.
--
-- A server decides on what it remembers. The function stores what was decided, or nothing: it locks every row
-- that the decisions rest on and goes on only if each has the version that the server remembered.
--
-- It needs READ COMMITTED, which every server sets. There each statement of a VOLATILE PL/pgSQL function sees
-- what was committed before that statement began, and FOR UPDATE that waited for a row tests its condition,
-- `version = seen`, again on what the other transaction left. On one snapshot for all (REPEATABLE READ) it
-- would fail instead. A row that is locked stays as it is, so what is compared in step 2 holds in step 4.

-- What a batch does to a unit. `state` and what follows is null for a unit that was only looked at.
CREATE TYPE unit_change AS (
    unit_no    integer,
    seen       bigint,                  -- the version that the decision rests on
    was        smallint,                -- its state and owner in that version
    was_owner  bytea,
    state      smallint,
    owner      bytea,
    until      bigint,
    fence      bigint,
    version    bigint
);

-- In place of booking_row, which stays for servers before this one, as do touched_unit and seen_row.
CREATE TYPE booking_change AS (
    id              bytea,
    seen            bigint,             -- the version that the decision rests on; 0 for a new booking
    caller          bytea,
    holder          text,
    holder_key      bytea,
    hold            bytea,
    state           smallint,
    fence           bigint,
    reference       text,
    payment         smallint,
    created_at      bigint,
    confirmed_at    bigint,
    payment_detail  text
);

-- Takes the event's advisory lock until the end of the transaction: shared by batches, alone for one that
-- changes the event. Advisory locks are granted in the order in which they were asked for, row locks are
-- not: with these alone, one who changes the event would wait for ever behind those who share its row. What
-- was decided longer ago than the clocks may differ is void, so nobody waits longer for this lock; for a
-- row he does.
CREATE FUNCTION lock_event_12(event integer, alone boolean) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    SET LOCAL lock_timeout = 200;
    IF alone THEN
        PERFORM pg_advisory_xact_lock(731030761, event);
    ELSE
        PERFORM pg_advisory_xact_lock_shared(731030761, event);
    END IF;
    SET LOCAL lock_timeout = 3000;
END $$;

-- Locks what the decisions rest on, in the order of every server: event, units by number, holders by key,
-- bookings by id. Returns where the units are; null when a row has another version than was seen. The
-- lists are in these orders; each row is looked up by its whole key, one after the other (LATERAL with FOR
-- UPDATE), which no plan can turn round.
CREATE FUNCTION lock_read_set_12(
    event integer, event_seen bigint, unit_rows unit_change[], holder_rows holder_row[],
    booking_rows booking_change[]
) RETURNS tid[] LANGUAGE plpgsql AS $$
DECLARE
    units_at tid[];
    rows_locked bigint;
BEGIN
    PERFORM FROM events WHERE event_no = event AND version = event_seen FOR SHARE;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;

    SELECT coalesce(array_agg(locked.at), '{}') INTO units_at
    FROM unnest(unit_rows) AS n
    CROSS JOIN LATERAL (
        SELECT u.ctid AS at FROM units u
        WHERE u.event_no = event AND u.unit_no = n.unit_no AND u.version = n.seen FOR UPDATE
    ) AS locked;
    IF cardinality(units_at) <> cardinality(unit_rows) THEN
        RETURN NULL;
    END IF;

    PERFORM FROM unnest(holder_rows) AS n
    CROSS JOIN LATERAL (
        SELECT FROM holders h
        WHERE h.event_no = event AND h.key = n.key AND h.version = n.version FOR UPDATE
    ) AS locked
    WHERE n.version > 0;
    GET DIAGNOSTICS rows_locked = ROW_COUNT;
    IF rows_locked <> (SELECT count(*) FROM unnest(holder_rows) AS n WHERE n.version > 0) THEN
        RETURN NULL;
    END IF;

    IF cardinality(booking_rows) > 0 THEN
        PERFORM FROM unnest(booking_rows) AS n
        CROSS JOIN LATERAL (
            SELECT FROM bookings b WHERE b.id = n.id AND b.version = n.seen FOR UPDATE
        ) AS locked
        WHERE n.seen > 0;
        GET DIAGNOSTICS rows_locked = ROW_COUNT;
        IF rows_locked <> (SELECT count(*) FROM unnest(booking_rows) AS n WHERE n.seen > 0) THEN
            RETURN NULL;
        END IF;
    END IF;
    RETURN units_at;
END $$;

-- Writes bookings with their lines. Those that were there before are locked, in the version that was seen.
CREATE FUNCTION write_bookings_12(event integer, booking_rows booking_change[], line_rows line_row[])
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    written bigint;
BEGIN
    -- The lines of a booking are written anew: sold_unit_key judges each that comes.
    DELETE FROM lines WHERE booking = ANY (ARRAY(SELECT n.id FROM unnest(booking_rows) AS n WHERE n.seen > 0));

    INSERT INTO bookings (id, event_no, caller, holder, holder_key, hold, state, fence, reference, payment,
                          created_at, confirmed_at, payment_detail, version)
    SELECT n.id, event, n.caller, n.holder, n.holder_key, n.hold, n.state, n.fence, n.reference, n.payment,
           n.created_at, n.confirmed_at, n.payment_detail, 1
    FROM unnest(booking_rows) AS n
    WHERE n.seen = 0;

    UPDATE bookings b
    SET state = n.state, fence = n.fence, payment = n.payment, confirmed_at = n.confirmed_at,
        payment_detail = n.payment_detail, version = b.version + 1
    FROM unnest(booking_rows) AS n
    CROSS JOIN LATERAL (SELECT ctid AS at FROM bookings WHERE id = n.id OFFSET 0) AS found
    WHERE n.seen > 0 AND b.ctid = found.at AND b.event_no = event;
    GET DIAGNOSTICS written = ROW_COUNT;
    PERFORM require_rows('bookings', written,
                         (SELECT count(*) FROM unnest(booking_rows) AS n WHERE n.seen > 0));

    INSERT INTO lines (booking, n, event_no, unit_no, price, version, state)
    SELECT n.booking, n.n, event, n.unit_no, n.price, n.version, n.state
    FROM unnest(line_rows) AS n;
END $$;

-- Stores a batch, or nothing. Returns when it was stored (null: a row or the clock had moved) and what the
-- ledger's clock reads. Plans are made once for a connection, when tables may be empty: the settings have
-- them look up every row by its key, on any connection.
CREATE FUNCTION store_batch_12(
    -- The batch: a fresh id, the server, how many commands made transitions.
    batch_id bytea, server_id bytea, event integer, commands integer,
    -- What it was decided on: the event's version and a time, until which the holds are live that it took to
    -- be live. Beside these unit_rows, holder_rows and booking_rows name what was seen.
    event_seen bigint, decided_at bigint, good_until bigint,
    -- How far the clocks may differ; a time in place of the clock (tests, or null).
    clock_off bigint, given_clock bigint,
    -- The event's policy and why it is cancelled, when it changes.
    new_policy text, new_cancelled text,
    -- What the batch leaves, each row once, in its last state.
    unit_rows unit_change[], hold_rows hold_row[], holder_rows holder_row[], booking_rows booking_change[],
    line_rows line_row[],
    -- What it adds: transitions, answers to idempotency keys, effects and those that are done, messages.
    audit_rows audit_row[], record_rows idempotency_row[], new_effects effect_row[],
    done_effects effect_row[], message_rows message_row[],
    OUT stored_at bigint, OUT wall bigint
) LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_memoize = off SET jit = off
AS $$
DECLARE
    changes_event CONSTANT boolean NOT NULL := new_policy IS NOT NULL;
    units_at tid[];
    written bigint;
BEGIN
    -- 1. The event's lock.
    PERFORM lock_event_12(event, changes_event);

    -- 2. Lock what the decisions rest on, and compare.
    units_at := lock_read_set_12(event, event_seen, unit_rows, holder_rows, booking_rows);

    -- 3. The clock, read with all locks in hand: times of one unit rise with its versions.
    wall := coalesce(given_clock, (SELECT greatest(clock.at, ledger_clock()) FROM clock));
    IF units_at IS NULL OR abs(wall - decided_at) > clock_off OR greatest(wall, decided_at) >= good_until THEN
        RETURN;
    END IF;
    stored_at := greatest(wall, decided_at);

    -- 4. Write. A unit that is another's at the right version is not written: that ends the statement.
    UPDATE units u
    SET state = n.state, owner = n.owner, until = n.until, fence = n.fence, version = n.version
    FROM ROWS FROM (unnest(unit_rows), unnest(units_at))
         AS n (unit_no, seen, was, was_owner, state, owner, until, fence, version, at)
    WHERE n.state IS NOT NULL AND u.ctid = n.at AND u.unit_no = n.unit_no
      AND u.state = n.was AND u.owner IS NOT DISTINCT FROM n.was_owner;
    GET DIAGNOSTICS written = ROW_COUNT;
    PERFORM require_rows('units', written,
                         (SELECT count(*) FROM unnest(unit_rows) AS n WHERE n.state IS NOT NULL));

    INSERT INTO holds (id, event_no, caller, holder, state, booking, reason, fence, units, created_at,
                       expires_at, max_expires_at, together)
    SELECT n.id, event, n.caller, n.holder, n.state, n.booking, n.reason, n.fence, n.units, n.created_at,
           n.expires_at, n.max_expires_at, n.together
    FROM unnest(hold_rows) AS n
    WHERE n.is_new;

    -- A hold that is over stays over.
    UPDATE holds h
    SET state = n.state, booking = n.booking, reason = n.reason, fence = n.fence, units = n.units,
        expires_at = n.expires_at
    FROM unnest(hold_rows) AS n
    CROSS JOIN LATERAL (SELECT ctid AS at FROM holds WHERE id = n.id OFFSET 0) AS found
    WHERE NOT n.is_new AND h.ctid = found.at AND h.state IN (0, 1) AND h.fence <= n.fence;
    GET DIAGNOSTICS written = ROW_COUNT;
    PERFORM require_rows('holds', written, (SELECT count(*) FROM unnest(hold_rows) AS n WHERE NOT n.is_new));

    INSERT INTO holders (event_no, key, caller, holder, bought, version)
    SELECT event, n.key, n.caller, n.holder, n.bought, 1
    FROM unnest(holder_rows) AS n
    WHERE n.version = 0;

    UPDATE holders h SET bought = n.bought, version = h.version + 1
    FROM unnest(holder_rows) AS n
    CROSS JOIN LATERAL (
        SELECT ctid AS at FROM holders WHERE event_no = event AND key = n.key OFFSET 0
    ) AS found
    WHERE n.version > 0 AND h.ctid = found.at;

    IF cardinality(booking_rows) > 0 THEN
        PERFORM write_bookings_12(event, booking_rows, line_rows);
    END IF;

    IF changes_event THEN
        -- A field that only a newer server knows stays.
        UPDATE events SET policy = (policy::jsonb || new_policy::jsonb)::text, cancelled = new_cancelled,
                          version = version + 1
        WHERE event_no = event;
    END IF;

    INSERT INTO audit (event_no, unit_no, version, batch, command, n, at, from_state, from_owner, from_until,
                       to_state, to_owner, to_until, fence, cause, hold, actor, request, reason)
    SELECT event, n.unit_no, n.version, batch_id, n.command, n.n, stored_at, n.from_state, n.from_owner,
           n.from_until, n.to_state, n.to_owner, n.to_until, n.fence, n.cause, n.hold, n.actor, n.request,
           n.reason
    FROM unnest(audit_rows) AS n;

    IF cardinality(record_rows) > 0 THEN
        INSERT INTO idempotency (key, fingerprint, at, kind, subject, body)
        SELECT n.key, n.fingerprint, stored_at, n.kind, n.subject, n.body
        FROM unnest(record_rows) AS n;
    END IF;

    IF cardinality(new_effects) > 0 THEN
        INSERT INTO outbox (at, kind, booking, amount, total)
        SELECT stored_at, n.kind, n.booking, n.amount, n.total
        FROM unnest(new_effects) AS n;
    END IF;

    IF cardinality(done_effects) > 0 THEN
        UPDATE outbox o SET done_at = stored_at
        FROM unnest(done_effects) AS n
        WHERE o.done_at IS NULL AND o.booking = n.booking AND o.kind = n.kind
          AND o.total IS NOT DISTINCT FROM n.total;
    END IF;

    IF cardinality(message_rows) > 0 THEN
        INSERT INTO deliveries (endpoint, message, kind, subject, at, body, next_at)
        SELECT e.id, n.message, n.kind, n.subject, stored_at, n.body, stored_at
        FROM unnest(message_rows) WITH ORDINALITY AS n (message, kind, subject, body, place)
        JOIN webhook_endpoints e ON e.kinds & (1 << n.kind::integer) <> 0
        ORDER BY n.place, e.id;
    END IF;

    -- What servers that remember the event have to read again.
    INSERT INTO batches (id, event_no, server, place, at, commands, renews, units, versions, holds, bookings,
                         holders)
    VALUES (batch_id, event, server_id, nextval('places'), stored_at, commands, changes_event,
            ARRAY(SELECT n.unit_no FROM unnest(audit_rows) AS n),
            ARRAY(SELECT n.version FROM unnest(audit_rows) AS n),
            ARRAY(SELECT n.id FROM unnest(hold_rows) AS n),
            ARRAY(SELECT n.id FROM unnest(booking_rows) AS n),
            ARRAY(SELECT n.key FROM unnest(holder_rows) AS n));
END $$;
