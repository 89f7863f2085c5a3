//! The walk along one event's audit: every hash again, every rule by the auditor, and the state of
//! every unit that it leads to. Keeps no more than one commit in memory, beside what the auditor
//! remembers.

use std::collections::BTreeMap;

use rusqlite::Connection;
use soldonce_core::{Audit, Auditor, Commit, Event, History, HoldTerms, Seq, Unit, UnitNo};

use super::{Meter, VerifyReport};
use crate::ledger::sqlite::fault::Fault;
use crate::ledger::sqlite::tables::audit::{self, Chain, ReadRow};

/// The units as the audit leaves them. Those that never changed are not in it.
pub(super) type UnitsLeft = BTreeMap<UnitNo, Unit>;

/// Rows between two reports of progress.
const PROGRESS_EVERY: u64 = 20_000;

pub(super) fn walk(
    connection: &Connection,
    event: &Event,
    holds: Vec<HoldTerms>,
    report: &mut VerifyReport,
    meter: &mut Meter<'_>,
) -> Result<UnitsLeft, Fault> {
    let history = History {
        units: event.chart.units(),
        units_per_holder_max: None,
        payment_window: None,
        holds,
        commits: Vec::new(),
    };
    let mut walk = Walk {
        event,
        audit: Auditor::begin(&history),
        chain: Chain::start(event),
        bytes: Vec::new(),
        left: UnitsLeft::new(),
        commit: None,
        broken: None,
        rows: 0,
        commits: 0,
    };
    let before = report.transitions;
    let everything = (Seq::default(), Seq(i64::MAX.cast_unsigned()));
    audit::each_after(connection, event.no, everything, |row| {
        match row {
            Ok(row) => walk.row(row),
            Err(fault) => report.fault(Some(event), &fault),
        }
        if walk.rows.is_multiple_of(PROGRESS_EVERY) {
            meter.show(before.saturating_add(walk.rows));
        }
        Ok(())
    })?;
    walk.end_commit();
    report.transitions += walk.rows;
    report.commits += walk.commits;
    walk.check_chain(connection, report)?;
    for violation in walk.audit.finish() {
        let name = |unit: UnitNo| format!("unit {}: ", event.chart.unit_name(unit));
        let unit = violation.unit.map(name).unwrap_or_default();
        let detail = format!("{unit}commit {}: {}", violation.seq.0, violation.detail);
        report.find(Some(event), violation.invariant.as_str(), detail);
    }
    Ok(walk.left)
}

struct Walk<'a> {
    event: &'a Event,
    audit: Audit<'a>,
    chain: Chain,
    bytes: Vec<u8>,
    left: UnitsLeft,
    /// The commit whose rows are being read.
    commit: Option<Commit>,
    /// The first commit whose hash is not what its rows say.
    broken: Option<Seq>,
    rows: u64,
    commits: u64,
}

impl Walk<'_> {
    fn row(&mut self, mut row: ReadRow) {
        self.rows += 1;
        if let Some(next) = row.as_row() {
            self.chain = self.chain.then(&next, &mut self.bytes);
        }
        if self.chain.hash != row.hash && self.broken.is_none() {
            self.broken = Some(row.commit.seq);
        }
        for step in &row.commit.transitions {
            let unit = Unit {
                state: step.to,
                fence: step.fence,
                version: step.version,
            };
            self.left.insert(step.unit, unit);
        }
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
            self.commits += 1;
            self.audit.commit(&commit);
        }
    }

    fn check_chain(&self, connection: &Connection, report: &mut VerifyReport) -> Result<(), Fault> {
        let event = Some(self.event);
        if let Some(seq) = self.broken {
            let detail = format!(
                "the rows of commit {} are not those that were written",
                seq.0
            );
            report.find(event, "I20 broken chain", detail);
        }
        match Chain::find(connection, self.event.no) {
            Ok(None) if self.rows == 0 => {}
            Ok(None) => report.find(event, "I20 broken chain", "its end is not recorded"),
            Ok(Some(end)) if end == self.chain => {}
            Ok(Some(end)) => {
                let (found, stored) = (self.chain.seq.0, end.seq.0);
                let detail = format!("it ends at commit {found}, recorded is commit {stored}");
                report.find(event, "I20 broken chain", detail);
            }
            Err(fault @ Fault::Damaged(_)) => report.fault(event, &fault),
            Err(other) => return Err(other),
        }
        Ok(())
    }
}
