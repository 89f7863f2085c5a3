-- The ledger of one deployment. If you know SQL, start here.
--
-- Words are those of the model: a unit is a seat or a place of an area; a hold is a timed claim on
-- units; a booking is the durable sale. Times are milliseconds since 1970-01-01 UTC on the ledger's
-- clock. Ids of 16 bytes begin with 48 bits of time, so keys rise and new rows go to the end.
-- Only one thread of one process writes here; opening a copy with any SQLite to read is harmless.
--
-- `checksum` covers the values of its row and is tested whenever the row is read: SQLite does not
-- notice flipped bits. At the end stand two views with words in place of numbers.

-- Seat plans as they were given. An event's chart never changes; events may share one.
CREATE TABLE charts (
    chart_no  INTEGER PRIMARY KEY,
    document  BLOB NOT NULL,            -- JSON, as it came
    sha256    BLOB NOT NULL,            -- of the document: the same plan is kept once
    units     INTEGER NOT NULL,
    -- SHA-256 of all unit names and categories in unit order. Rows below name units by number, so a
    -- reader that numbers this document differently must not start.
    digest    BLOB NOT NULL
) STRICT;

-- What is sold: one performance, sale or day of slots.
CREATE TABLE events (
    event_no     INTEGER PRIMARY KEY,   -- dense from 0
    id           TEXT NOT NULL UNIQUE,
    name         TEXT NOT NULL,
    starts_at    INTEGER,
    currency     TEXT NOT NULL,
    chart_no     INTEGER NOT NULL,
    prices       TEXT NOT NULL,         -- JSON: minor units, by number of the category
    policy       TEXT NOT NULL,         -- JSON
    cancelled    TEXT,                  -- the reason, once it is called off
    created_at   INTEGER NOT NULL,
    fingerprint  BLOB NOT NULL,         -- SHA-256 of the request that made it
    checksum     INTEGER NOT NULL
) STRICT;

-- One row for each unit that ever changed; a unit without a row is free, fence 0, version 0.
-- state: 0 free, 1 held, 2 sold, 3 blocked.
CREATE TABLE units (
    event_no  INTEGER NOT NULL,
    unit_no   INTEGER NOT NULL,
    state     INTEGER NOT NULL CHECK (state BETWEEN 0 AND 3),
    owner     BLOB,                     -- the hold when held, the booking when sold
    until     INTEGER,                  -- when held: over from this point of time on
    fence     INTEGER NOT NULL,         -- rises with every change of owner
    version   INTEGER NOT NULL,         -- rises by one with every transition
    checksum  INTEGER NOT NULL,
    PRIMARY KEY (event_no, unit_no),
    CHECK ((owner IS NOT NULL) = (state IN (1, 2)) AND (until IS NOT NULL) = (state = 1))
) STRICT, WITHOUT ROWID;

