-- Cause 14, clock_corrected: the ledger's clock was set back by its operator, and the ends of holds with it. A
-- unit that stays as it is says so in an event without holds.
CREATE OR REPLACE VIEW audit_in_words AS
SELECT events.id AS event, unit_no, audit.version, to_timestamp(at / 1000.0) AS at,
       (ARRAY['held', 'extended', 'changed', 'pinned', 'unpinned', 'released', 'expired', 'revoked',
              'confirmed', 'sold_directly', 'cancelled', 'exchanged', 'blocked', 'unblocked',
              'clock_corrected'])[cause + 1]
           AS cause,
       encode(hold, 'hex') AS hold, encode(to_owner, 'hex') AS owner, fence,
       encode(actor, 'hex') AS actor, request, reason
FROM audit JOIN events USING (event_no);
