-- When the policy or the state of an event was last changed, which no transition tells; nothing if it never was. One
-- that was called off before this version may have been called off in the last commit.
ALTER TABLE events ADD COLUMN changed_at INTEGER;
UPDATE events SET changed_at = (SELECT clock FROM head) WHERE cancelled IS NOT NULL;

PRAGMA user_version = 11;               -- the version in this file's name
