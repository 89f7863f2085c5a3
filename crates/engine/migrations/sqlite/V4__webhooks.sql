-- Where news of holds and bookings goes. Their signing secrets are derived from the master keys and
-- stand nowhere.
CREATE TABLE webhook_endpoints (
    id          BLOB PRIMARY KEY,
    url         TEXT NOT NULL,
    kinds       INTEGER NOT NULL,       -- bit n is set: it wants messages of kind n
    rotation    INTEGER NOT NULL,       -- how often its secret was changed
    rotated_at  INTEGER,
    created_at  INTEGER NOT NULL,
    disabled_at INTEGER,                -- since when nothing is sent to it; what it would hear waits
    quiet_until INTEGER,                -- it asked not to be called before
    checksum    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- One row for each message and endpoint, written in the commit that the message tells of.
-- kind: 0 hold.expired, 1 booking.confirmed, 2 booking.cancelled, 3 booking.refunded,
-- 4 booking.exchanged. state: 0 open, 1 delivered, 2 given up.
CREATE TABLE deliveries (
    n         INTEGER PRIMARY KEY,
    endpoint  BLOB NOT NULL,
    message   BLOB NOT NULL,
    kind      INTEGER NOT NULL,
    subject   BLOB NOT NULL,            -- the hold, or a booking without one: its messages wait in line
    at        INTEGER NOT NULL,
    body      TEXT NOT NULL,            -- JSON, as it is signed and sent
    state     INTEGER NOT NULL CHECK (state BETWEEN 0 AND 2),
    attempts  INTEGER NOT NULL,
    status    INTEGER,                  -- of HTTP, of the last attempt; null without an answer
    problem   TEXT,                     -- why the last attempt failed
    tried_at  INTEGER,
    next_at   INTEGER,                  -- when open
    checksum  INTEGER NOT NULL          -- of the columns down to body
) STRICT;

CREATE INDEX deliveries_due ON deliveries (endpoint, next_at) WHERE state = 0;
CREATE INDEX deliveries_in_line ON deliveries (endpoint, subject, n) WHERE state = 0;
CREATE INDEX deliveries_of_endpoint ON deliveries (endpoint, n);
CREATE INDEX deliveries_over ON deliveries (at) WHERE state > 0;

PRAGMA user_version = 4;                -- the version in this file's name