-- state: 0 active, 1 pinned, 2 consumed, 3 released, 4 expired, 5 revoked.
CREATE TABLE holds (
    id              BLOB PRIMARY KEY,
    event_no        INTEGER NOT NULL,
    caller          BLOB NOT NULL,      -- the API key or session that speaks for the holder
    holder          TEXT NOT NULL,
    state           INTEGER NOT NULL CHECK (state BETWEEN 0 AND 5),
    booking         BLOB,               -- when pinned or consumed
    reason          TEXT,               -- when revoked
    fence           INTEGER NOT NULL,
    units           BLOB NOT NULL,      -- unit, price, version of each, packed
    created_at      INTEGER NOT NULL,
    expires_at      INTEGER NOT NULL,
    max_expires_at  INTEGER NOT NULL,
    together        INTEGER,            -- when the engine chose: whether they are neighbours
    checksum        INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- state: 0 pending_payment, 1 confirmed, 2 partly_cancelled, 3 cancelled, 4 failed, 5 expired,
-- 6 needs_refund, 7 refunded. payment: 0 created, 1 action_required, 2 processing, 3 authorised,
-- 4 captured, 5 partly_refunded, 6 refunded, 7 failed, 8 voided, 9 lapsed; null without a provider.
CREATE TABLE bookings (
    id            BLOB PRIMARY KEY,
    event_no      INTEGER NOT NULL,
    caller        BLOB NOT NULL,
    holder        TEXT NOT NULL,
    hold          BLOB,                 -- null for a box-office sale
    state         INTEGER NOT NULL CHECK (state BETWEEN 0 AND 7),
    fence         INTEGER NOT NULL,
    lines         INTEGER NOT NULL,     -- how many rows it has in lines
    sold          INTEGER NOT NULL,     -- how many of them are sold now
    reference     TEXT,
    payment       INTEGER,
    created_at    INTEGER NOT NULL,
    confirmed_at  INTEGER,
    checksum      INTEGER NOT NULL,
    holder_key    INTEGER NOT NULL      -- 64 bits of caller and holder
) STRICT, WITHOUT ROWID;

-- A holder's own bookings. The key is narrow: it goes to a random place with every sale.
CREATE INDEX bookings_of_holder ON bookings (holder_key);

-- The units of a booking. state: 0 pending, 1 sold, 2 cancelled.
CREATE TABLE lines (
    booking   BLOB NOT NULL,
    n         INTEGER NOT NULL,         -- from 0, in unit order
    event_no  INTEGER NOT NULL,
    unit_no   INTEGER NOT NULL,
    price     INTEGER NOT NULL,
    version   INTEGER NOT NULL,         -- of the unit after the line's last transition
    state     INTEGER NOT NULL CHECK (state BETWEEN 0 AND 2),
    checksum  INTEGER NOT NULL,
    PRIMARY KEY (booking, n)
) STRICT, WITHOUT ROWID;

-- The ledger's own refusal to sell a unit twice, whatever the code above it believes.
CREATE UNIQUE INDEX sold_unit_key ON lines (event_no, unit_no) WHERE state = 1;

-- Every transition of every unit, written in the commit that made it; never changed afterwards.
-- cause: 0 held, 1 extended, 2 changed, 3 pinned, 4 unpinned, 5 released, 6 expired, 7 revoked,
-- 8 confirmed, 9 sold_directly, 10 cancelled, 11 exchanged, 12 blocked, 13 unblocked.
CREATE TABLE audit (
    event_no    INTEGER NOT NULL,
    seq         INTEGER NOT NULL,       -- commits of the event, dense from 1
    n           INTEGER NOT NULL,       -- transitions of the commit, from 0
    at          INTEGER NOT NULL,
    unit_no     INTEGER NOT NULL,
    from_state  INTEGER NOT NULL,
    from_owner  BLOB,
    from_until  INTEGER,
    to_state    INTEGER NOT NULL,
    to_owner    BLOB,
    to_until    INTEGER,
    fence       INTEGER NOT NULL,       -- after it
    version     INTEGER NOT NULL,       -- after it
    cause       INTEGER NOT NULL,
    hold        BLOB,                   -- in whose name; null for staff and bookings
    actor       BLOB,                   -- an API key or a session; null for the engine itself
    request     TEXT NOT NULL,
    reason      TEXT,
    hash        BLOB NOT NULL,          -- SHA-256 of the hash before it and this row's values
    PRIMARY KEY (event_no, seq, n)
) STRICT, WITHOUT ROWID;

-- The end of each event's audit.
CREATE TABLE chains (
    event_no  INTEGER PRIMARY KEY,
    seq       INTEGER NOT NULL,         -- of the last commit
    steps     INTEGER NOT NULL,         -- rows in the audit = sum of all unit versions
    hash      BLOB NOT NULL,            -- of the last row
    checksum  INTEGER NOT NULL
) STRICT;

-- What was answered to requests with an idempotency key; kept for 24 hours. The keys are read at
-- start, the replies only when the same request comes again.
CREATE TABLE idempotency (
    n            INTEGER PRIMARY KEY,
    key          BLOB NOT NULL,         -- of caller, route and key
    fingerprint  BLOB NOT NULL,         -- of path and body
    at           INTEGER NOT NULL,
    checksum     INTEGER NOT NULL
) STRICT;

CREATE TABLE replies (
    n         INTEGER PRIMARY KEY,      -- as in idempotency
    kind      INTEGER NOT NULL,
    subject   BLOB NOT NULL,            -- the hold or booking
    body      BLOB NOT NULL,            -- JSON without its last brace
    checksum  INTEGER NOT NULL
) STRICT;

-- What must be done outside, recorded in the commit that caused it.
-- kind: 0 capture, 1 void, 2 refund, 3 cancel_intent.
CREATE TABLE outbox (
    n         INTEGER PRIMARY KEY,
    at        INTEGER NOT NULL,
    kind      INTEGER NOT NULL,
    booking   BLOB NOT NULL,
    amount    INTEGER,                  -- of a refund
    done_at   INTEGER,
    checksum  INTEGER NOT NULL          -- without done_at
) STRICT;

-- API keys: only their hashes.
CREATE TABLE api_keys (
    id          BLOB PRIMARY KEY,
    name        TEXT NOT NULL,
    scopes      TEXT NOT NULL,          -- words separated by commas
    sha256      BLOB NOT NULL,
    created_at  INTEGER NOT NULL,
    revoked_at  INTEGER,
    checksum    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Secrets from which hold secrets and sessions are derived. Whoever reads them can end any hold:
-- keep copies of this file as you keep keys.
CREATE TABLE master_keys (
    version   INTEGER PRIMARY KEY,
    secret    BLOB NOT NULL,
    checksum  INTEGER NOT NULL
) STRICT;

-- One row: where the ledger stands. The file `high-water` beside this one repeats `commits` and
-- `hash`; a ledger behind it has lost commits and refuses to start.
CREATE TABLE head (
    one       INTEGER PRIMARY KEY CHECK (one = 1),
    commits   INTEGER NOT NULL,
    hash      BLOB NOT NULL,            -- runs over all commits
    clock     INTEGER NOT NULL,         -- the latest time a commit was made at: it never goes back
    checksum  INTEGER NOT NULL
) STRICT;

-- For people: units and their history in words.
CREATE VIEW units_in_words AS
SELECT events.id AS event, unit_no,
       CASE state WHEN 0 THEN 'free' WHEN 1 THEN 'held' WHEN 2 THEN 'sold' ELSE 'blocked' END AS state,
       lower(hex(owner)) AS owner, datetime(until / 1000, 'unixepoch') AS until, fence, version
FROM units JOIN events USING (event_no);

CREATE VIEW audit_in_words AS
SELECT events.id AS event, seq, n, datetime(at / 1000, 'unixepoch') AS at, unit_no,
       CASE cause WHEN 0 THEN 'held' WHEN 1 THEN 'extended' WHEN 2 THEN 'changed'
                  WHEN 3 THEN 'pinned' WHEN 4 THEN 'unpinned' WHEN 5 THEN 'released'
                  WHEN 6 THEN 'expired' WHEN 7 THEN 'revoked' WHEN 8 THEN 'confirmed'
                  WHEN 9 THEN 'sold_directly' WHEN 10 THEN 'cancelled' WHEN 11 THEN 'exchanged'
                  WHEN 12 THEN 'blocked' ELSE 'unblocked' END AS cause,
       lower(hex(hold)) AS hold, lower(hex(to_owner)) AS owner, fence, version,
       lower(hex(actor)) AS actor, request, reason
FROM audit JOIN events USING (event_no);

PRAGMA application_id = 0x534F4C44;     -- "SOLD"
PRAGMA user_version = 1;                -- the version in this file's name
