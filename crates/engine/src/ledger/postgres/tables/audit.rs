//! The audit and its numbers.

use std::collections::BTreeMap;

use soldonce_core::{
    Actor, CallerId, Cause, Commit, EventNo, Fence, HoldId, Origin, Seq, Timestamp, Transition,
    UnitNo, Version,
};
use tokio_postgres::Row;

use super::{Columns, Id, units};
use crate::ledger::rows::Damaged;
use crate::ledger::rows::codes::value;

const TABLE: &str = "audit";

// Each transition is looked up by its whole key, one after the other: OFFSET 0 keeps the lookup from
// being joined in another sequence. A plan made while the tables were small would otherwise read
// every row of the event for each batch.

/// Of some batches, in the order of their places: those that are numbered say so.
pub(in super::super) const AUDIT_OF_BATCHES: &str = "-- audit_of_batches
SELECT a.unit_no, a.from_state, a.from_owner, a.from_until, a.to_state, a.to_owner, a.to_until,
       a.fence, a.version, a.cause, a.hold, a.actor, a.request, a.reason, a.at, a.command,
       f.first_seq, b.id
FROM batches b
CROSS JOIN LATERAL unnest(b.units, b.versions) AS step (unit_no, version)
CROSS JOIN LATERAL (
    SELECT * FROM audit
    WHERE event_no = b.event_no AND unit_no = step.unit_no AND version = step.version OFFSET 0
) AS a
LEFT JOIN feed f ON f.batch = b.id
WHERE b.id = ANY ($1)
ORDER BY b.at, b.place, a.command, a.n";

/// Of an event after a number, in the order of the numbers.
pub(in super::super) const AUDIT_AFTER: &str = "-- audit_after
SELECT a.unit_no, a.from_state, a.from_owner, a.from_until, a.to_state, a.to_owner, a.to_until,
       a.fence, a.version, a.cause, a.hold, a.actor, a.request, a.reason, a.at, a.command,
       f.first_seq, b.id
FROM feed f
JOIN batches b ON b.id = f.batch
CROSS JOIN LATERAL unnest(b.units, b.versions) AS step (unit_no, version)
CROSS JOIN LATERAL (
    SELECT * FROM audit
    WHERE event_no = b.event_no AND unit_no = step.unit_no AND version = step.version OFFSET 0
) AS a
WHERE f.event_no = $1 AND f.first_seq + f.commands > $2 + 1 AND f.first_seq <= $3
ORDER BY f.first_seq, a.command, a.n";

/// Everything of an event, numbered or not.
pub(in super::super) const AUDIT_OF_EVENT: &str = "-- audit_of_event
SELECT a.unit_no, a.from_state, a.from_owner, a.from_until, a.to_state, a.to_owner, a.to_until,
       a.fence, a.version, a.cause, a.hold, a.actor, a.request, a.reason, a.at, a.command,
       f.first_seq, b.id
FROM audit a
JOIN batches b ON b.id = a.batch
LEFT JOIN feed f ON f.batch = b.id
WHERE a.event_no = $1
ORDER BY f.first_seq NULLS LAST, b.at, b.place, a.command, a.n";

pub(in super::super) const AUDIT_OF_UNIT: &str = "-- audit_of_unit
SELECT a.unit_no, a.from_state, a.from_owner, a.from_until, a.to_state, a.to_owner, a.to_until,
       a.fence, a.version, a.cause, a.hold, a.actor, a.request, a.reason, a.at, a.command,
       f.first_seq, a.batch
FROM audit a LEFT JOIN feed f ON f.batch = a.batch
WHERE a.event_no = $1 AND a.unit_no = $2 ORDER BY a.version LIMIT $3";

fn step(columns: &Columns<'_>) -> Result<Transition, Damaged> {
    let (cause, hold): (i16, Option<Id>) = (columns.get(9)?, columns.get(10)?);
    Ok(Transition {
        unit: UnitNo(columns.small(0)?),
        from: units::state(columns, 1)?,
        to: units::state(columns, 4)?,
        fence: Fence(columns.unsigned(7)?),
        version: Version(columns.unsigned(8)?),
        cause: value(&Cause::ALL, cause.into(), TABLE)?,
        hold: hold.map(|id| HoldId::from_bytes(id.0)),
    })
}

/// The commit of one row, with this one transition. One that has no number yet gets 0.
pub(in super::super) fn read_one(event: EventNo, row: &Row) -> Result<Commit, Damaged> {
    let columns = Columns::new(row, TABLE);
    let actor: Option<Id> = columns.get(11)?;
    let (request, first): (&str, Option<i64>) = (columns.get(12)?, columns.get(16)?);
    let command = u64::from(columns.small(15)?);
    let first = first.map(|first| crate::ledger::rows::codes::unsigned(first, TABLE));
    let seq = first.transpose()?.map_or(0, |first| first + command);
    Ok(Commit {
        event,
        seq: Seq(seq),
        at: Timestamp::from_ms(columns.get(14)?),
        origin: Origin {
            actor: actor.map_or(Actor::System, |id| {
                Actor::Caller(CallerId::from_bytes(id.0))
            }),
            request: request.into(),
        },
        reason: columns.text(13)?,
        transitions: vec![step(&columns)?],
    })
}

/// The commits of some batches, each batch's in their order. Batches are of these events.
pub(in super::super) fn read_batches(
    events: &BTreeMap<Id, EventNo>,
    rows: &[Row],
) -> Result<BTreeMap<Id, Vec<Commit>>, Damaged> {
    let mut batches = BTreeMap::new();
    let mut rest = rows;
    while let Some(first) = rest.first() {
        let batch: Id = Columns::new(first, TABLE).get(17)?;
        let is_same = |row: &&Row| {
            Columns::new(row, TABLE)
                .get(17)
                .is_ok_and(|id: Id| id == batch)
        };
        let (own, others) = rest.split_at(rest.iter().take_while(is_same).count().max(1));
        if let Some(event) = events.get(&batch) {
            batches.insert(batch, read(*event, own)?);
        }
        rest = others;
    }
    Ok(batches)
}

/// The commits of rows that stand in their order.
pub(in super::super) fn read(event: EventNo, rows: &[Row]) -> Result<Vec<Commit>, Damaged> {
    let mut commits: Vec<Commit> = Vec::new();
    let mut last = None;
    for row in rows {
        let columns = Columns::new(row, TABLE);
        let (batch, command): (Id, i32) = (columns.get(17)?, columns.get(15)?);
        if last == Some((batch, command))
            && let Some(commit) = commits.last_mut()
        {
            commit.transitions.push(step(&columns)?);
        } else {
            commits.push(read_one(event, row)?);
            last = Some((batch, command));
        }
    }
    Ok(commits)
}
