//! The walk along one event's audit: every hash again, every rule by the auditor, and the state of
//! every unit and hold that it leads to. Keeps no more than one commit in memory, and what the
//! auditor remembers.

use std::collections::BTreeMap;

use soldonce_core::{
    Audit, Auditor, Cause, Commit, Event, Fence, History, HoldId, HoldTerms, Policy, Seq,
    Transition, Unit, UnitNo, UnitState,
};

use super::VerifyReport;
use crate::ledger::rows::chain::{self, AuditRow};

/// What the audit leads to. Units that never changed are not in it.
#[derive(Debug, Default)]
pub(crate) struct Left {
    pub(crate) units: BTreeMap<UnitNo, Unit>,
    pub(crate) holds: BTreeMap<HoldId, HoldLeft>,
}

/// A hold as its last steps leave it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HoldLeft {
    /// Why its units changed last.
    pub(crate) cause: Cause,
    /// What it wrote to the units that it took last.
    pub(crate) fence: Fence,
}

/// Where the audit of one event ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChainEnd {
    /// Of the last commit.
    pub(crate) seq: Seq,
    /// How many rows there are, where the store remembers it.
    pub(crate) rows: Option<u64>,
    /// Of the last row.
    pub(crate) hash: [u8; 32],
}

/// An event's history before its first commit; `terms` are those that were in force all the time.
pub(crate) fn history_of(event: &Event, terms: Option<Policy>, holds: Vec<HoldTerms>) -> History {
    History {
        units: event.chart.units(),
        terms,
        holds,
        commits: Vec::new(),
    }
}

pub(crate) struct Walk<'a> {
    event: &'a Event,
    audit: Audit<'a>,
    hash: [u8; 32],
    bytes: Vec<u8>,
    left: Left,
    /// The last commit.
    seq: Seq,
    /// The first commit whose hash is not what its rows say.
    broken: Option<Seq>,
    /// Rows of the audit so far.
    pub(crate) rows: u64,
    commits: u64,
}

impl<'a> Walk<'a> {
    /// At the beginning of the event; `history` is [`history_of`] it.
    pub(crate) fn begin(event: &'a Event, history: &'a History) -> Self {
        Self {
            event,
            audit: Auditor::begin(history),
            hash: chain::start(event),
            bytes: Vec::new(),
            left: Left::default(),
            seq: Seq::default(),
            broken: None,
            rows: 0,
            commits: 0,
        }
    }

    /// The last commit.
    pub(crate) fn seq(&self) -> Seq {
        self.seq
    }

    /// Links one more row to the chain.
    pub(crate) fn link(&mut self, row: &AuditRow<'_>) {
        self.hash = chain::next(self.hash, row, &mut self.bytes);
    }

    /// The chain must have come to this hash with commit `seq`.
    pub(crate) fn require_hash(&mut self, seq: Seq, hash: [u8; 32]) {
        if self.hash != hash && self.broken.is_none() {
            self.broken = Some(seq);
        }
    }

    /// Judges the next commit, and takes its steps.
    pub(crate) fn commit(&mut self, commit: &Commit) {
        for step in &commit.transitions {
            self.rows += 1;
            self.step(step);
        }
        self.seq = commit.seq;
        self.commits += 1;
        self.audit.commit(commit);
    }

    fn step(&mut self, step: &Transition) {
        let unit = Unit {
            state: step.to,
            fence: step.fence,
            version: step.version,
        };
        self.left.units.insert(step.unit, unit);
        // What the clock or staff did to units without a hold has nothing to say of one.
        if let Some(hold) = step.hold {
            let cause = step.cause;
            let left = self.left.holds.entry(hold).or_insert(HoldLeft {
                cause,
                fence: step.fence,
            });
            left.cause = cause;
            if matches!(step.to, UnitState::Held { .. }) {
                left.fence = step.fence;
            }
        }
    }

    /// The numbered commits must end where the store says they do.
    pub(crate) fn check_end(&self, recorded: Option<ChainEnd>, report: &mut VerifyReport) {
        let event = Some(self.event);
        if let Some(seq) = self.broken {
            let seq = seq.0;
            let detail = format!("the rows of commit {seq} are not those that were written");
            report.find(event, "I20 broken chain", detail);
        }
        let Some(end) = recorded else {
            if self.rows > 0 {
                report.find(event, "I20 broken chain", "its end is not recorded");
            }
            return;
        };
        let is_same = end.seq == self.seq
            && end.hash == self.hash
            && end.rows.is_none_or(|rows| rows == self.rows);
        if !is_same {
            let (found, stored) = (self.seq.0, end.seq.0);
            let detail = format!("it ends at commit {found}, recorded is commit {stored}");
            report.find(event, "I20 broken chain", detail);
        }
    }

    /// Counts what was walked, tells what the auditor found, and gives what the audit leads to.
    pub(crate) fn finish(self, report: &mut VerifyReport) -> Left {
        report.transitions += self.rows;
        report.commits += self.commits;
        for violation in self.audit.finish() {
            let name = |unit: UnitNo| format!("unit {}: ", self.event.chart.unit_name(unit));
            let unit = violation.unit.map(name).unwrap_or_default();
            let detail = format!("{unit}commit {}: {}", violation.seq.0, violation.detail);
            report.find(Some(self.event), violation.invariant.as_str(), detail);
        }
        self.left
    }
}
