//! The walk over a history, commit by commit: what must be true of a commit as a whole.

use std::collections::{BTreeMap, BTreeSet};

use super::bounds::Bounds;
use super::live::{Memory, Pin};
use super::{History, Invariant, Violation};
use crate::number::index;
use crate::{Cause, Commit, Fence, HoldId, Seq, Span, Timestamp, UnitNo};

/// Checks a history, commit by commit.
pub struct Auditor<'a> {
    pub(super) history: &'a History,
    pub(super) bounds: Option<Bounds>,
    pub(super) memory: Memory<'a>,
    pub(super) violations: Vec<Violation>,
    pub(super) seq: Seq,
    pub(super) at: Timestamp,
    /// By how much this commit sets the clock back.
    pub(super) set_back: Span,
    /// Ends beyond caps that a later correction of the clock may explain.
    pub(super) beyond_cap: Vec<BeyondCap>,
}

/// An end beyond its hold's cap, and by how much. The cap is the one that the hold has in the end: where the
/// clock was set back in its life, that is earlier by as much.
pub(super) struct BeyondCap {
    pub(super) hold: HoldId,
    pub(super) by: Span,
    /// Its index in the violations.
    pub(super) at: usize,
}

/// The holds that one commit changed.
#[derive(Default)]
pub(super) struct HoldChanges {
    /// Holds that had, got or lost units, and why.
    pub(super) holds: BTreeMap<HoldId, BTreeSet<Cause>>,
    /// Holds that took or gave up units, with the newest fence of all of these before and the one
    /// they have now.
    fences: BTreeMap<HoldId, (Fence, Fence)>,
}

impl HoldChanges {
    pub(super) fn touched(&mut self, hold: HoldId, cause: Cause) {
        self.holds.entry(hold).or_default().insert(cause);
    }

    pub(super) fn had(&mut self, hold: HoldId, before: Fence) {
        let (newest, _) = self.fences.entry(hold).or_default();
        *newest = before.max(*newest);
    }

    pub(super) fn fenced(&mut self, hold: HoldId, before: Fence, now: Fence) {
        let (newest, fence) = self.fences.entry(hold).or_default();
        *newest = before.max(*newest);
        *fence = now;
    }
}

impl<'a> Auditor<'a> {
    /// Returns every violation in the history of one event, in the order of the commits.
    pub fn check(history: &History) -> Vec<Violation> {
        let mut auditor = Auditor::begin(history);
        for commit in &history.commits {
            auditor.commit(commit);
        }
        auditor.finish()
    }

    /// Starts the audit of a history that does not fit into memory at once: `history` without its
    /// commits, which are then given one by one.
    pub fn begin(history: &'a History) -> Self {
        Self {
            history,
            bounds: history.terms.as_ref().map(Bounds::from),
            memory: Memory::new(&history.holds),
            violations: Vec::new(),
            seq: Seq::default(),
            at: Timestamp::MIN,
            set_back: Span::default(),
            beyond_cap: Vec::new(),
        }
    }

    pub fn commit(&mut self, commit: &Commit) {
        if commit.seq != self.seq.next() {
            let detail = format!("after {:?} came {:?}", self.seq, commit.seq);
            self.report(None, Invariant::I20Gap, detail);
        }
        self.seq = commit.seq;
        self.set_back = self.correction(commit);
        if commit.at.plus(self.set_back) < self.at {
            let detail = format!("{:?} after {:?}", commit.at, self.at);
            self.report(None, Invariant::I21TimeWentBack, detail);
        }
        self.at = commit.at;
        let mut touched = HoldChanges::default();
        for transition in &commit.transitions {
            self.transition(&mut touched, transition);
        }
        self.whole_holds(&touched);
        self.one_fence(&touched);
        self.budgets(&touched);
        self.end_correction(&touched);
        for (hold, causes) in touched.holds {
            self.pins(hold, &causes);
            self.memory.forget_if_empty(hold);
        }
    }

