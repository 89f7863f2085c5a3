//! Idempotency records.

use soldonce_core::Rejection;

use crate::ledger::RequestKey;
use crate::ledger::batch::replay;
use crate::ledger::rows::Damaged;
use crate::ledger::rows::reader::Reader;
use crate::ledger::rows::replies;
use crate::reply::StoredReply;

pub(in super::super) const RECORDS: &str = "-- records
SELECT key, fingerprint, kind, subject, body FROM idempotency WHERE key = ANY ($1)";

/// Deletes old records, some at a time, except those of kind 7,
/// [`ReplyKind::GivenBack`](crate::reply::ReplyKind::GivenBack).
pub(in super::super) const FORGET_RECORDS: &str = "-- forget_records
DELETE FROM idempotency WHERE key IN
    (SELECT key FROM idempotency WHERE at < $1 AND kind <> 7
     ORDER BY at LIMIT 1000 FOR UPDATE SKIP LOCKED)";

/// The stored answer to a key.
pub(in super::super) struct Record {
    pub(in super::super) key: RequestKey,
    pub(in super::super) reply: StoredReply,
}

impl Record {
    /// Returns the stored answer to a request with its key. Fails if `asked` is another request.
    pub(in super::super) fn replay(&self, asked: RequestKey) -> Result<StoredReply, Rejection> {
        replay(self.key, &self.reply, asked)
    }
}

pub(in super::super) fn get(row: &mut Reader<'_>) -> Result<Record, Damaged> {
    let (key, reply) = (replies::get_key(row)?, replies::get(row)?);
    Ok(Record { key, reply })
}
