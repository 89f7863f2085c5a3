//! The scan of one event's audit: computes every hash again, has the auditor check every rule, and
//! collects the final state of every unit and hold. Keeps in memory one commit and the auditor's
//! state.

use std::collections::BTreeMap;

use soldonce_core::{
    Auditor, Cause, Commit, Event, Fence, History, HoldId, HoldTerms, Policy, Seq, Transition,
    Unit, UnitNo, UnitState,
};

use super::VerifyReport;
use crate::ledger::rows::chain::{self, AuditRow};

/// The final states by the audit. Units that never changed are not in it.
#[derive(Debug, Default)]
pub(crate) struct Ends {
    pub(crate) units: BTreeMap<UnitNo, Unit>,
    pub(crate) holds: BTreeMap<HoldId, HoldEnd>,
}

/// A hold by its last audit rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HoldEnd {
    /// The cause of the last change of its units.
    pub(crate) cause: Cause,
    /// The fence that it wrote to its units when they were last held.
    pub(crate) fence: Fence,
}

/// The end of one event's audit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChainEnd {
    /// The number of the last commit.
    pub(crate) seq: Seq,
    /// How many rows there are, if the store records it.
    pub(crate) rows: Option<u64>,
    /// The hash of the last row.
    pub(crate) hash: [u8; 32],
}

/// Creates an event's history without commits; `terms` is its policy, if it never changed.
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
    auditor: Auditor<'a>,
    hash: [u8; 32],
    bytes: Vec<u8>,
    left: Ends,
    /// The number of the last commit.
    pub(crate) seq: Seq,
    /// The first commit whose stored hash is not that of its rows.
    broken: Option<Seq>,
    /// Rows of the audit so far.
    pub(crate) rows: u64,
    commits: u64,
}

impl<'a> Walk<'a> {
    /// Starts before the first commit of the event; `history` is [`history_of`] it.
    pub(crate) fn begin(event: &'a Event, history: &'a History) -> Self {
        Self {
            event,
            auditor: Auditor::begin(history),
            hash: chain::start(event),
            bytes: Vec::new(),
            left: Ends::default(),
            seq: Seq::default(),
            broken: None,
            rows: 0,
            commits: 0,
        }
    }

    /// Appends one more row to the chain's hash.
    pub(crate) fn link(&mut self, row: &AuditRow<'_>) {
        self.hash = chain::next(self.hash, row, &mut self.bytes);
    }

    /// Checks that the chain has this hash at a row of commit `seq`.
    pub(crate) fn require_hash(&mut self, seq: Seq, hash: [u8; 32]) {
        if self.hash != hash && self.broken.is_none() {
            self.broken = Some(seq);
        }
    }

    /// Checks the next commit with the auditor, and applies its transitions to the final state.
    pub(crate) fn commit(&mut self, commit: &Commit) {
        for step in &commit.transitions {
            self.rows += 1;
            self.step(step);
        }
        self.seq = commit.seq;
        self.commits += 1;
        self.auditor.commit(commit);
    }

    fn step(&mut self, step: &Transition) {
        let unit = Unit {
            state: step.to,
            fence: step.fence,
            version: step.version,
        };
        self.left.units.insert(step.unit, unit);
        // A change of units without a hold, by the clock or staff, says nothing about a hold.
        if let Some(hold) = step.hold {
            let cause = step.cause;
            let left = self.left.holds.entry(hold).or_insert(HoldEnd {
                cause,
                fence: step.fence,
            });
            left.cause = cause;
            if matches!(step.to, UnitState::Held { .. }) {
                left.fence = step.fence;
            }
        }
    }

    /// Checks that the numbered commits end where the store's record of the chain does.
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

    /// Adds the counts and the auditor's findings to the report; returns the final states.
    pub(crate) fn finish(self, report: &mut VerifyReport) -> Ends {
        report.transitions += self.rows;
        report.commits += self.commits;
        for violation in self.auditor.finish() {
            let name = |unit: UnitNo| format!("unit {}: ", self.event.chart.unit_name(unit));
            let unit = violation.unit.map(name).unwrap_or_default();
            let detail = format!("{unit}commit {}: {}", violation.seq.0, violation.detail);
            report.find(Some(self.event), violation.invariant.as_str(), detail);
        }
        self.left
    }
}
