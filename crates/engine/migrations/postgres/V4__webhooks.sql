-- Where news of holds and bookings goes. Their signing secrets are derived from the master keys and
-- stand nowhere.
CREATE TABLE webhook_endpoints (
    id          bytea PRIMARY KEY,
    url         text NOT NULL,
    kinds       integer NOT NULL,       -- bit n is set: it wants messages of kind n
    rotation    integer NOT NULL,       -- how often its secret was changed
    rotated_at  bigint,
    created_at  bigint NOT NULL,
    disabled_at bigint,                 -- since when nothing is sent to it; what it would hear waits
    quiet_until bigint                 -- it asked not to be called before
);

-- One row for each message and endpoint, written in the commit that the message tells of.
-- kind: 0 hold.expired, 1 booking.confirmed, 2 booking.cancelled, 3 booking.refunded,
-- 4 booking.exchanged. state: 0 open, 1 delivered, 2 given up.
CREATE TABLE deliveries (
    n            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    endpoint     bytea NOT NULL,
    message      bytea NOT NULL,
    kind         smallint NOT NULL,
    subject      bytea NOT NULL,        -- the hold, or a booking without one: its messages wait in line
    at           bigint NOT NULL,
    body         text NOT NULL,         -- JSON, as it is signed and sent
    state        smallint NOT NULL DEFAULT 0 CHECK (state BETWEEN 0 AND 2),
    attempts     integer NOT NULL DEFAULT 0,
    status       integer,               -- of HTTP, of the last attempt; null without an answer
    problem      text,                  -- why the last attempt failed
    tried_at     bigint,
    next_at      bigint,                -- when open
    taken_by     bytea,                 -- the server that works on it, and until when it may
    taken_until  bigint NOT NULL DEFAULT 0
);

CREATE INDEX deliveries_due ON deliveries (endpoint, next_at) WHERE state = 0;
CREATE INDEX deliveries_in_line ON deliveries (endpoint, subject, n) WHERE state = 0;
CREATE INDEX deliveries_of_endpoint ON deliveries (endpoint, n);
CREATE INDEX deliveries_over ON deliveries (at) WHERE state > 0;
