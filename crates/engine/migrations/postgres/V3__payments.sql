-- What a payment is beside its state: amounts and the intent at the provider, as JSON. Present where
-- `payment` is.
ALTER TABLE bookings ADD COLUMN payment_detail text;

-- Payments that are not at their end, and money that must go back: what the reconciler looks through.
CREATE INDEX bookings_unsettled ON bookings (created_at) WHERE payment < 4 OR state = 6;

-- kind 4: authorise. A refund has the total that is to have gone back when it is done, by which it is
-- told from the others of its booking. An effect that a server works on is left to it for a while.
ALTER TABLE outbox ADD COLUMN total bigint,
                   ADD COLUMN taken_by bytea,
                   ADD COLUMN taken_until bigint NOT NULL DEFAULT 0;

-- What is not done yet. Effects of one booking are carried out one after the other.
CREATE INDEX outbox_open ON outbox (booking, n) WHERE done_at IS NULL;
