//! The audit: a row for each transition, linked by hashes, one chain for each event.

use rusqlite::{Connection, OptionalExtension, Row, params};
use soldonce_core::{
    Actor, CallerId, Cause, Commit, Event, EventNo, Fence, HoldId, Origin, Seq, Text, Timestamp,
    Transition, UnitNo, Version,
};

use super::codes::require_sum;
use crate::ledger::rows::chain::{self, AuditRow};
use crate::ledger::rows::codes::{StateColumns, number, small, unsigned, value};
use crate::ledger::sqlite::checksum::Checksum;
use crate::ledger::sqlite::fault::{Fault, one_row, stored};

const TABLE: &str = "audit";
const CHAINS: &str = "chains";

const INSERT_AUDIT: &str = "-- insert_audit
INSERT OR FAIL INTO audit (event_no, seq, n, at, unit_no, from_state, from_owner, from_until, to_state,
                   to_owner, to_until, fence, version, cause, hold, actor, request, reason, hash)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19)";

const AUDIT_AFTER: &str = "-- audit_after
SELECT event_no, seq, n, at, unit_no, from_state, from_owner, from_until, to_state, to_owner,
       to_until, fence, version, cause, hold, actor, request, reason, hash
FROM audit WHERE event_no = ?1 AND seq > ?2 AND seq <= ?3 ORDER BY seq, n";

const AUDIT_OF_UNIT: &str = "-- audit_of_unit
SELECT event_no, seq, n, at, unit_no, from_state, from_owner, from_until, to_state, to_owner,
       to_until, fence, version, cause, hold, actor, request, reason, hash
FROM audit WHERE event_no = ?1 AND unit_no = ?2 ORDER BY seq, n LIMIT ?3";

const UPSERT_CHAIN: &str = "-- upsert_chain
INSERT INTO chains (event_no, seq, steps, hash, checksum) VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (event_no) DO UPDATE
SET seq = excluded.seq, steps = excluded.steps, hash = excluded.hash, checksum = excluded.checksum
WHERE chains.seq < excluded.seq";

const CHAIN: &str = "-- chain
SELECT event_no, seq, steps, hash, checksum FROM chains WHERE event_no = ?1";

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[
    INSERT_AUDIT,
    AUDIT_AFTER,
    AUDIT_OF_UNIT,
    UPSERT_CHAIN,
    CHAIN,
];

/// Where the audit of one event ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chain {
    /// Of the last commit.
    pub(crate) seq: Seq,
    /// How many rows there are.
    pub(crate) steps: u64,
    /// Of the last row.
    pub(crate) hash: [u8; 32],
}

impl Chain {
    /// The chain of an event without commits.
    pub(crate) fn start(event: &Event) -> Self {
        Self {
            seq: Seq::default(),
            steps: 0,
            hash: chain::start(event),
        }
    }

    /// The chain with one more row.
    #[must_use]
    pub(crate) fn then(self, row: &AuditRow<'_>, bytes: &mut Vec<u8>) -> Self {
        Self {
            seq: row.seq,
            steps: self.steps.saturating_add(1),
            hash: chain::next(self.hash, row, bytes),
        }
    }

    fn checksum(&self, event: EventNo) -> Result<Checksum, Fault> {
        let sum = Checksum::of(CHAINS)
            .int(i64::from(event.0))
            .int(stored(self.seq.0)?);
        Ok(sum.int(stored(self.steps)?).bytes(&self.hash))
    }

    /// Writes the end of an event's chain.
    pub(crate) fn write(&self, connection: &Connection, event: EventNo) -> Result<(), Fault> {
        let (seq, steps) = (stored(self.seq.0)?, stored(self.steps)?);
        let sum = self.checksum(event)?.stored();
        let mut statement = connection.prepare_cached(UPSERT_CHAIN)?;
        let rows = statement.execute(params![event.0, seq, steps, self.hash, sum])?;
        one_row("upsert_chain", rows)
    }

    /// The end of an event's chain; nothing for an event without commits.
    pub(crate) fn find(connection: &Connection, event: EventNo) -> Result<Option<Self>, Fault> {
        let mut statement = connection.prepare_cached(CHAIN)?;
        let read = |row: &Row<'_>| -> Result<Self, Fault> {
            let chain = Self {
                seq: Seq(unsigned(row.get(1)?, CHAINS)?),
                steps: unsigned(row.get(2)?, CHAINS)?,
                hash: row.get(3)?,
            };
            let name = || format!("the chain of event {}", event.0);
            require_sum(CHAINS, chain.checksum(event)?, row.get(4)?, name)?;
            Ok(chain)
        };
        statement
            .query_row([event.0], |row| Ok(read(row)))
            .optional()?
            .transpose()
    }
}

