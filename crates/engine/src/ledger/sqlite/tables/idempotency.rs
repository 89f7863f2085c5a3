//! Idempotency records: keys, read at start, and replies, read when the same request comes again.

use std::ops::ControlFlow;

use rusqlite::{Connection, OptionalExtension, Row, params};
use soldonce_core::{Rejection, Timestamp};

use super::codes::require_sum;
use crate::ledger::rows::codes::unsigned;
use crate::ledger::sqlite::checksum::Checksum;
use crate::ledger::sqlite::fault::{Fault, one_row, stored};
use crate::ledger::{Fingerprint, NewRecord, RequestKey, ScopedKey};
use crate::reply::{ReplyKind, StoredReply};

const TABLE: &str = "idempotency";
const REPLIES: &str = "replies";
const KEPT: &str = "kept_replies";

const INSERT_KEY: &str = "-- insert_key
INSERT INTO idempotency (n, key, fingerprint, at, checksum) VALUES (?1, ?2, ?3, ?4, ?5)";

const INSERT_REPLY: &str = "-- insert_reply
INSERT INTO replies (n, kind, subject, body, checksum) VALUES (?1, ?2, ?3, ?4, ?5)";

const REPLY: &str = "-- reply
SELECT kind, subject, body, checksum FROM replies WHERE n = ?1";

const KEY: &str = "-- key
SELECT n, key, fingerprint, at, checksum FROM idempotency WHERE n = ?1";

const KEEP_REPLY: &str = "-- keep_reply
INSERT INTO kept_replies (key, fingerprint, kind, subject, body, checksum)
VALUES (?1, ?2, ?3, ?4, ?5, ?6)";

const KEPT_REPLY: &str = "-- kept_reply
SELECT key, fingerprint, kind, subject, body, checksum FROM kept_replies WHERE key = ?1";

const KEPT_REPLIES: &str = "-- kept_replies
SELECT key, fingerprint, kind, subject, body, checksum FROM kept_replies";

const KEYS: &str = "-- keys
SELECT n, key, fingerprint, at, checksum FROM idempotency ORDER BY n";

const FORGET_KEYS: &str = "-- forget_keys
DELETE FROM idempotency WHERE n <= ?1";

const FORGET_REPLIES: &str = "-- forget_replies
DELETE FROM replies WHERE n <= ?1";

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[
    INSERT_KEY,
    INSERT_REPLY,
    REPLY,
    KEY,
    KEEP_REPLY,
    KEPT_REPLY,
    KEPT_REPLIES,
    KEYS,
    FORGET_KEYS,
    FORGET_REPLIES,
];

fn key_checksum(number: i64, key: RequestKey, at: Timestamp) -> Checksum {
    let sum = Checksum::of(TABLE).int(number).bytes(&key.scoped.0);
    sum.bytes(&key.fingerprint.0).int(at.ms())
}

fn reply_checksum(number: i64, reply: &StoredReply) -> Checksum {
    let sum = Checksum::of(REPLIES).int(number).int(reply.kind.number());
    sum.bytes(&reply.subject).bytes(&reply.body)
}

fn kept_checksum(key: RequestKey, reply: &StoredReply) -> Checksum {
    let sum = Checksum::of(KEPT).bytes(&key.scoped.0);
    let sum = sum.bytes(&key.fingerprint.0).int(reply.kind.number());
    sum.bytes(&reply.subject).bytes(&reply.body)
}

/// Writes the records of a batch, all made at `at`.
pub(crate) fn write(
    connection: &Connection,
    records: &[NewRecord],
    at: Timestamp,
) -> Result<(), Fault> {
    let mut insert = connection.prepare_cached(INSERT_KEY)?;
    for NewRecord { number, key, .. } in records {
        let number = stored(*number)?;
        let sum = key_checksum(number, *key, at).stored();
        let values = params![number, key.scoped.0, key.fingerprint.0, at.ms(), sum];
        one_row("insert_key", insert.execute(values)?)?;
    }
    let mut insert = connection.prepare_cached(INSERT_REPLY)?;
    for NewRecord { number, reply, .. } in records {
        let number = stored(*number)?;
        let sum = reply_checksum(number, reply).stored();
        let values = params![
            number,
            reply.kind.number(),
            reply.subject,
            &*reply.body,
            sum
        ];
        one_row("insert_reply", insert.execute(values)?)?;
    }
    let is_kept = |record: &&NewRecord| record.reply.kind == ReplyKind::GivenBack;
    for NewRecord { key, reply, .. } in records.iter().filter(is_kept) {
        let values = params![
            key.scoped.0,
            key.fingerprint.0,
            reply.kind.number(),
            reply.subject,
            &*reply.body,
            kept_checksum(*key, reply).stored()
        ];
        let mut keep = connection.prepare_cached(KEEP_REPLY)?;
        one_row("keep_reply", keep.execute(values)?)?;
    }
    Ok(())
}

