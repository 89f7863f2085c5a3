-- A ledger may move to another cluster, by pg_dump or by logical replication. There transactions are
-- counted anew, from a lower number perhaps, and whoever asks for batches from some transaction on
-- would wait for years. So numbers of transactions are stored with a shift: it rises with such a
-- move, and everything written before the move is lower than everything after it.
ALTER TABLE sequencer ADD COLUMN shift bigint NOT NULL DEFAULT 0;

CREATE FUNCTION shifted_xid() RETURNS xid8 LANGUAGE sql VOLATILE AS $$
    SELECT (pg_current_xact_id()::text::bigint + (SELECT shift FROM sequencer WHERE one = 1))::text::xid8
$$;

ALTER TABLE batches ALTER COLUMN xid SET DEFAULT shifted_xid();
