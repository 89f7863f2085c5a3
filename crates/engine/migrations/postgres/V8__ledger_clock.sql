-- When the machine's clock steps back, the ledger's is ahead of it and runs at half its speed, until
-- both are the same at `meet`. `ahead`, of servers before this, is 0 from now on.
ALTER TABLE clock ADD COLUMN meet bigint NOT NULL DEFAULT 0;
UPDATE clock
SET meet = floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint + 2 * ahead, ahead = 0
WHERE ahead > 0;

-- The ledger's clock when the machine's reads `machine`, both in milliseconds since 1970. PL/pgSQL keeps
-- the plan for the session.
CREATE FUNCTION ledger_clock(machine bigint DEFAULT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint)
RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    RETURN (SELECT greatest(machine, (machine + meet) / 2) FROM clock);
END $$;
