//! The audit: a row for each transition, linked by hashes, one chain for each event.

use rusqlite::{Connection, Row, params, params_from_iter};
use soldonce_core::{Commit, Event, EventNo, Seq, UnitNo};

use super::{all_rows, each_row, first_row, summed};
use crate::ledger::Tombstone;
use crate::ledger::rows::chain::{self, AuditRow, get_step};
use crate::ledger::rows::column::Column;
use crate::ledger::rows::most;
use crate::ledger::rows::reader::Reader;
use crate::ledger::sqlite::fault::{Fault, one_row};

const TABLE: &str = "audit";
const CHAINS: &str = "chains";

/// Selects what [`read`] reads.
macro_rules! select {
    ($name:literal, $which:literal) => {
        concat!(
            $name,
            "\nSELECT",
            " event_no, seq, n, at, unit_no, from_state, from_owner, from_until, to_state, to_owner,
       to_until, fence, version, cause, hold, actor, request, reason, hash
FROM audit ",
            $which
        )
    };
}

statements! {
    INSERT_AUDIT = "-- insert_audit
INSERT OR FAIL INTO audit (event_no, seq, n, at, unit_no, from_state, from_owner, from_until, to_state,
                   to_owner, to_until, fence, version, cause, hold, actor, request, reason, hash)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19)";

    AUDIT_OF_EVENT = select!(
        "-- audit_of_event",
        "WHERE event_no = ?1 ORDER BY seq, n"
    );

    AUDIT_OF_UNIT = select!(
        "-- audit_of_unit",
        "WHERE event_no = ?1 AND unit_no = ?2 ORDER BY seq DESC, n DESC LIMIT ?3"
    );

    UPSERT_CHAIN = "-- upsert_chain
INSERT INTO chains (event_no, seq, steps, hash, checksum) VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (event_no) DO UPDATE
SET seq = excluded.seq, steps = excluded.steps, hash = excluded.hash, checksum = excluded.checksum
WHERE chains.seq < excluded.seq";

    CHAIN = "-- chain
SELECT event_no, seq, steps, hash, checksum FROM chains WHERE event_no = ?1";
}

/// The end of one event's audit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chain {
    /// The number of the last commit.
    pub(crate) seq: Seq,
    /// How many rows there are.
    pub(crate) steps: u64,
    /// The hash of the last row.
    pub(crate) hash: [u8; 32],
}

impl Chain {
    /// Starts the chain of an event without commits.
    pub(crate) fn start(event: &Event) -> Self {
        Self {
            seq: Seq::default(),
            steps: 0,
            hash: chain::start(event),
        }
    }

    /// Builds the end of a dropped event's chain. None of its rows is left, so `steps` is 0.
    pub(crate) const fn gone(tombstone: &Tombstone) -> Self {
        Self {
            seq: tombstone.seq,
            steps: 0,
            hash: tombstone.hash,
        }
    }

    /// Returns the chain with one more row.
    #[must_use]
    pub(crate) fn then(self, row: &AuditRow<'_>, bytes: &mut Vec<u8>) -> Self {
        Self {
            seq: row.seq,
            steps: self.steps.saturating_add(1),
            hash: chain::next(self.hash, row, bytes),
        }
    }

    pub(crate) fn write(&self, connection: &Connection, event: EventNo) -> Result<(), Fault> {
        let (seq, steps) = (Column::Count(self.seq.0), Column::Count(self.steps));
        let row = [
            Column::Small(event.0),
            seq,
            steps,
            Column::Bytes(&self.hash),
        ];
        summed::write(connection, UPSERT_CHAIN, CHAINS, &row)
    }

