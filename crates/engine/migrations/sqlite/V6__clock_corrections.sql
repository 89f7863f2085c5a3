-- Cause 14, clock_corrected: the clock of a stopped ledger was set back by its operator, and the ends of holds
-- with it. A unit that stays as it is says so in an event without holds.
DROP VIEW audit_in_words;
CREATE VIEW audit_in_words AS
SELECT events.id AS event, seq, n, datetime(at / 1000, 'unixepoch') AS at, unit_no,
       CASE cause WHEN 0 THEN 'held' WHEN 1 THEN 'extended' WHEN 2 THEN 'changed'
                  WHEN 3 THEN 'pinned' WHEN 4 THEN 'unpinned' WHEN 5 THEN 'released'
                  WHEN 6 THEN 'expired' WHEN 7 THEN 'revoked' WHEN 8 THEN 'confirmed'
                  WHEN 9 THEN 'sold_directly' WHEN 10 THEN 'cancelled' WHEN 11 THEN 'exchanged'
                  WHEN 12 THEN 'blocked' WHEN 13 THEN 'unblocked' ELSE 'clock_corrected' END AS cause,
       lower(hex(hold)) AS hold, lower(hex(to_owner)) AS owner, fence, version,
       lower(hex(actor)) AS actor, request, reason
FROM audit JOIN events USING (event_no);

PRAGMA user_version = 6;                -- the version in this file's name
