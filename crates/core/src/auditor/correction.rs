//! Corrections of the ledger's clock by an operator: the one commit that may be earlier than the one before
//! it. It says by how much, and every hold ends earlier by exactly that, so that it keeps what it has left.

use super::check::{Auditor, BeyondCap, HoldChanges};
use super::{Invariant, Violation};
use crate::{Cause, Commit, HoldId, Span};

const CORRECTED: Cause = Cause::ClockCorrected;

impl Auditor<'_> {
    /// Returns by how much a commit sets the clock back; zero unless it is wholly a correction.
    pub(super) fn correction(&mut self, commit: &Commit) -> Span {
        let mut steps = commit.transitions.iter();
        if !steps.any(|step| step.cause == CORRECTED) {
            return Span::default();
        }
        let mut steps = commit.transitions.iter();
        if !steps.all(|step| step.cause == CORRECTED) {
            let detail = "a correction of the clock with other steps".to_owned();
            self.report(None, Invariant::I21TimeWentBack, detail);
        }
        let reason = commit.reason.as_ref().map_or("", |reason| reason.as_str());
        let said = reason.strip_prefix("the clock is set back by ");
        let said = said.and_then(|said| said.strip_suffix(" ms"));
        if let Some(ms) = said.and_then(|said| said.parse().ok()) {
            return Span::from_ms(ms);
        }
        let detail = format!("a correction of the clock says `{reason}`");
        self.report(None, Invariant::I21TimeWentBack, detail);
        Span::default()
    }

    /// Checks that every hold is corrected: one that is not would live longer than was promised.
    pub(super) fn end_correction(&mut self, touched: &HoldChanges) {
        if self.set_back == Span::default() {
            return;
        }
        let forgotten = self.memory.holding();
        let forgotten = forgotten.filter(|hold| !touched.holds.contains_key(hold));
        for hold in forgotten.collect::<Vec<_>>() {
            let detail = format!("{hold:?} keeps its end though the clock was set back");
            self.report(None, Invariant::I21TimeWentBack, detail);
        }
        for beyond in &mut self.beyond_cap {
            if touched.holds.contains_key(&beyond.hold) {
                beyond.by = Span::from_ms(beyond.by.ms().saturating_sub(self.set_back.ms()));
            }
        }
    }

    /// Records that the violation which is reported next is this end, so far beyond its cap.
    pub(super) fn beyond_cap(&mut self, hold: HoldId, by: Span) {
        let at = self.violations.len();
        self.beyond_cap.push(BeyondCap { hold, by, at });
    }

    /// Returns every violation that no correction explains.
    pub fn finish(self) -> Vec<Violation> {
        let explained = self.beyond_cap.iter();
        let explained = explained.filter(|beyond| beyond.by == Span::default());
        let explained: Vec<usize> = explained.map(|beyond| beyond.at).collect();
        let found = self.violations.into_iter().enumerate();
        let left = found.filter(|(at, _)| explained.binary_search(at).is_err());
        left.map(|(_, violation)| violation).collect()
    }
}
