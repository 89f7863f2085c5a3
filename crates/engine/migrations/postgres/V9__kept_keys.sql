-- Keys of refunds and cancellations (kind 7) are kept as long as the booking: the others alone are
-- looked through for old ones.
DROP INDEX idempotency_by_age;
CREATE INDEX idempotency_by_age ON idempotency (at) WHERE kind <> 7;
