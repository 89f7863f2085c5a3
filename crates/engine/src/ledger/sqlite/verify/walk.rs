//! The walk along one event's audit: every hash again, every rule by the auditor, and the state of
//! every unit that it leads to.

use std::collections::BTreeMap;

use rusqlite::Connection;
use soldonce_core::{Auditor, Commit, Event, History, HoldTerms, Seq, Unit, UnitNo};

use super::VerifyReport;
use crate::ledger::sqlite::fault::Fault;
use crate::ledger::sqlite::tables::audit::{self, Chain, ReadRow};
use crate::ledger::sqlite::tables::holds;

/// The units as the audit leaves them. Those that never changed are not in it.
pub(super) type UnitsLeft = BTreeMap<UnitNo, Unit>;

pub(super) fn walk(
    connection: &Connection,
    event: &Event,
    report: &mut VerifyReport,
) -> Result<UnitsLeft, Fault> {
    let mut walk = Walk {
        event,
        chain: Chain::start(event),
        bytes: Vec::new(),
        left: UnitsLeft::new(),
        commits: Vec::new(),
        broken: None,
        rows: 0,
    };
    let everything = (Seq::default(), Seq(i64::MAX.cast_unsigned()));
    audit::each_after(connection, event.no, everything, |row| {
        match row {
            Ok(row) => walk.row(row),
            Err(fault) => report.fault(Some(event), &fault),
        }
        Ok(())
    })?;
    report.transitions += walk.rows;
    report.commits += u64::try_from(walk.commits.len()).unwrap_or(u64::MAX);
    walk.check_chain(connection, report)?;
    let history = History {
        units: event.chart.units(),
        units_per_holder_max: None,
        payment_window: None,
        holds: terms(connection, event, report)?,
        commits: std::mem::take(&mut walk.commits),
    };
    for violation in Auditor::check(&history) {
        let unit = violation
            .unit
            .map(|unit| event.chart.unit_name(unit).to_string());
        let unit = unit
            .map(|unit| format!("unit {unit}: "))
            .unwrap_or_default();
        let detail = format!("{unit}commit {}: {}", violation.seq.0, violation.detail);
        report.find(Some(event), violation.invariant.as_str(), detail);
    }
    Ok(walk.left)
}

struct Walk<'a> {
    event: &'a Event,
    chain: Chain,
    bytes: Vec<u8>,
    left: UnitsLeft,
    commits: Vec<Commit>,
    /// The first commit whose hash is not what its rows say.
    broken: Option<Seq>,
    rows: u64,
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
        match self.commits.last_mut() {
            Some(last) if last.seq == row.commit.seq => {
                last.transitions.append(&mut row.commit.transitions);
            }
            Some(_) | None => self.commits.push(row.commit),
        }
    }

    fn check_chain(&self, connection: &Connection, report: &mut VerifyReport) -> Result<(), Fault> {
        if let Some(seq) = self.broken {
            let detail = format!(
                "the rows of commit {} are not those that were written",
                seq.0
            );
            report.find(Some(self.event), "I20 broken chain", detail);
        }
        match Chain::find(connection, self.event.no) {
            Ok(None) if self.rows == 0 => {}
            Ok(None) => report.find(
                Some(self.event),
                "I20 broken chain",
                "its end is not recorded",
            ),
            Ok(Some(end)) if end == self.chain => {}
            Ok(Some(end)) => {
                let (found, stored) = (self.chain.seq.0, end.seq.0);
                let detail = format!("it ends at commit {found}, recorded is commit {stored}");
                report.find(Some(self.event), "I20 broken chain", detail);
            }
            Err(fault @ Fault::Damaged { .. }) => report.fault(Some(self.event), &fault),
            Err(other) => return Err(other),
        }
        Ok(())
    }
}

fn terms(
    connection: &Connection,
    event: &Event,
    report: &mut VerifyReport,
) -> Result<Vec<HoldTerms>, Fault> {
    let mut terms = Vec::new();
    // A damaged hold is told once, where the holds themselves are checked.
    holds::each_of(connection, event.no, |hold| {
        terms.extend(hold.as_ref().ok().map(HoldTerms::from));
    })?;
    report.holds += u64::try_from(terms.len()).unwrap_or(u64::MAX);
    Ok(terms)
}
