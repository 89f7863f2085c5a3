-- Gives at least so much life from now on to grants, to each whole or not at all, and shortens none. One row is asked
-- about per element of the arrays: number of the grant in the batch, name, owner, token, and the life in microseconds; 0
-- changes nothing. Never creates, never passes the cap, never revives. Answers per element, in order:
--   out_life_us > 0   the owner's, for so long
--   0                 free
--   -1                another's, whose token is `out_token`
CREATE OR REPLACE FUNCTION soldonce_lease_renew(
    p_ns text, p_grants integer[], p_names text[], p_owners bytea[], p_tokens bigint[],
    p_ttls_us bigint[]
) RETURNS TABLE (out_grant integer, out_life_us bigint, out_token bigint)
LANGUAGE plpgsql AS $$
DECLARE
    v_now timestamptz;
BEGIN
    PERFORM soldonce_lease_settings();
    -- In name order, so that two batches cannot wait for each other.
    PERFORM count(*) FROM (
        SELECT FROM soldonce_lease l WHERE l.ns = p_ns AND l.name = ANY (p_names)
        ORDER BY l.name FOR UPDATE
    ) AS locked;
    -- After the locks, because waiting for them took time.
    v_now := clock_timestamp();
    RETURN QUERY
        WITH asked AS (
            SELECT a.*, l.expires_at, l.token AS current,
                l.expires_at > v_now AS live,
                l.expires_at > v_now AND l.owner = a.owner AND l.token = a.token AS mine
            FROM unnest(p_grants, p_names, p_owners, p_tokens, p_ttls_us)
                WITH ORDINALITY AS a (number, name, owner, token, ttl_us, at)
            LEFT JOIN soldonce_lease l ON l.ns = p_ns AND l.name = a.name
        ), renewed AS (
            UPDATE soldonce_lease l
            SET expires_at = greatest(l.expires_at, least(v_now + a.ttl_us * interval '1 microsecond', l.cap_at))
            FROM asked a
            WHERE l.ns = p_ns AND l.name = a.name AND a.mine AND a.ttl_us > 0
                AND NOT EXISTS (SELECT FROM asked o WHERE o.number = a.number AND o.mine IS NOT TRUE)
            RETURNING a.at, l.expires_at
        )
        SELECT
            a.number,
            CASE
                WHEN a.mine THEN soldonce_lease_us(coalesce(r.expires_at, a.expires_at) - v_now)
                WHEN a.live THEN -1
                ELSE 0
            END,
            coalesce(a.current, 0)
        FROM asked a LEFT JOIN renewed r ON r.at = a.at
        ORDER BY a.at;
END $$;
