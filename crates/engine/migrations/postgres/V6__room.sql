-- A batch of holds writes no more pages and index entries than it must: there is room beside a row for
-- what it becomes, and a unit that was found and locked is not looked up again. Pages that are full already
-- stay as they are.

-- A free seat takes 68 bytes of its page, one that is held 92: with 42 of 100 filled, every seat of a page
-- has room for its first hold there, and the index need not be told.
ALTER TABLE units SET (fillfactor = 42);

-- What a batch of some dozens touched fits into its row; the ids in it are random and would be compressed
-- in vain.
ALTER TABLE batches SET (toast_tuple_target = 8160);

-- One row for a unit that a batch rests on: the version it was seen with, and what it becomes; those columns
-- are null for one that was only looked at. In place of seen_unit and unit_row, which stay for servers that
-- run on while this is carried out; a later migration drops them.
CREATE TYPE touched_unit AS (
    unit_no  integer,
    seen     bigint,
    state    smallint,
    owner    bytea,
    until    bigint,
    fence    bigint,
    version  bigint
);
