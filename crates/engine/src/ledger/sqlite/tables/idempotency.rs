//! Idempotency records: keys, read at start, and replies, read when the same request comes again.

use std::ops::ControlFlow;

use rusqlite::{Connection, Row};
use soldonce_core::{Rejection, Timestamp};

use super::summed::RowWriter;
use super::{each_row, execute, first_row, summed};
use crate::ledger::rows::column::Column;
use crate::ledger::rows::reader::Reader;
use crate::ledger::rows::replies::{Record, get, get_key, get_record, put, put_key};
use crate::ledger::rows::to_i64;
use crate::ledger::sqlite::fault::Fault;
use crate::ledger::{RequestKey, ScopedKey, batch};
use crate::reply::{ReplyKind, StoredReply};

const TABLE: &str = "idempotency";
const REPLIES: &str = "replies";
const KEPT: &str = "kept_replies";

statements! {
    INSERT_KEY = "-- insert_key
INSERT INTO idempotency (n, key, fingerprint, at, checksum) VALUES (?1, ?2, ?3, ?4, ?5)";

    INSERT_REPLY = "-- insert_reply
INSERT INTO replies (n, kind, subject, body, checksum) VALUES (?1, ?2, ?3, ?4, ?5)";

    REPLY = "-- reply
SELECT n, kind, subject, body, checksum FROM replies WHERE n = ?1";

    KEY = "-- key
SELECT n, key, fingerprint, at, checksum FROM idempotency WHERE n = ?1";

    KEEP_REPLY = "-- keep_reply
INSERT INTO kept_replies (key, fingerprint, kind, subject, body, checksum)
VALUES (?1, ?2, ?3, ?4, ?5, ?6)";

    KEPT_REPLY = "-- kept_reply
SELECT key, fingerprint, kind, subject, body, checksum FROM kept_replies WHERE key = ?1";

    KEPT_REPLIES = "-- kept_replies
SELECT key, fingerprint, kind, subject, body, checksum FROM kept_replies";

    KEYS = "-- keys
SELECT n, key, fingerprint, at, checksum FROM idempotency ORDER BY n";

    FORGET_KEYS = "-- forget_keys
DELETE FROM idempotency WHERE n <= ?1";

    FORGET_REPLIES = "-- forget_replies
DELETE FROM replies WHERE n <= ?1";
}

/// Writes records, all made at `at`, from number `first` on.
pub(crate) fn write(
    connection: &Connection,
    records: &[Record],
    first: u64,
    at: Timestamp,
) -> Result<(), Fault> {
    let at = Column::Long(at.ms());
    let mut insert = RowWriter::new(connection, INSERT_KEY, TABLE)?;
    for (number, (key, _)) in (first..).zip(records) {
        let [scoped, fingerprint] = put_key(*key);
        insert.write(&[Column::Count(number), scoped, fingerprint, at])?;
    }
    let mut insert = RowWriter::new(connection, INSERT_REPLY, REPLIES)?;
    for (number, (_, reply)) in (first..).zip(records) {
        let [kind, subject, body] = put(reply);
        insert.write(&[Column::Count(number), kind, subject, body])?;
    }
    for (key, reply) in records {
        if reply.kind == ReplyKind::GivenBack {
            let row = [&put_key(*key)[..], &put(reply)].concat();
            summed::write(connection, KEEP_REPLY, KEPT, &row)?;
        }
    }
    Ok(())
}

/// Finds the record with this key that is kept as long as its booking, if there is one.
pub(crate) fn kept(connection: &Connection, key: ScopedKey) -> Result<Option<Record>, Fault> {
    first_row(connection, KEPT_REPLY, [key.0], read_kept)
}

/// Verifies the checksum of every kept reply.
pub(crate) fn check_kept(connection: &Connection) -> Result<(), Fault> {
    each_row(connection, KEPT_REPLIES, [], |row| read_kept(row).map(drop))
}

fn read_kept(row: &Row<'_>) -> Result<Record, Fault> {
    summed::read(row, KEPT, get_record, |_| "a reply".to_owned())
}

/// Deletes the records up to this number; fails unless each has a reply.
pub(crate) fn forget(connection: &Connection, last: u64) -> Result<(), Fault> {
    let last = to_i64(last)?;
    let keys = execute(connection, FORGET_KEYS, [last])?;
    let replies = execute(connection, FORGET_REPLIES, [last])?;
    if keys == replies {
        return Ok(());
    }
    let what = format!("{keys} keys had {replies} replies");
    Err(Fault::damaged(TABLE, what))
}

/// Reads the reply of a record; fails if it is missing.
pub(crate) fn reply(connection: &Connection, number: u64) -> Result<StoredReply, Fault> {
    let number = to_i64(number)?;
    let missing = || Fault::damaged(REPLIES, format!("reply {number} is missing"));
    let get = |row: &mut Reader<'_>| {
        let _number: i64 = row.get()?;
        get(row)
    };
    let name = |_: &_| format!("reply {number}");
    let read = |row: &Row<'_>| summed::read(row, REPLIES, get, name);
    first_row(connection, REPLY, [number], read)?.ok_or_else(missing)
}

/// A stored record, without its reply.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StoredKey {
    pub(crate) number: u64,
    pub(crate) key: RequestKey,
    pub(crate) at: Timestamp,
}

/// Finds the outcome for a request by the record of this number; none if that is of another key.
pub(crate) fn replay(
    connection: &Connection,
    number: u64,
    asked: RequestKey,
) -> Result<Option<Result<StoredReply, Rejection>>, Fault> {
    let found = first_row(connection, KEY, [to_i64(number)?], read_key)?;
    let missing = || Fault::damaged(TABLE, format!("key {number} is missing"));
    let known = found.ok_or_else(missing)?.key;
    if known.scoped != asked.scoped {
        return Ok(None);
    }
    let reply = reply(connection, number)?;
    Ok(Some(batch::replay(known, &reply, asked)))
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
    let get = |row: &mut Reader<'_>| {
        Ok(StoredKey {
            number: row.get()?,
            key: get_key(row)?,
            at: row.get()?,
        })
    };
    summed::read(row, TABLE, get, |found| format!("key {}", found.number))
}
