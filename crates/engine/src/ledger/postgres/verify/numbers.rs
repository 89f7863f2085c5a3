//! The numbers of an event's commits: which batch has which, without gap or doubles, and where they
//! end. Batches that wait for theirs come behind.

use soldonce_core::Seq;
use tokio_postgres::Row;

use crate::ledger::postgres::bind::bind;
use crate::ledger::postgres::database::Connection;
use crate::ledger::postgres::failure::Failure;
use crate::ledger::postgres::limits::VERIFY_BATCHES;
use crate::ledger::postgres::tables::{Columns, Id};
use crate::ledger::rows::codes::unsigned;
use crate::ledger::verify::ChainEnd;

const NUMBERED: &str = "-- numbered_to_verify
SELECT f.first_seq, f.commands, f.batch, f.hash, coalesce(cardinality(b.units), 0),
       coalesce(b.event_no = f.event_no AND b.commands = f.commands, false)
FROM feed f LEFT JOIN batches b ON b.id = f.batch
WHERE f.event_no = $1 AND f.first_seq > $2 ORDER BY f.first_seq LIMIT $3";

/// `is_late`: below it the sequencer has passed, and will never come back.
const UNNUMBERED: &str = "-- unnumbered_to_verify
SELECT b.id, b.commands, cardinality(b.units),
       b.xid < (SELECT xid::text::xid8 FROM sequencer WHERE one = 1) AS is_late
FROM batches b
WHERE b.event_no = $1 AND b.commands > 0 AND NOT EXISTS (SELECT FROM feed f WHERE f.batch = b.id)
ORDER BY b.at, b.place";

const HEAD: &str = "-- head_to_verify
SELECT seq, hash FROM feed_heads WHERE event_no = $1";

/// A batch that has its numbers.
pub(super) struct Numbered {
    pub(super) first: Seq,
    pub(super) commands: u64,
    pub(super) batch: Id,
    pub(super) hash: [u8; 32],
    pub(super) steps: usize,
    /// The batch is there, of this event, and of so many commands.
    pub(super) is_same: bool,
}

/// The next batches with numbers after `after`, in their order; nothing at the end.
pub(super) async fn numbered(
    connection: &mut Connection,
    no: i32,
    after: Seq,
) -> Result<Vec<Numbered>, Failure> {
    let after = i64::try_from(after.0).unwrap_or(i64::MAX);
    let values = [bind(&no), bind(&after), bind(&VERIFY_BATCHES)];
    let read = |row: &Row| -> Result<Numbered, Failure> {
        let columns = Columns::new(row, "feed");
        let hash: &[u8] = columns.get(3)?;
        Ok(Numbered {
            first: Seq(columns.unsigned(0)?),
            commands: u64::from(columns.small(1)?),
            batch: columns.get(2)?,
            hash: hash.try_into().map_err(|_| columns.illegal("hash"))?,
            steps: size(&columns, 4)?,
            is_same: columns.get(5)?,
        })
    };
    let rows = connection.rows(NUMBERED, &values).await?;
    rows.iter().map(read).collect()
}

/// A batch that has no number.
pub(super) struct Unnumbered {
    pub(super) batch: Id,
    pub(super) steps: usize,
    /// It will never get one.
    pub(super) is_late: bool,
}

/// All batches of an event that have no number, in the order in which they will get theirs.
pub(super) async fn unnumbered(
    connection: &mut Connection,
    no: i32,
) -> Result<Vec<Unnumbered>, Failure> {
    let read = |row: &Row| -> Result<Unnumbered, Failure> {
        let columns = Columns::new(row, "batches");
        Ok(Unnumbered {
            batch: columns.get(0)?,
            steps: size(&columns, 2)?,
            is_late: columns.get(3)?,
        })
    };
    let rows = connection.rows(UNNUMBERED, &[bind(&no)]).await?;
    rows.iter().map(read).collect()
}

fn size(columns: &Columns<'_>, at: usize) -> Result<usize, Failure> {
    Ok(usize::try_from(columns.small(at)?).unwrap_or(usize::MAX))
}

/// Where the numbers are recorded to end; nothing for an event without any.
pub(super) async fn head(
    connection: &mut Connection,
    no: i32,
) -> Result<Option<ChainEnd>, Failure> {
    let rows = connection.rows(HEAD, &[bind(&no)]).await?;
    let Some(row) = rows.first() else {
        return Ok(None);
    };
    let columns = Columns::new(row, "feed_heads");
    let hash: &[u8] = columns.get(1)?;
    Ok(Some(ChainEnd {
        seq: Seq(unsigned(columns.get(0)?, "feed_heads")?),
        rows: None,
        hash: hash.try_into().map_err(|_| columns.illegal("hash"))?,
    }))
}
