//! Idempotency records: a key, and the reply to it.

use super::Damaged;
use super::codes::{number, value};
use super::column::Column;
use super::reader::Reader;
use crate::ledger::{Fingerprint, RequestKey, ScopedKey};
use crate::reply::{ReplyKind, StoredReply};

/// An idempotency record: a key, and the reply to it.
pub(crate) type Record = (RequestKey, StoredReply);

/// Reads a record from the columns `key, fingerprint, kind, subject, body`.
pub(crate) fn get_record(row: &mut Reader<'_>) -> Result<Record, Damaged> {
    Ok((get_key(row)?, get(row)?))
}

/// Returns the columns `key, fingerprint`.
pub(crate) const fn put_key(key: RequestKey) -> [Column<'static>; 2] {
    [Column::Id(key.scoped.0), Column::Id(key.fingerprint.0)]
}

pub(crate) fn get_key(row: &mut Reader<'_>) -> Result<RequestKey, Damaged> {
    Ok(RequestKey {
        scoped: ScopedKey(row.get()?),
        fingerprint: Fingerprint(row.get()?),
    })
}

/// Returns the columns `kind, subject, body`.
pub(crate) fn put(reply: &StoredReply) -> [Column<'_>; 3] {
    [
        Column::Code(number(&ReplyKind::ALL, &reply.kind)),
        Column::Id(reply.subject),
        Column::Bytes(&reply.body),
    ]
}

pub(crate) fn get(row: &mut Reader<'_>) -> Result<StoredReply, Damaged> {
    Ok(StoredReply {
        kind: value(&ReplyKind::ALL, row.get()?, "idempotency")?,
        subject: row.get()?,
        body: row.get::<&[u8]>()?.into(),
    })
}
