-- The ledger of one deployment, shared by many servers. If you know SQL, start here.
--
-- Words are those of the model: a unit is a seat or a place of an area; a hold is a timed claim on
-- units; a booking is the durable sale. Times are milliseconds since 1970-01-01 UTC on this
-- database's clock. Ids of 16 bytes begin with 48 bits of time, so keys rise. Small numbers for
-- states and causes are those of the SQLite ledger.
--
-- Servers decide from what they remember of an event and write with guards: every statement names
-- the versions of all rows it was decided on, and writes nothing when one of them has moved. What
-- changes with each hold is never indexed, so that updates stay in their page.

-- Seat plans as they were given. An event's chart never changes; events may share one.
CREATE TABLE charts (
    chart_no  bigint PRIMARY KEY,
    document  bytea NOT NULL,           -- JSON, as it came
    sha256    bytea NOT NULL UNIQUE,    -- of the document: the same plan is kept once
    units     integer NOT NULL,
    -- SHA-256 of all unit names and categories in unit order. Rows below name units by number, so a
    -- reader that numbers this document differently must not start.
    digest    bytea NOT NULL
);

-- What is sold: one performance, sale or day of slots.
CREATE TABLE events (
    event_no     integer PRIMARY KEY,   -- dense from 0
    id           text COLLATE "C" NOT NULL UNIQUE,
    name         text NOT NULL,
    starts_at    bigint,
    currency     text NOT NULL,
    chart_no     bigint NOT NULL REFERENCES charts,
    prices       text NOT NULL,         -- JSON: minor units, by number of the category
    policy       text NOT NULL,         -- JSON
    cancelled    text,                  -- the reason, once it is called off
    created_at   bigint NOT NULL,
    fingerprint  bytea NOT NULL,        -- SHA-256 of the request that made it
    version      bigint NOT NULL        -- rises with every change of policy or state
);

-- One row for each unit, made with its event. state: 0 free, 1 held, 2 sold, 3 blocked.
CREATE TABLE units (
    event_no  integer NOT NULL,
    unit_no   integer NOT NULL,
    state     smallint NOT NULL DEFAULT 0 CHECK (state BETWEEN 0 AND 3),
    owner     bytea,                    -- the hold when held, the booking when sold
    until     bigint,                   -- when held: over from this point of time on
    fence     bigint NOT NULL DEFAULT 0,    -- rises with every change of owner
    version   bigint NOT NULL DEFAULT 0,    -- rises by one with every transition
    token     bigint NOT NULL DEFAULT 0,    -- of the lease under which it was last written, if any
    PRIMARY KEY (event_no, unit_no),
    CHECK ((owner IS NOT NULL) = (state IN (1, 2)) AND (until IS NOT NULL) = (state = 1))
) WITH (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.05);

-- state: 0 active, 1 pinned, 2 consumed, 3 released, 4 expired, 5 revoked.
CREATE TABLE holds (
    id              bytea PRIMARY KEY,
    event_no        integer NOT NULL,
    caller          bytea NOT NULL,     -- the API key or session that speaks for the holder
    holder          text NOT NULL,
    state           smallint NOT NULL CHECK (state BETWEEN 0 AND 5),
    booking         bytea,              -- when pinned or consumed
    reason          text,               -- when revoked
    fence           bigint NOT NULL,
    units           bytea NOT NULL,     -- unit, price, version of each, packed; see audit for them
    created_at      bigint NOT NULL,
    expires_at      bigint NOT NULL,
    max_expires_at  bigint NOT NULL,
    together        boolean             -- when the engine chose: whether they are neighbours
) WITH (fillfactor = 80);

-- What counts against the budgets of a holder. A row moves whenever he takes units, so that two
-- servers cannot both believe that he has room for more.
CREATE TABLE holders (
    event_no  integer NOT NULL,
    key       bytea NOT NULL,           -- 16 bytes of SHA-256 of caller and holder
    caller    bytea NOT NULL,
    holder    text NOT NULL,
    bought    integer NOT NULL,         -- units he has bought
    version   bigint NOT NULL,
    PRIMARY KEY (event_no, key)
) WITH (fillfactor = 80);

