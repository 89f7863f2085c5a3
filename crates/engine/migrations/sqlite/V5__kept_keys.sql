-- What was answered to refunds and cancellations with an idempotency key; kept as long as the booking.
CREATE TABLE kept_replies (
    key          BLOB PRIMARY KEY,      -- of caller, route and key
    fingerprint  BLOB NOT NULL,         -- of path and body
    kind         INTEGER NOT NULL,
    subject      BLOB NOT NULL,         -- the booking
    body         BLOB NOT NULL,         -- JSON without its last brace
    checksum     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- payment 10: declined, another card may pay. It is not at its end.
DROP INDEX bookings_unsettled;
CREATE INDEX bookings_unsettled ON bookings (created_at)
    WHERE payment < 4 OR payment = 10 OR state = 6;

PRAGMA user_version = 5;                -- the version in this file's name
