-- Epochs of lease namespaces: the upper halves of fencing tokens. A number is durable here before it
-- is used, and given once, so that tokens rise though the lease backend loses its data.
CREATE TABLE epochs (
    namespace  TEXT PRIMARY KEY,
    epoch      INTEGER NOT NULL CHECK (epoch BETWEEN 1 AND 2097151),
    checksum   INTEGER NOT NULL
) STRICT;

PRAGMA user_version = 2;                -- the version in this file's name
