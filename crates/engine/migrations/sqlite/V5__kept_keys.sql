-- What was answered to refunds and cancellations with an idempotency key; kept as long as the booking.
CREATE TABLE kept_replies (
    key          BLOB PRIMARY KEY,      -- of caller, route and key
    fingerprint  BLOB NOT NULL,         -- of path and body
    kind         INTEGER NOT NULL,
    subject      BLOB NOT NULL,         -- the booking
    body         BLOB NOT NULL,         -- JSON without its last brace
    checksum     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

PRAGMA user_version = 5;                -- the version in this file's name