-- state: 0 pending_payment, 1 confirmed, 2 partly_cancelled, 3 cancelled, 4 failed, 5 expired,
-- 6 needs_refund, 7 refunded. payment: 0 created, 1 action_required, 2 processing, 3 authorised,
-- 4 captured, 5 partly_refunded, 6 refunded, 7 failed, 8 voided, 9 lapsed; null without a provider.
CREATE TABLE bookings (
    id            bytea PRIMARY KEY,
    event_no      integer NOT NULL,
    caller        bytea NOT NULL,
    holder        text NOT NULL,
    holder_key    bytea NOT NULL,       -- as holders.key
    hold          bytea,                -- null for a box-office sale
    state         smallint NOT NULL CHECK (state BETWEEN 0 AND 7),
    fence         bigint NOT NULL,
    reference     text,
    payment       smallint,
    created_at    bigint NOT NULL,
    confirmed_at  bigint,
    version       bigint NOT NULL       -- rises with every change
) WITH (fillfactor = 80);

CREATE INDEX bookings_of_holder ON bookings (holder_key, id);

-- The units of a booking. state: 0 pending, 1 sold, 2 cancelled.
CREATE TABLE lines (
    booking   bytea NOT NULL REFERENCES bookings,
    n         integer NOT NULL,         -- from 0, in unit order
    event_no  integer NOT NULL,
    unit_no   integer NOT NULL,
    price     bigint NOT NULL,
    version   bigint NOT NULL,          -- of the unit after the line's last transition
    state     smallint NOT NULL CHECK (state BETWEEN 0 AND 2),
    PRIMARY KEY (booking, n)
);

-- The ledger's own refusal to sell a unit twice, whatever the servers believe.
CREATE UNIQUE INDEX sold_unit_key ON lines (event_no, unit_no) WHERE state = 1;

-- One row for each statement that wrote: what it touched, for servers that remember the event, and
-- its place in the order of all. Numbers for the feed are given afterwards, see feed.
CREATE TABLE batches (
    id        bytea PRIMARY KEY,        -- minted by the server before it is sent
    event_no  integer NOT NULL,         -- -1 for one that was given up
    server    bytea NOT NULL,           -- of one process
    xid       xid8 NOT NULL DEFAULT pg_current_xact_id(),
    place     bigint NOT NULL,          -- drawn while all its rows were locked
    at        bigint NOT NULL,
    commands  integer NOT NULL,         -- that made transitions
    renews    boolean NOT NULL,         -- whether the event itself changed
    units     integer[] NOT NULL,       -- of each transition, beside versions
    versions  bigint[] NOT NULL,
    holds     bytea[] NOT NULL,
    bookings  bytea[] NOT NULL,
    holders   bytea[] NOT NULL          -- keys
);

CREATE INDEX batches_of_event ON batches (event_no, xid);
CREATE INDEX batches_by_xid ON batches (xid);
CREATE SEQUENCE places;

-- Every transition of every unit, written in the commit that made it; never changed afterwards. The
-- key is a second guard: version n of a unit happens once.
-- cause: 0 held, 1 extended, 2 changed, 3 pinned, 4 unpinned, 5 released, 6 expired, 7 revoked,
-- 8 confirmed, 9 sold_directly, 10 cancelled, 11 exchanged, 12 blocked, 13 unblocked.
CREATE TABLE audit (
    event_no    integer NOT NULL,
    unit_no     integer NOT NULL,
    version     bigint NOT NULL,        -- after it
    batch       bytea NOT NULL,
    command     integer NOT NULL,       -- of the batch, from 0
    n           integer NOT NULL,       -- of the command, from 0
    at          bigint NOT NULL,
    from_state  smallint NOT NULL,
    from_owner  bytea,
    from_until  bigint,
    to_state    smallint NOT NULL,
    to_owner    bytea,
    to_until    bigint,
    fence       bigint NOT NULL,        -- after it
    cause       smallint NOT NULL,
    hold        bytea,                  -- in whose name; null for staff and bookings
    actor       bytea,                  -- an API key or a session; null for the engine itself
    request     text NOT NULL,
    reason      text,
    PRIMARY KEY (event_no, unit_no, version)
);

-- The numbers of commits, dense for each event: batch has first_seq and those after it, one for
-- each of its commands. Whoever has the row of sequencer locked writes here, one server at a time.
CREATE TABLE feed (
    n          bigint PRIMARY KEY,      -- over all events, in the order of writing
    event_no   integer NOT NULL,
    first_seq  bigint NOT NULL,
    commands   integer NOT NULL,
    batch      bytea NOT NULL UNIQUE,
    hash       bytea NOT NULL,          -- of the event's audit up to here: a chain
    UNIQUE (event_no, first_seq)
);

CREATE TABLE feed_heads (
    event_no  integer PRIMARY KEY,
    seq       bigint NOT NULL,
    hash      bytea NOT NULL
) WITH (fillfactor = 50);

