-- What is left of an event that was over and was dropped: its row in `events` keeps its number and its id, and this
-- one says the rest. Where it is, `guards.sql` lets the rows of the event go.
CREATE TABLE dropped_events (
    event_no     INTEGER PRIMARY KEY REFERENCES events (event_no),
    at           INTEGER NOT NULL,
    actor        BLOB,                  -- an API key; null for the engine itself
    request      TEXT NOT NULL,
    seq          INTEGER NOT NULL,      -- of the last commit
    hash         BLOB NOT NULL,         -- of the last row of the audit
    checksum     INTEGER NOT NULL,      -- of the columns above
    units        INTEGER NOT NULL DEFAULT 0,    -- rows that were deleted so far
    bookings     INTEGER NOT NULL DEFAULT 0,
    transitions  INTEGER NOT NULL DEFAULT 0,
    is_cleared   INTEGER NOT NULL DEFAULT 0     -- 1 once none is left
) STRICT;

-- What goes with a booking.
CREATE INDEX outbox_done ON outbox (booking) WHERE done_at IS NOT NULL;
CREATE INDEX kept_replies_of_booking ON kept_replies (subject);
