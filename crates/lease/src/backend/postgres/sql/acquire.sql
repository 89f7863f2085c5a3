-- Grants all of `p_names` to `p_owner`, or one of them if `p_any`, or tells every conflict.
--
-- `p_names`: each once. `p_ttl_us`, `p_cap_us`: microseconds; no cap is NULL. `p_floor`: the token
-- must be above it. Answers in `out_outcome`:
--   1  granted: life and token of the grant, and the name if one of them was asked for, one row
--   2  the owner had them all, or one: same token, fresh life or a longer one that it had, and the
--      name as above, one row
--   0  another's: life and token of that owner, one row for each such name
--   3  no epoch is left, one row
-- A wait for a lock that takes too long, or a deadlock, ends in an error and grants nothing.
-- That of version 1.
DROP FUNCTION IF EXISTS soldonce_lease_acquire(text, text[], bytea, bigint, bigint, bigint, text);
CREATE OR REPLACE FUNCTION soldonce_lease_acquire(
    p_ns text, p_names text[], p_owner bytea, p_ttl_us bigint, p_cap_us bigint, p_floor bigint,
    p_meta text, p_any boolean
) RETURNS TABLE (out_outcome integer, out_name text, out_life_us bigint, out_token bigint)
LANGUAGE plpgsql AS $$
DECLARE
    v_now   timestamptz := clock_timestamp();
    v_rows  integer := 0;
    v_mine  integer;
    v_theirs integer;
    v_tokens integer;
    v_epoch bigint;
    v_token bigint;
    v_cap   timestamptz;
    v_pick  text;
BEGIN
    -- Losers leave here, without a lock and without a write: one look at one moment tells that a
    -- name is another's. Who still has a row of its own goes on, to give it back below.
    RETURN QUERY
        WITH seen AS (
            SELECT l.name, l.owner, l.token, l.expires_at FROM soldonce_lease l
            WHERE l.ns = p_ns AND l.name = ANY (p_names) AND l.expires_at > v_now
        )
        SELECT 0, s.name::text, soldonce_lease_us(s.expires_at - v_now), s.token FROM seen s
        WHERE s.owner <> p_owner AND NOT EXISTS (SELECT FROM seen o WHERE o.owner = p_owner)
            AND NOT (p_any AND (SELECT count(*) FROM seen) < cardinality(p_names))
        ORDER BY s.name;
    IF FOUND THEN
        RETURN;
    END IF;

    PERFORM soldonce_lease_settings();
    IF p_any THEN
        -- The owner's own, else the first that is free and that no other is about to take. A name without a row
        -- is free, too.
        SELECT l.name INTO v_pick FROM soldonce_lease l
            WHERE l.ns = p_ns AND l.name = ANY (p_names) AND l.owner = p_owner AND l.expires_at > v_now;
        IF v_pick IS NULL THEN
            INSERT INTO soldonce_lease (ns, name)
                SELECT p_ns, n FROM unnest(p_names) AS n ORDER BY n COLLATE "C"
                ON CONFLICT DO NOTHING;
            SELECT l.name INTO v_pick FROM soldonce_lease l
                WHERE l.ns = p_ns AND l.name = ANY (p_names) AND l.expires_at <= v_now
                ORDER BY l.name LIMIT 1 FOR UPDATE SKIP LOCKED;
        END IF;
        IF v_pick IS NULL THEN
            RAISE EXCEPTION 'all that is free is about to be taken' USING ERRCODE = 'lock_not_available';
        END IF;
        p_names := ARRAY[v_pick];
    END IF;
    -- A row may be pruned between its insert and its lock, so look again.
    FOR i IN 1 .. 3 LOOP
        INSERT INTO soldonce_lease (ns, name)
            SELECT p_ns, n FROM unnest(p_names) AS n ORDER BY n COLLATE "C"
            ON CONFLICT DO NOTHING;
        SELECT count(*) INTO v_rows FROM (
            SELECT FROM soldonce_lease l WHERE l.ns = p_ns AND l.name = ANY (p_names)
            ORDER BY l.name FOR UPDATE
        ) AS locked;
        EXIT WHEN v_rows = cardinality(p_names);
    END LOOP;
    IF v_rows <> cardinality(p_names) THEN
        RAISE EXCEPTION 'rows of these names come and go' USING ERRCODE = 'lock_not_available';
    END IF;

    -- The one reading that decides: after the locks, because waiting for them took time.
    v_now := clock_timestamp();
    SELECT count(*) FILTER (WHERE l.owner = p_owner), count(*) FILTER (WHERE l.owner <> p_owner),
           count(DISTINCT l.token) FILTER (WHERE l.owner = p_owner)
        INTO v_mine, v_theirs, v_tokens FROM soldonce_lease l
        WHERE l.ns = p_ns AND l.name = ANY (p_names) AND l.expires_at > v_now;

    IF v_mine = v_rows AND v_tokens = 1 THEN
        RETURN QUERY
            WITH again AS (
                UPDATE soldonce_lease l
                SET expires_at = greatest(l.expires_at,
                    least(v_now + p_ttl_us * interval '1 microsecond', l.cap_at))
                WHERE l.ns = p_ns AND l.name = ANY (p_names)
                RETURNING l.expires_at, l.token
            )
            SELECT 2, v_pick, soldonce_lease_us(min(a.expires_at) - v_now), min(a.token)
            FROM again a;
        RETURN;
    END IF;

    IF v_theirs > 0 THEN
        UPDATE soldonce_lease l SET owner = NULL, expires_at = v_now, meta = ''
            WHERE l.ns = p_ns AND l.name = ANY (p_names) AND l.owner = p_owner;
        RETURN QUERY
            SELECT 0, l.name::text, soldonce_lease_us(l.expires_at - v_now), l.token
            FROM soldonce_lease l
            WHERE l.ns = p_ns AND l.name = ANY (p_names) AND l.expires_at > v_now
            ORDER BY l.name;
        RETURN;
    END IF;

    -- Minted while the rows are locked: a number taken before could be lower than one that was
    -- granted while we waited.
    SELECT e.epoch INTO v_epoch FROM soldonce_lease_epoch e WHERE e.ns = p_ns;
    IF v_epoch IS NULL THEN
        INSERT INTO soldonce_lease_epoch (ns, epoch) VALUES (p_ns, 1) ON CONFLICT DO NOTHING;
        SELECT e.epoch INTO STRICT v_epoch FROM soldonce_lease_epoch e WHERE e.ns = p_ns;
    END IF;
    v_token := v_epoch * 4294967296 + nextval('soldonce_lease_counter');
    IF v_token <= p_floor THEN
        v_epoch := soldonce_lease_epoch_next(p_ns, (p_floor / 4294967296)::integer);
        v_token := v_epoch * 4294967296 + nextval('soldonce_lease_counter');
    END IF;
    IF v_token IS NULL OR v_token > 9007199254740991 THEN
        RETURN QUERY SELECT 3, NULL::text, 0::bigint, 0::bigint;
        RETURN;
    END IF;

    v_cap := v_now + p_cap_us * interval '1 microsecond';
    RETURN QUERY
        WITH granted AS (
            UPDATE soldonce_lease l
            SET owner = p_owner, token = v_token, born_at = v_now, cap_at = v_cap, meta = p_meta,
                expires_at = least(v_now + p_ttl_us * interval '1 microsecond', v_cap)
            WHERE l.ns = p_ns AND l.name = ANY (p_names)
            RETURNING l.expires_at
        )
        SELECT 1, v_pick, soldonce_lease_us(min(g.expires_at) - v_now), v_token
        FROM granted g;
END $$;
