//! Reads one event's audit row by row, each with the hash that was stored with it.

use rusqlite::Connection;
use soldonce_core::{Commit, Event, HoldTerms};

use super::note;
use crate::ledger::sqlite::fault::Fault;
use crate::ledger::sqlite::tables::audit::{self, Chain, ReadRow};
use crate::ledger::sqlite::tables::events;
use crate::ledger::verify::{ChainEnd, Ends, Meter, VerifyReport, Walk, history_of};

/// Rows between two reports of progress.
const PROGRESS_EVERY: u64 = 20_000;

pub(super) fn walk(
    connection: &Connection,
    event: &Event,
    holds: Vec<HoldTerms>,
    report: &mut VerifyReport,
    meter: &mut Meter<'_>,
) -> Result<Ends, Fault> {
    let history = history_of(event, events::steady_terms(connection, event)?, holds);
    let mut rows = Rows {
        walk: Walk::begin(event, &history),
        commit: None,
    };
    let before = report.transitions;
    let mut read: u64 = 0;
    audit::each_of_event(connection, event.no, |row| {
        match row {
            Ok(row) => rows.row(row),
            Err(fault) => report.damaged(Some(event), &fault),
        }
        read += 1;
        if read.is_multiple_of(PROGRESS_EVERY) {
            meter.show(before.saturating_add(read));
        }
        Ok(())
    })?;
    rows.end_commit();
    if let Some(end) = note(report, Some(event), Chain::find(connection, event.no))? {
        let end = end.map(|chain| ChainEnd {
            seq: chain.seq,
            rows: Some(chain.steps),
            hash: chain.hash,
        });
        rows.walk.check_end(end, report);
    }
    Ok(rows.walk.finish(report))
}

struct Rows<'a> {
    walk: Walk<'a>,
    /// The commit whose rows are being read.
    commit: Option<Commit>,
}

impl Rows<'_> {
    fn row(&mut self, mut row: ReadRow) {
        if let Some(next) = row.as_row() {
            self.walk.link(&next);
        }
        self.walk.require_hash(row.commit.seq, row.hash);
        match &mut self.commit {
            Some(commit) if commit.seq == row.commit.seq => {
                commit.transitions.append(&mut row.commit.transitions);
            }
            Some(_) | None => {
                self.end_commit();
                self.commit = Some(row.commit);
            }
        }
    }

    fn end_commit(&mut self) {
        if let Some(commit) = self.commit.take() {
            self.walk.commit(&commit);
        }
    }
}
