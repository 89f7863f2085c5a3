-- Events whose policy is the one that they were made with, so that a reader of the audit knows the terms that
-- were in force. An event that was made before this version has no row: whether it changed is not known.
CREATE TABLE steady_terms (
    event_no  INTEGER PRIMARY KEY REFERENCES events (event_no),
    checksum  INTEGER NOT NULL
) STRICT;

PRAGMA user_version = 7;                -- the version in this file's name