-- Up to which transaction every batch has its number, and the last n of feed.
CREATE TABLE sequencer (
    one  integer PRIMARY KEY CHECK (one = 1),
    xid  bigint NOT NULL,
    n    bigint NOT NULL
) WITH (fillfactor = 10);

-- What was answered to requests with an idempotency key; kept for 24 hours.
CREATE TABLE idempotency (
    key          bytea PRIMARY KEY,     -- of caller, route and key
    fingerprint  bytea NOT NULL,        -- of path and body
    at           bigint NOT NULL,
    kind         smallint NOT NULL,
    subject      bytea NOT NULL,        -- the hold or booking
    body         bytea NOT NULL         -- JSON without its last brace
);

CREATE INDEX idempotency_by_age ON idempotency (at);

-- What must be done outside, recorded in the commit that caused it.
-- kind: 0 capture, 1 void, 2 refund, 3 cancel_intent.
CREATE TABLE outbox (
    n        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at       bigint NOT NULL,
    kind     smallint NOT NULL,
    booking  bytea NOT NULL,
    amount   bigint,                    -- of a refund
    done_at  bigint
);

-- API keys: only their hashes.
CREATE TABLE api_keys (
    id          bytea PRIMARY KEY,
    name        text NOT NULL,
    scopes      text NOT NULL,          -- words separated by commas
    sha256      bytea NOT NULL UNIQUE,
    created_at  bigint NOT NULL,
    revoked_at  bigint
);

-- Secrets from which hold secrets and sessions are derived. Whoever reads them can end any hold:
-- keep copies of this database as you keep keys.
CREATE TABLE master_keys (
    version  integer PRIMARY KEY,
    secret   bytea NOT NULL
);

-- One row: the ledger's time. It never goes back though the machine's clock may; servers push it on
-- a few times a second, and on from where it was when the machine's clock has stepped back.
CREATE TABLE clock (
    one    integer PRIMARY KEY CHECK (one = 1),
    at     bigint NOT NULL,
    ahead  bigint NOT NULL DEFAULT 0    -- of the machine's clock
) WITH (fillfactor = 10);

INSERT INTO clock VALUES (1, 0);
INSERT INTO sequencer VALUES (1, 0, 0);

-- The ledger's own refusal to let a unit go back, whatever the servers believe. The conditions are
-- tested without a call; only a refusal runs the function.
CREATE FUNCTION refuse_step_back() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'unit % of event % would go back: fence % to %, version % to %, token % to %',
        OLD.unit_no, OLD.event_no, OLD.fence, NEW.fence, OLD.version, NEW.version, OLD.token, NEW.token
        USING ERRCODE = 'check_violation', CONSTRAINT = 'units_only_rise';
END $$;

CREATE TRIGGER units_only_rise BEFORE UPDATE ON units FOR EACH ROW
WHEN (NEW.fence < OLD.fence OR NEW.version <= OLD.version OR NEW.token < OLD.token)
EXECUTE FUNCTION refuse_step_back();

CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'rows of % are never changed', TG_TABLE_NAME
        USING ERRCODE = 'check_violation', CONSTRAINT = 'audit_only_grows';
END $$;

CREATE TRIGGER audit_only_grows BEFORE UPDATE OR DELETE ON audit FOR EACH ROW
EXECUTE FUNCTION refuse_change();

-- Ends a statement that wrote another number of rows than it was to write.
CREATE FUNCTION require_rows(what text, written bigint, meant bigint) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    IF written <> meant THEN
        RAISE EXCEPTION '% of % rows of % were written', written, meant, what
            USING ERRCODE = 'check_violation', CONSTRAINT = 'rows_as_meant';
    END IF;
    RETURN true;
END $$;

-- For people: units and their history in words.
CREATE VIEW units_in_words AS
SELECT events.id AS event, unit_no,
       (ARRAY['free', 'held', 'sold', 'blocked'])[state + 1] AS state, encode(owner, 'hex') AS owner,
       to_timestamp(until / 1000.0) AS until, fence, units.version
FROM units JOIN events USING (event_no);

CREATE VIEW audit_in_words AS
SELECT events.id AS event, unit_no, audit.version, to_timestamp(at / 1000.0) AS at,
       (ARRAY['held', 'extended', 'changed', 'pinned', 'unpinned', 'released', 'expired', 'revoked',
              'confirmed', 'sold_directly', 'cancelled', 'exchanged', 'blocked', 'unblocked'])[cause + 1]
           AS cause,
       encode(hold, 'hex') AS hold, encode(to_owner, 'hex') AS owner, fence,
       encode(actor, 'hex') AS actor, request, reason
FROM audit JOIN events USING (event_no);