/// What is kept as long as the booking: a key, and what was answered to it.
type Kept = (RequestKey, StoredReply);

/// The kept reply to a request with this key, if there is one.
pub(crate) fn kept(connection: &Connection, key: ScopedKey) -> Result<Option<Kept>, Fault> {
    let mut statement = connection.prepare_cached(KEPT_REPLY)?;
    let row = statement.query_row([key.0], |row| Ok(read_kept(row)));
    row.optional()?.transpose()
}

/// Tests the checksum of every kept reply.
pub(crate) fn check_kept(connection: &Connection) -> Result<(), Fault> {
    let mut statement = connection.prepare(KEPT_REPLIES)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        read_kept(row)?;
    }
    Ok(())
}

fn read_kept(row: &Row<'_>) -> Result<Kept, Fault> {
    let illegal = || Fault::damaged(KEPT, "a reply is illegal".to_owned());
    let key = RequestKey {
        scoped: ScopedKey(row.get(0)?),
        fingerprint: Fingerprint(row.get(1)?),
    };
    let body: Vec<u8> = row.get(4)?;
    let reply = StoredReply {
        kind: ReplyKind::from_number(row.get(2)?).ok_or_else(illegal)?,
        subject: row.get(3)?,
        body: body.into(),
    };
    let name = || "a reply".to_owned();
    require_sum(KEPT, kept_checksum(key, &reply), row.get(5)?, name)?;
    Ok((key, reply))
}

/// Forgets the records up to this number.
pub(crate) fn forget(connection: &Connection, last: u64) -> Result<(), Fault> {
    let last = stored(last)?;
    let keys = connection.prepare_cached(FORGET_KEYS)?.execute([last])?;
    let replies = connection.prepare_cached(FORGET_REPLIES)?.execute([last])?;
    if keys == replies {
        return Ok(());
    }
    Err(Fault::damaged(
        TABLE,
        format!("{keys} keys had {replies} replies"),
    ))
}

/// The reply of a record.
pub(crate) fn reply(connection: &Connection, number: u64) -> Result<StoredReply, Fault> {
    let number = stored(number)?;
    let missing = || Fault::damaged(REPLIES, format!("reply {number} is missing"));
    let mut statement = connection.prepare_cached(REPLY)?;
    let row = statement.query_row([number], |row| Ok(read_reply(number, row)));
    row.optional()?.ok_or_else(missing)?
}

fn read_reply(number: i64, row: &Row<'_>) -> Result<StoredReply, Fault> {
    let illegal = || Fault::damaged(REPLIES, format!("reply {number} is illegal"));
    let body: Vec<u8> = row.get(2)?;
    let reply = StoredReply {
        kind: ReplyKind::from_number(row.get(0)?).ok_or_else(illegal)?,
        subject: row.get(1)?,
        body: body.into(),
    };
    let sum = reply_checksum(number, &reply);
    require_sum(REPLIES, sum, row.get(3)?, || format!("reply {number}"))?;
    Ok(reply)
}

/// A stored record, without its reply.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StoredKey {
    pub(crate) number: u64,
    pub(crate) key: RequestKey,
    pub(crate) at: Timestamp,
}

/// The reply to a request with this key, if this record is of the same key; in it
/// [`Rejection::IdempotencyKeyReused`] when it is of another request.
pub(crate) fn replay(
    connection: &Connection,
    number: u64,
    asked: RequestKey,
) -> Result<Option<Result<StoredReply, Rejection>>, Fault> {
    let row = stored(number)?;
    let mut statement = connection.prepare_cached(KEY)?;
    let found = statement.query_row([row], |row| Ok(read_key(row)));
    let missing = || Fault::damaged(TABLE, format!("key {number} is missing"));
    let found = found.optional()?.ok_or_else(missing)??;
    if found.key.scoped != asked.scoped {
        return Ok(None);
    }
    if found.key.fingerprint != asked.fingerprint {
        return Ok(Some(Err(Rejection::IdempotencyKeyReused)));
    }
    reply(connection, number).map(|reply| Some(Ok(reply)))
}

/// Reads the keys, the oldest first, until `take` breaks.
pub(crate) fn each(
    connection: &Connection,
    mut take: impl FnMut(StoredKey) -> ControlFlow<()>,
) -> Result<(), Fault> {
    let mut statement = connection.prepare_cached(KEYS)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        if take(read_key(row)?).is_break() {
            break;
        }
    }
    Ok(())
}

fn read_key(row: &Row<'_>) -> Result<StoredKey, Fault> {
    let number: i64 = row.get(0)?;
    let key = RequestKey {
        scoped: ScopedKey(row.get(1)?),
        fingerprint: Fingerprint(row.get(2)?),
    };
    let at = Timestamp::from_ms(row.get(3)?);
    let sum = key_checksum(number, key, at);
    require_sum(TABLE, sum, row.get(4)?, || format!("key {number}"))?;
    Ok(StoredKey {
        number: unsigned(number, TABLE)?,
        key,
        at,
    })
}
