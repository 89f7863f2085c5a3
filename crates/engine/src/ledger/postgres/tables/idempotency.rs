//! Idempotency records.

pub(in super::super) const RECORDS: &str = "-- records
SELECT key, fingerprint, kind, subject, body FROM idempotency WHERE key = ANY ($1)";

/// Deletes old records, some at a time, except those of kind 7,
/// [`ReplyKind::GivenBack`](crate::reply::ReplyKind::GivenBack).
pub(in super::super) const FORGET_RECORDS: &str = "-- forget_records
DELETE FROM idempotency WHERE key IN
    (SELECT key FROM idempotency WHERE at < $1 AND kind <> 7
     ORDER BY at LIMIT 1000 FOR UPDATE SKIP LOCKED)";
