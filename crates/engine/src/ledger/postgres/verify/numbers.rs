//! Reads the numbers of an event's commits: which batch has which, without gap or doubles, and
//! where they end. Batches that wait for theirs come after.

use soldonce_core::Seq;

use crate::ledger::postgres::bind::bind;
use crate::ledger::postgres::database::Connection;
use crate::ledger::postgres::failure::Failure;
use crate::ledger::postgres::limits::VERIFY_BATCHES;
use crate::ledger::postgres::tables::Id;
use crate::ledger::rows::Damaged;
use crate::ledger::rows::reader::Reader;
use crate::ledger::verify::ChainEnd;

const NUMBERED: &str = "-- numbered_to_verify
SELECT f.first_seq, f.commands, f.batch, f.hash, coalesce(cardinality(b.units), 0),
       coalesce(b.event_no = f.event_no AND b.commands = f.commands, false)
FROM feed f LEFT JOIN batches b ON b.id = f.batch
WHERE f.event_no = $1 AND f.first_seq > $2 ORDER BY f.first_seq LIMIT $3";

/// `is_late`: the sequencer has passed the batch, and will never come back to it.
const UNNUMBERED: &str = "-- unnumbered_to_verify
SELECT b.id, cardinality(b.units),
       b.xid < (SELECT xid::text::xid8 FROM sequencer WHERE one = 1) AS is_late
FROM batches b
WHERE b.event_no = $1 AND b.commands > 0 AND NOT EXISTS (SELECT FROM feed f WHERE f.batch = b.id)
ORDER BY b.at, b.place";

const HEAD: &str = "-- head_to_verify
SELECT seq, hash FROM feed_heads WHERE event_no = $1";

/// A batch that has its numbers.
pub(super) struct NumberedBatch {
    pub(super) first: Seq,
    pub(super) commands: u64,
    pub(super) batch: Id,
    pub(super) hash: [u8; 32],
    pub(super) steps: usize,
    /// Whether the batch exists, is of this event, and has as many commands.
    pub(super) is_same: bool,
}

/// Reads the next batches with numbers after `after`, in their order. Empty at the end.
pub(super) async fn numbered(
    connection: &mut Connection,
    no: i32,
    after: Seq,
) -> Result<Vec<NumberedBatch>, Failure> {
    let after = i64::try_from(after.0).unwrap_or(i64::MAX);
    let values = [bind(&no), bind(&after), bind(&VERIFY_BATCHES)];
    let read = |row: &mut Reader<'_>| {
        Ok(NumberedBatch {
            first: row.get()?,
            commands: row.get()?,
            batch: row.get()?,
            hash: row.get()?,
            steps: size(row)?,
            is_same: row.get()?,
        })
    };
    connection.read((NUMBERED, "feed"), &values, read).await
}

/// A batch that has no number.
pub(super) struct WaitingBatch {
    pub(super) batch: Id,
    pub(super) steps: usize,
    /// Whether it will never get one.
    pub(super) is_late: bool,
}

/// Reads all batches of an event that have no number, in the order in which they will get theirs.
pub(super) async fn unnumbered(
    connection: &mut Connection,
    no: i32,
) -> Result<Vec<WaitingBatch>, Failure> {
    let read = |row: &mut Reader<'_>| {
        Ok(WaitingBatch {
            batch: row.get()?,
            steps: size(row)?,
            is_late: row.get()?,
        })
    };
    let of_event = [bind(&no)];
    let found = connection.read((UNNUMBERED, "batches"), &of_event, read);
    found.await
}

fn size(row: &mut Reader<'_>) -> Result<usize, Damaged> {
    Ok(usize::try_from(row.get::<u32>()?).unwrap_or(usize::MAX))
}

/// Reads where the numbers are recorded to end. None for an event without any.
pub(super) async fn head(
    connection: &mut Connection,
    no: i32,
) -> Result<Option<ChainEnd>, Failure> {
    let read = |row: &mut Reader<'_>| {
        Ok(ChainEnd {
            seq: row.get()?,
            rows: None,
            hash: row.get()?,
        })
    };
    let of_event = [bind(&no)];
    let head = (HEAD, "feed_heads");
    connection.first(head, &of_event, read).await
}
