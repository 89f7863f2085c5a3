-- Statements of one event share its row, and of a few servers one always has it: whoever renews the event
-- would wait for ever. Turns are fair: he waits for those before him, those after him wait for him. What
-- was decided longer ago than the clocks may be off is void, so nobody waits longer for a turn; for a row
-- he does.
WITH turn AS MATERIALIZED (
    SELECT CASE
        WHEN set_config('lock_timeout', '200', true) IS NULL THEN false
        WHEN CASE WHEN $2 THEN pg_advisory_xact_lock(731030761, $1)
                  ELSE pg_advisory_xact_lock_shared(731030761, $1) END IS NULL THEN false
        ELSE set_config('lock_timeout', '3000', true) IS NOT NULL
    END AS is_taken
)
