), write_units AS (
    -- Where it was found. One that had moved is at a place that this statement does not see yet. One that
    -- is another's at the right version is not written, and `require_rows` ends the statement.
    UPDATE units u
    SET state = n.state, owner = n.owner, until = n.until, fence = n.fence, version = n.version
    FROM go, units_seen AS n
    WHERE n.state IS NOT NULL AND u.ctid = n.at
      AND u.state = n.was AND u.owner IS NOT DISTINCT FROM n.was_owner
    RETURNING 1
), add_holds AS (
    INSERT INTO holds (id, event_no, caller, holder, state, booking, reason, fence, units,
                       created_at, expires_at, max_expires_at, together)
    SELECT n.id, $1, n.caller, n.holder, n.state, n.booking, n.reason, n.fence, n.units,
           n.created_at, n.expires_at, n.max_expires_at, n.together
    FROM go, unnest($11::hold_row[]) AS n
    WHERE n.is_new
    RETURNING 1
), write_holds AS (
    UPDATE holds h
    SET state = n.state, booking = n.booking, reason = n.reason, fence = n.fence, units = n.units,
        expires_at = n.expires_at
    FROM go, unnest($11::hold_row[]) AS n
    CROSS JOIN LATERAL (SELECT ctid AS at FROM holds WHERE id = n.id OFFSET 0) AS found
    WHERE NOT n.is_new AND h.ctid = found.at AND h.state IN (0, 1) AND h.fence <= n.fence
    RETURNING 1
), write_audit AS (
    INSERT INTO audit (event_no, unit_no, version, batch, command, n, at, from_state, from_owner,
                       from_until, to_state, to_owner, to_until, fence, cause, hold, actor, request,
                       reason)
    SELECT $1, n.unit_no, n.version, $20, n.command, n.n, go.at, n.from_state, n.from_owner,
           n.from_until, n.to_state, n.to_owner, n.to_until, n.fence, n.cause, n.hold, n.actor,
           n.request, n.reason
    FROM go, unnest($12::audit_row[]) AS n
), add_holders AS (
    INSERT INTO holders (event_no, key, caller, holder, bought, version)
    SELECT $1, n.key, n.caller, n.holder, n.bought, 1
    FROM go, unnest($14::holder_row[]) AS n
    WHERE n.version = 0
), write_holders AS (
    UPDATE holders h SET bought = n.bought, version = h.version + 1
    FROM go, unnest($14::holder_row[]) AS n
    CROSS JOIN LATERAL (
        SELECT ctid AS at FROM holders WHERE event_no = $1 AND key = n.key OFFSET 0
    ) AS found
    WHERE n.version > 0 AND h.ctid = found.at
