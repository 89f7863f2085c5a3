//! The audit and its numbers.

use std::collections::BTreeMap;

use soldonce_core::{Commit, EventNo, Seq};
use tokio_postgres::Row;

use super::{Columns, Id};
use crate::ledger::rows::Damaged;
use crate::ledger::rows::chain::get_step;
use crate::ledger::rows::reader::Reader;

const TABLE: &str = "audit";

/// Selects rows of the audit `a`, their numbers of the feed `f`, and their batch's id `$batch`.
macro_rules! select_audit {
    ($name:literal, $batch:literal, $from:literal) => {
        concat!(
            $name,
            "\nSELECT",
            " a.unit_no, a.from_state, a.from_owner, a.from_until, a.to_state, a.to_owner, a.to_until,
       a.fence, a.version, a.cause, a.hold, a.actor, a.request, a.reason, a.at, a.command,
       f.first_seq, ",
            $batch,
            "\n",
            $from
        )
    };
}
/// The column of the batch's id; [`COMMAND`] is that of the command's place in the batch.
const BATCH: usize = 17;
const COMMAND: usize = 15;

// Each transition is looked up by its whole key, one after the other: OFFSET 0 keeps the lookup from
// being joined in another sequence. A plan made while the tables were small would otherwise read
// every row of the event for each batch.

/// Selects the rows of some batches, in the batches' order, with their numbers if they have any.
pub(in super::super) const AUDIT_OF_BATCHES: &str = select_audit!(
    "-- audit_of_batches",
    "b.id",
    "FROM batches b
     CROSS JOIN LATERAL unnest(b.units, b.versions) AS step (unit_no, version)
     CROSS JOIN LATERAL (
         SELECT * FROM audit
         WHERE event_no = b.event_no AND unit_no = step.unit_no AND version = step.version OFFSET 0
     ) AS a
     LEFT JOIN feed f ON f.batch = b.id
     WHERE b.id = ANY ($1)
     ORDER BY b.at, b.place, a.command, a.n"
);

/// Selects all rows of an event, numbered or not.
pub(in super::super) const AUDIT_OF_EVENT: &str = select_audit!(
    "-- audit_of_event",
    "b.id",
    "FROM audit a
     JOIN batches b ON b.id = a.batch
     LEFT JOIN feed f ON f.batch = b.id
     WHERE a.event_no = $1
     ORDER BY f.first_seq NULLS LAST, b.at, b.place, a.command, a.n"
);

pub(in super::super) const AUDIT_OF_UNIT: &str = select_audit!(
    "-- audit_of_unit",
    "a.batch",
    "FROM audit a LEFT JOIN feed f ON f.batch = a.batch
     WHERE a.event_no = $1 AND a.unit_no = $2 ORDER BY a.version DESC LIMIT $3"
);

/// Reads one row as a commit with one transition. Its number is 0 if it has none yet.
pub(in super::super) fn get_one(event: EventNo, row: &mut Reader<'_>) -> Result<Commit, Damaged> {
    let step = get_step(row)?;
    let (origin, reason) = (row.get()?, row.get()?);
    let (at, command) = (row.get()?, u64::from(row.get::<u32>()?));
    let first: Option<i64> = row.get()?;
    let first = first.map(|first| crate::ledger::rows::codes::unsigned(first, TABLE));
    let seq = first.transpose()?.map_or(0, |first| first + command);
    Ok(Commit {
        event,
        seq: Seq(seq),
        at,
        origin,
        reason,
        transitions: vec![step],
    })
}

/// Reads the commits of some batches, each batch's in their order. `events` has the event of each.
pub(in super::super) fn read_batches(
    events: &BTreeMap<Id, EventNo>,
    rows: &[Row],
) -> Result<BTreeMap<Id, Vec<Commit>>, Damaged> {
    let batch = |row: &Row| Columns::new(row, TABLE).get::<Id>(BATCH);
    let mut batches = BTreeMap::new();
    for own in rows.chunk_by(|one, next| batch(one).ok() == batch(next).ok()) {
        let id = own.first().map(batch).transpose()?;
        if let Some(id) = id
            && let Some(event) = events.get(&id)
        {
            batches.insert(id, read(*event, own)?);
        }
    }
    Ok(batches)
}

/// Reads the commits of one event from rows in their order.
pub(in super::super) fn read(event: EventNo, rows: &[Row]) -> Result<Vec<Commit>, Damaged> {
    let mut commits: Vec<Commit> = Vec::new();
    let mut last = None;
    for row in rows {
        let columns = Columns::new(row, TABLE);
        let (batch, command): (Id, i32) = (columns.get(BATCH)?, columns.get(COMMAND)?);
        if last == Some((batch, command))
            && let Some(commit) = commits.last_mut()
        {
            let mut row = Reader::postgres(row, TABLE);
            commit.transitions.push(get_step(&mut row)?);
        } else {
            commits.push(get_one(event, &mut Reader::postgres(row, TABLE))?);
            last = Some((batch, command));
        }
    }
    Ok(commits)
}