    /// Finds the end of an event's chain; none for an event without commits.
    pub(crate) fn find(connection: &Connection, event: EventNo) -> Result<Option<Self>, Fault> {
        let get = |row: &mut Reader<'_>| {
            let _event: EventNo = row.get()?;
            Ok(Self {
                seq: row.get()?,
                steps: row.get()?,
                hash: row.get()?,
            })
        };
        let name = |_: &Self| format!("the chain of event {}", event.0);
        first_row(connection, CHAIN, [event.0], |row| {
            summed::read(row, CHAINS, get, name)
        })
    }
}

pub(crate) fn chain_of(chains: &mut [Chain], event: EventNo) -> Result<&mut Chain, Fault> {
    let missing = || Fault::damaged(CHAINS, format!("event {} has no chain", event.0));
    chains.get_mut(event.index()).ok_or_else(missing)
}

/// Appends commits to the audit, each at the end of its event's chain.
pub(crate) fn append<'a>(
    connection: &Connection,
    commits: impl Iterator<Item = &'a Commit>,
    chains: &mut [Chain],
    bytes: &mut Vec<u8>,
) -> Result<(), Fault> {
    let mut insert = connection.prepare_cached(INSERT_AUDIT)?;
    for commit in commits {
        let chain = chain_of(chains, commit.event)?;
        if commit.seq != chain.seq.next() {
            let what = format!("{:?} cannot follow {:?}", commit.seq, chain.seq);
            return Err(Fault::damaged(CHAINS, what));
        }
        for row in AuditRow::of(commit) {
            *chain = chain.then(&row, bytes);
            let hash = Column::Bytes(&chain.hash);
            let rows = insert.execute(params_from_iter(row.put().iter().chain([&hash])))?;
            one_row("insert_audit", rows)?;
        }
    }
    Ok(())
}

/// A row as it was read: a commit with this one transition, its index in the commit, its hash.
pub(crate) struct ReadRow {
    pub(crate) commit: Commit,
    pub(crate) n: u32,
    pub(crate) hash: [u8; 32],
}

impl ReadRow {
    /// Returns the row as it was written, to be hashed again.
    pub(crate) fn as_row(&self) -> Option<AuditRow<'_>> {
        AuditRow::of(&self.commit)
            .next()
            .map(|row| AuditRow { n: self.n, ..row })
    }
}

fn read(row: &Row<'_>) -> Result<ReadRow, Fault> {
    let mut row = Reader::sqlite(row, TABLE);
    let (event, seq) = (row.get()?, row.get()?);
    let (n, at) = (row.get()?, row.get()?);
    let step = get_step(&mut row)?;
    let (origin, reason) = (row.get()?, row.get()?);
    let commit = Commit {
        event,
        seq,
        at,
        origin,
        reason,
        transitions: vec![step],
    };
    let hash = row.get()?;
    Ok(ReadRow { commit, n, hash })
}

/// Passes every row of an event to `take`, oldest first; a damaged row as its fault.
pub(crate) fn each_of_event(
    connection: &Connection,
    event: EventNo,
    mut take: impl FnMut(Result<ReadRow, Fault>) -> Result<(), Fault>,
) -> Result<(), Fault> {
    each_row(connection, AUDIT_OF_EVENT, [event.0], |row| take(read(row)))
}

/// Reads the commits of an event with all their transitions, oldest first.
pub(crate) fn of_event(connection: &Connection, event: EventNo) -> Result<Vec<Commit>, Fault> {
    let mut commits: Vec<Commit> = Vec::new();
    each_of_event(connection, event, |row| {
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

/// Reads the newest `limit` transitions of a unit, oldest first, each as a commit of its own.
pub(crate) fn of_unit(
    connection: &Connection,
    event: EventNo,
    unit: UnitNo,
    limit: usize,
) -> Result<Vec<Commit>, Fault> {
    let values = params![event.0, unit.0, most(limit)];
    let commit = |row: &Row<'_>| Ok(read(row)?.commit);
    let mut history: Vec<Commit> = all_rows(connection, AUDIT_OF_UNIT, values, commit)?;
    history.reverse();
    Ok(history)
}
