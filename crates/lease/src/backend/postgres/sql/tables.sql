-- The tables of the lease backend. If you know SQL, start here.
--
-- A lease is a row that is believed until `expires_at`, on this server's clock. Nothing has to
-- clean up for it to end: an expired row means "free".

-- One row for each name that was leased in the last day.
CREATE TABLE IF NOT EXISTS soldonce_lease (
    ns         text COLLATE "C" NOT NULL,
    -- The name, or `group/name`. COLLATE "C": everybody locks rows in one order, which prevents
    -- deadlocks, in every locale of the database.
    name       text COLLATE "C" NOT NULL,
    -- Secret of the holder, 16 bytes; NULL once it was released.
    owner      bytea,
    -- Fencing token of the newest grant; stays after the release.
    token      bigint NOT NULL DEFAULT 0,
    born_at    timestamptz NOT NULL DEFAULT '-infinity',
    -- The holder's until then. Also tells since when the row is idle.
    expires_at timestamptz NOT NULL DEFAULT '-infinity',
    -- No renewal reaches beyond it; NULL is for ever.
    cap_at     timestamptz,
    -- Text of the holder, for people who look.
    meta       text NOT NULL DEFAULT '',
    PRIMARY KEY (ns, name)
)
-- Room for new versions of a row in its page. No column that changes is indexed, so a grant or a
-- renewal touches no index.
WITH (fillfactor = 50);

-- The upper half of fencing tokens, one row for each namespace. It only rises.
CREATE TABLE IF NOT EXISTS soldonce_lease_epoch (
    ns    text COLLATE "C" NOT NULL PRIMARY KEY,
    epoch integer NOT NULL CHECK (epoch BETWEEN 1 AND 2097151)
)
WITH (fillfactor = 50);

-- Whole fencing tokens for Redlock: the last one given, one row for each namespace.
CREATE TABLE IF NOT EXISTS soldonce_lease_token (
    ns     text COLLATE "C" NOT NULL PRIMARY KEY,
    number bigint NOT NULL CHECK (number BETWEEN 1 AND 9007199254740991)
)
WITH (fillfactor = 50);

-- The lower half of fencing tokens, for all namespaces together. Beyond 2^32 it carries into the
-- upper half, which keeps tokens rising.
CREATE SEQUENCE IF NOT EXISTS soldonce_lease_counter AS bigint;