    /// Checks I5: a hold that ends, ends with all of its units in one commit; one that lives has
    /// all of them on the same terms.
    fn whole_holds(&mut self, touched: &HoldChanges) {
        for (id, causes) in &touched.holds {
            let Some(hold) = self.memory.hold(*id) else {
                continue;
            };
            let units: Vec<UnitNo> = hold.units.keys().copied().collect();
            let mut terms = hold.units.values();
            let first = terms.next();
            let uneven = terms.any(|other| Some(other) != first);
            let most = self.bounds.map(|bounds| bounds.units_per_hold_max);
            if most.is_some_and(|most| index(most) < units.len()) {
                let detail = format!("{id:?} has {units:?}, limit {most:?}");
                self.report(None, Invariant::I9OverBudget, detail);
            }
            if causes.iter().any(|cause| ends_whole_hold(*cause)) && !units.is_empty() {
                let detail = format!("{id:?} ended but keeps {units:?}");
                self.report(None, Invariant::I5PartialHold, detail);
            } else if uneven {
                let detail = format!("{id:?} has {units:?} on different terms");
                self.report(None, Invariant::I5PartialHold, detail);
            }
        }
    }

    /// Checks I6: `fence(hold) = 1 + max(fence of its units)`, whenever it takes or drops one (T6):
    /// those that it drops are among them, so that it never falls.
    fn one_fence(&mut self, touched: &HoldChanges) {
        for (hold, (newest, fence)) in &touched.fences {
            if *fence != newest.next() {
                let detail = format!("{hold:?} has {fence:?}, its units had {newest:?}");
                self.report(None, Invariant::I6FenceNotRising, detail);
            }
        }
    }

    /// Checks I3: payment begins once at a time; meanwhile a hold makes no step but its end.
    fn pins(&mut self, id: HoldId, causes: &BTreeSet<Cause>) {
        let before = self.memory.pin(id);
        let mut after = before;
        for cause in causes {
            let is_open = before == Pin::Open;
            let fits = match cause {
                Cause::Unpinned => is_open,
                Cause::Pinned | Cause::Extended | Cause::Changed | Cause::Exchanged => !is_open,
                Cause::Held
                | Cause::Released
                | Cause::Expired
                | Cause::Revoked
                | Cause::Confirmed
                | Cause::SoldDirectly
                | Cause::Cancelled
                | Cause::Blocked
                | Cause::Unblocked
                | Cause::ClockCorrected => true,
            };
            if !fits {
                let detail = format!("{id:?}: {cause:?} with its payment {before:?}");
                self.report(None, Invariant::I3BrokenState, detail);
            }
            if *cause == Cause::Pinned {
                after = Pin::Open;
            } else if *cause == Cause::Unpinned {
                after = Pin::Ended;
            }
        }
        self.memory.set_pin(id, after);
    }

    fn budgets(&mut self, touched: &HoldChanges) {
        let Some(bounds) = self.bounds else {
            return;
        };
        let limit = bounds.units_per_holder_max;
        for hold in touched.holds.keys() {
            let Some(terms) = self.memory.terms(*hold) else {
                continue;
            };
            let live = self.memory.live_holds(&terms.holder, self.at);
            let held: usize = live.map(|hold| hold.units.len()).sum();
            if held > index(limit) {
                let detail = format!("{} holds {held}, limit {limit}", terms.holder.name);
                self.report(None, Invariant::I9OverBudget, detail);
            }
        }
    }

    pub(super) fn report(&mut self, unit: Option<UnitNo>, invariant: Invariant, detail: String) {
        self.violations.push(Violation {
            invariant,
            seq: self.seq,
            unit,
            detail,
        });
    }
}

/// Tells whether all units of a hold must leave it in one commit.
fn ends_whole_hold(cause: Cause) -> bool {
    match cause {
        Cause::Released | Cause::Expired | Cause::Revoked | Cause::Confirmed | Cause::Exchanged => {
            true
        }
        Cause::Held
        | Cause::Extended
        | Cause::Changed
        | Cause::Pinned
        | Cause::Unpinned
        | Cause::SoldDirectly
        | Cause::Cancelled
        | Cause::Blocked
        | Cause::Unblocked
        | Cause::ClockCorrected => false,
    }
}
