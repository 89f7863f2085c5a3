-- Ends grants. One row is asked about per element of the arrays: number of the grant in the batch,
-- name, owner, and token, or NULL where only the owner is known. Removes only what is the owner's; repeating it is harmless.
-- `p_channel`: tells listeners of that channel each name that became free; NULL notifies no channel.
-- Answers per element, in order: 1 released, 0 free, -1 another's, whose token is `out_token`.
CREATE OR REPLACE FUNCTION soldonce_lease_release(
    p_ns text, p_grants integer[], p_names text[], p_owners bytea[], p_tokens bigint[],
    p_channel text
) RETURNS TABLE (out_grant integer, out_outcome bigint, out_token bigint)
LANGUAGE plpgsql AS $$
DECLARE
    v_now timestamptz;
BEGIN
    PERFORM soldonce_lease_settings();
    PERFORM count(*) FROM (
        SELECT FROM soldonce_lease l WHERE l.ns = p_ns AND l.name = ANY (p_names)
        ORDER BY l.name FOR UPDATE
    ) AS locked;
    v_now := clock_timestamp();
    RETURN QUERY
        WITH asked AS (
            SELECT * FROM unnest(p_grants, p_names, p_owners, p_tokens)
                WITH ORDINALITY AS a (number, name, owner, token, at)
        ), released AS (
            UPDATE soldonce_lease l SET owner = NULL, expires_at = v_now, meta = ''
            FROM asked a
            WHERE l.ns = p_ns AND l.name = a.name AND l.owner = a.owner
                AND (a.token IS NULL OR l.token = a.token) AND l.expires_at > v_now
            RETURNING a.at, l.name
        ), told AS (
            -- Takes a lock of the whole server at commit, hence only on request.
            SELECT r.at, CASE WHEN p_channel IS NOT NULL THEN pg_notify(p_channel, r.name) END
            FROM released r
        )
        SELECT
            a.number,
            CASE
                WHEN t.at IS NOT NULL THEN 1::bigint
                WHEN l.expires_at IS NULL OR l.expires_at <= v_now THEN 0
                -- An element that is listed twice: the row was ours, and the other element freed it.
                WHEN l.owner = a.owner AND (a.token IS NULL OR l.token = a.token) THEN 0
                ELSE -1
            END,
            coalesce(l.token, 0)
        FROM asked a
        LEFT JOIN soldonce_lease l ON l.ns = p_ns AND l.name = a.name
        LEFT JOIN told t ON t.at = a.at
        ORDER BY a.at;
END $$;
