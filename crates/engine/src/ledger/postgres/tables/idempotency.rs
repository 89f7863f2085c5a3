//! Idempotency records.

use tokio_postgres::Row;

use super::{Columns, Id};
use crate::ledger::rows::Damaged;
use crate::ledger::{Fingerprint, ScopedKey};
use crate::reply::{ReplyKind, StoredReply};

const TABLE: &str = "idempotency";

pub(in super::super) const RECORDS: &str = "-- records
SELECT key, fingerprint, kind, subject, body FROM idempotency WHERE key = ANY ($1)";

/// But for those of 7, [`ReplyKind::GivenBack`].
pub(in super::super) const FORGET_RECORDS: &str = "-- forget_records
DELETE FROM idempotency WHERE key IN
    (SELECT key FROM idempotency WHERE at < $1 AND kind <> 7
     ORDER BY at LIMIT 1000 FOR UPDATE SKIP LOCKED)";

/// What was answered to a key.
pub(in super::super) struct Record {
    pub(in super::super) key: ScopedKey,
    pub(in super::super) fingerprint: Fingerprint,
    pub(in super::super) reply: StoredReply,
}

pub(in super::super) fn read(row: &Row) -> Result<Record, Damaged> {
    let columns = Columns::new(row, TABLE);
    let (key, fingerprint, kind): (Id, Id, i16) =
        (columns.get(0)?, columns.get(1)?, columns.get(2)?);
    let (subject, body): (Id, &[u8]) = (columns.get(3)?, columns.get(4)?);
    let kind = ReplyKind::from_number(kind.into()).ok_or_else(|| columns.illegal("kind"))?;
    Ok(Record {
        key: ScopedKey(key.0),
        fingerprint: Fingerprint(fingerprint.0),
        reply: StoredReply {
            kind,
            subject: subject.0,
            body: body.into(),
        },
    })
}