/// Writes the rows of a commit behind the end of its event's chain and moves the end.
pub(crate) fn append(
    connection: &Connection,
    commit: &Commit,
    chain: &mut Chain,
    bytes: &mut Vec<u8>,
) -> Result<(), Fault> {
    if commit.seq != chain.seq.next() {
        let what = format!("{:?} cannot follow {:?}", commit.seq, chain.seq);
        return Err(Fault::damaged(CHAINS, what));
    }
    let mut insert = connection.prepare_cached(INSERT_AUDIT)?;
    for row in AuditRow::of(commit) {
        *chain = chain.then(&row, bytes);
        let Transition {
            unit,
            from,
            to,
            fence,
            version,
            cause,
            hold,
        } = row.step;
        let (from, to) = (StateColumns::from(*from), StateColumns::from(*to));
        let rows = insert.execute(params![
            row.event.0,
            stored(row.seq.0)?,
            row.n,
            row.at.ms(),
            unit.0,
            from.state,
            from.owner,
            from.until,
            to.state,
            to.owner,
            to.until,
            stored(fence.0)?,
            stored(version.0)?,
            number(&Cause::ALL, cause),
            hold.map(|hold| *hold.bytes()),
            row.actor(),
            &*row.origin.request,
            row.reason.map(Text::as_str),
            chain.hash,
        ])?;
        one_row("insert_audit", rows)?;
    }
    Ok(())
}

/// A row as it was read: a commit with this one transition, its place in the commit, its hash.
pub(crate) struct ReadRow {
    pub(crate) commit: Commit,
    pub(crate) n: i64,
    pub(crate) hash: [u8; 32],
}

impl ReadRow {
    /// The row as it was written, to be hashed again.
    pub(crate) fn as_row(&self) -> Option<AuditRow<'_>> {
        AuditRow::of(&self.commit)
            .next()
            .map(|row| AuditRow { n: self.n, ..row })
    }
}

fn read(row: &Row<'_>) -> Result<ReadRow, Fault> {
    let seq = Seq(unsigned(row.get(1)?, TABLE)?);
    let illegal = |what: &str| Fault::damaged(TABLE, format!("{what} at {seq:?} is illegal"));
    let actor: Option<[u8; 16]> = row.get(15)?;
    let actor = actor.map_or(Actor::System, |id| Actor::Caller(CallerId::from_bytes(id)));
    let request = row
        .get_ref(16)?
        .as_str()
        .map_err(|_| illegal("request"))?
        .into();
    let reason: Option<String> = row.get(17)?;
    let reason = reason
        .map(|text| Text::parse(&text))
        .transpose()
        .map_err(|_| illegal("reason"))?;
    let state = |first: usize| -> Result<_, Fault> {
        let (state, owner) = (row.get(first)?, row.get(first + 1)?);
        StateColumns {
            state,
            owner,
            until: row.get(first + 2)?,
        }
        .state(TABLE)
        .map_err(Fault::from)
    };
    let step = Transition {
        unit: UnitNo(small(row.get(4)?, TABLE)?),
        from: state(5)?,
        to: state(8)?,
        fence: Fence(unsigned(row.get(11)?, TABLE)?),
        version: Version(unsigned(row.get(12)?, TABLE)?),
        cause: value(&Cause::ALL, row.get(13)?, TABLE)?,
        hold: row.get::<_, Option<[u8; 16]>>(14)?.map(HoldId::from_bytes),
    };
    let commit = Commit {
        event: EventNo(small(row.get(0)?, TABLE)?),
        seq,
        at: Timestamp::from_ms(row.get(3)?),
        origin: Origin { actor, request },
        reason,
        transitions: vec![step],
    };
    Ok(ReadRow {
        commit,
        n: row.get(2)?,
        hash: row.get(18)?,
    })
}

/// Every row of an event after commit `after`, up to commit `last`. A damaged row is given as the
/// fault it is.
pub(crate) fn each_after(
    connection: &Connection,
    event: EventNo,
    (after, last): (Seq, Seq),
    mut take: impl FnMut(Result<ReadRow, Fault>) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let mut statement = connection.prepare_cached(AUDIT_AFTER)?;
    let mut rows = statement.query(params![event.0, stored(after.0)?, stored(last.0)?])?;
    while let Some(row) = rows.next()? {
        take(read(row))?;
    }
    Ok(())
}

/// The commits of an event after commit `after`, up to commit `last`, whole.
pub(crate) fn commits(
    connection: &Connection,
    event: EventNo,
    range: (Seq, Seq),
) -> Result<Vec<Commit>, Fault> {
    let mut commits: Vec<Commit> = Vec::new();
    each_after(connection, event, range, |row| {
        let mut commit = row?.commit;
        match commits.last_mut() {
            Some(last) if last.seq == commit.seq => {
                last.transitions.append(&mut commit.transitions);
            }
            Some(_) | None => commits.push(commit),
        }
        Ok(())
    })?;
    Ok(commits)
}

/// The first transitions of a unit, each as a commit of its own.
pub(crate) fn of_unit(
    connection: &Connection,
    event: EventNo,
    unit: UnitNo,
    limit: usize,
) -> Result<Vec<Commit>, Fault> {
    let mut statement = connection.prepare_cached(AUDIT_OF_UNIT)?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = statement.query_and_then(params![event.0, unit.0, limit], read)?;
    rows.map(|row| Ok(row?.commit)).collect()
}
