//! Which batches a snapshot of the database has, and which are to be looked for later. The transactions of all
//! databases of a cluster are counted together: one that another program left open may last for hours. So later ones
//! are told apart from it, and what was read of them is not read again.

use tokio_postgres::Row;

use super::bind::{Value, bind};
use super::tables::{Columns, Id};
use crate::ledger::rows::Damaged;

/// The transactions that ran, and the one from which on none was over, as `batches.xid` has them. A database that
/// crashed gives a transaction's number again when nothing of it was on disk; a batch that is seen was on disk, so
/// nothing new comes below the highest that is seen.
macro_rules! horizon {
    () => {
        "ARRAY(SELECT x::text::bigint + shift FROM pg_snapshot_xip(pg_current_snapshot()) AS x),
       least(pg_snapshot_xmax(pg_current_snapshot())::text::bigint + shift,
             1 + coalesce((SELECT b.xid::text::bigint FROM batches b ORDER BY b.xid DESC LIMIT 1), 0))"
    };
}

/// The batches `b` that the snapshot of a horizon lacks, `$1` and `$2` being [`Horizon::parts`]. Each part is a search
/// in an index.
macro_rules! since {
    ($which:literal) => {
        concat!(
            "unnest($1::bigint[], $2::bigint[]) AS part (first, last)
CROSS JOIN LATERAL (
    SELECT * FROM batches
    WHERE xid BETWEEN part.first::text::xid8 AND part.last::text::xid8 AND ",
            $which,
            " OFFSET 0
) AS b"
        )
    };
}

pub(super) use horizon;
pub(super) use since;

/// The transactions whose batches a snapshot lacks, as ranges without overlap: those that may still store one. Each
/// other batch that is or ever will be stored is in the snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Horizon {
    first: Vec<i64>,
    last: Vec<i64>,
}

/// That of an empty snapshot.
impl Default for Horizon {
    fn default() -> Self {
        Self::new(Vec::new(), 0)
    }
}

impl Horizon {
    /// Builds the horizon of a snapshot in which these transactions ran, and none from `next` on was over.
    pub(super) fn new(mut running: Vec<i64>, next: i64) -> Self {
        running.retain(|xid| *xid < next);
        let mut last = running.clone();
        running.push(next);
        last.push(i64::MAX);
        Self {
            first: running,
            last,
        }
    }

    /// Reads the two columns of [`horizon!`], of which `at` is the first.
    pub(super) fn read(row: &Row, at: usize) -> Result<Self, Damaged> {
        let columns = Columns::new(row, "batches");
        Ok(Self::new(columns.get(at)?, columns.get(at + 1)?))
    }

    /// Returns the values of [`since`].
    pub(super) fn parts(&self) -> [Value<'_>; 2] {
        [bind(&self.first), bind(&self.last)]
    }
}

/// What a server numbered last.
#[derive(Clone, Default)]
pub(super) struct LastTurn {
    /// While `last` is stored, each batch that this horizon does not lack has its number.
    pub(super) horizon: Horizon,
    /// The last number and its batch.
    pub(super) last: (i64, Id),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transaction_that_runs_is_a_range_of_its_own() {
        let horizon = Horizon::new(vec![3, 700, 901], 900);
        assert_eq!(horizon.first, [3, 700, 900]);
        assert_eq!(horizon.last, [3, 700, i64::MAX]);
        assert_eq!(Horizon::default(), Horizon::new(vec![5], 0));
    }
}
