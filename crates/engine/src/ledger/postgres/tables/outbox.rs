//! The outbox: effects outside the ledger, recorded in the commit that caused them.

/// Takes the oldest effect of each booking that no other server works on. A server that asks again
/// keeps what it has, and stores that when half of the time is over.
pub(in super::super) const TAKE_EFFECTS: &str = "-- take_effects
WITH first AS MATERIALIZED (
    SELECT DISTINCT ON (booking) n, booking FROM outbox WHERE done_at IS NULL ORDER BY booking, n
), free AS MATERIALIZED (
    SELECT o.n, o.taken_until FROM outbox o JOIN first USING (n)
    WHERE o.done_at IS NULL AND (o.taken_by = $1 OR o.taken_until <= $2)
    ORDER BY o.n LIMIT $4 FOR UPDATE OF o SKIP LOCKED
), taken AS (
    UPDATE outbox o SET taken_by = $1, taken_until = $3
    FROM free WHERE o.n = free.n AND free.taken_until < ($2 + $3) / 2
)
SELECT o.at, o.kind, o.booking, o.amount, o.total FROM outbox o JOIN free USING (n) ORDER BY n";

/// Selects the oldest effect of each booking, also those that other servers work on.
pub(in super::super) const OVERDUE_EFFECTS: &str = "-- overdue_effects
SELECT at, kind, booking, amount, total FROM (
    SELECT DISTINCT ON (booking) n, at, kind, booking, amount, total
    FROM outbox WHERE done_at IS NULL ORDER BY booking, n
) first WHERE at < $1 ORDER BY n";
