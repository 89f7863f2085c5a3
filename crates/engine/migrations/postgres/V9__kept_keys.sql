-- Keys of refunds and cancellations (kind 7) are kept as long as the booking: the others alone are
-- looked through for old ones.
DROP INDEX idempotency_by_age;
CREATE INDEX idempotency_by_age ON idempotency (at) WHERE kind <> 7;

-- payment 10: declined, another card may pay. It is not at its end.
DROP INDEX bookings_unsettled;
CREATE INDEX bookings_unsettled ON bookings (created_at)
    WHERE payment < 4 OR payment = 10 OR state = 6;
