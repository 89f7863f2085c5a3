-- Settings for the rest of this transaction. They cannot be session settings: behind a pool in
-- transaction mode the next statement may meet another session.
CREATE OR REPLACE FUNCTION soldonce_lease_settings() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    -- Who has to wait longer is refused, and asks again.
    PERFORM set_config('lock_timeout', '200ms', true);
    -- A grant that a crash could take back must not be answered. Stricter settings stay.
    IF current_setting('synchronous_commit') = 'off' THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
END $$;

-- Microseconds of a span; never below 0. NULL stays NULL.
CREATE OR REPLACE FUNCTION soldonce_lease_us(span interval) RETURNS bigint
LANGUAGE sql IMMUTABLE STRICT AS $$ SELECT greatest(0, (extract(epoch FROM span) * 1000000)::bigint) $$;
