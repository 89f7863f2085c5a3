//! The walk over a history.

use std::collections::BTreeSet;

use super::live::Memory;
use super::{History, Invariant, Violation};
use crate::{Cause, Commit, HoldId, Seq, Span, StateKind, Timestamp, Transition, Unit, UnitState};

pub(super) fn check(history: &History) -> Vec<Violation> {
    let mut walk = Walk {
        history,
        memory: Memory::new(&history.holds),
        violations: Vec::new(),
        seq: Seq::default(),
        at: Timestamp::ZERO,
    };
    for commit in &history.commits {
        walk.commit(commit);
    }
    walk.violations
}

struct Walk<'a> {
    history: &'a History,
    memory: Memory<'a>,
    violations: Vec<Violation>,
    seq: Seq,
    at: Timestamp,
}

impl Walk<'_> {
    fn commit(&mut self, commit: &Commit) {
        if commit.seq != self.seq.next() {
            self.report(
                None,
                Invariant::I20Gap,
                format!("after {:?} came {:?}", self.seq, commit.seq),
            );
        }
        self.seq = commit.seq;
        if commit.at < self.at {
            let detail = format!("{:?} after {:?}", commit.at, self.at);
            self.report(None, Invariant::I21TimeWentBack, detail);
        }
        self.at = self.at.max(commit.at);
        let mut touched = BTreeSet::new();
        let mut ended = BTreeSet::new();
        for transition in &commit.transitions {
            self.transition(commit, transition);
            touched.extend(transition.hold);
            if let UnitState::Held { hold, .. } = transition.from {
                touched.insert(hold);
                if ends_whole_hold(transition.cause) {
                    ended.insert(hold);
                }
            }
        }
        self.whole_holds(&ended);
        self.budgets(commit, &touched);
        for hold in touched {
            self.memory.forget_if_empty(hold);
        }
    }

    fn transition(&mut self, commit: &Commit, step: &Transition) {
        let before = self.memory.unit(step.unit);
        if step.unit.0 >= self.history.units {
            let detail = format!("the chart has {} units", self.history.units);
            self.report_at(step, Invariant::I10UnknownUnit, detail);
        }
        if step.from != before.state {
            let detail = format!("from {:?}, but it was {:?}", step.from, before.state);
            self.report_at(step, Invariant::I3BrokenState, detail);
        }
        if step.version != before.version.next() {
            let detail = format!("version {:?} after {:?}", step.version, before.version);
            self.report_at(step, Invariant::I20Gap, detail);
        }
        self.legal_step(step, before);
        self.fence(step, before);
        self.ownership(step);
        self.timing(commit, step);
        self.remember(commit, step);
        let Transition {
            to: state,
            fence,
            version,
            ..
        } = *step;
        self.memory.set_unit(
            step.unit,
            Unit {
                state,
                fence,
                version,
            },
        );
    }

    fn legal_step(&mut self, step: &Transition, before: Unit) {
        if step.cause.allows(before.state.kind(), step.to.kind()) {
            return;
        }
        let invariant = match (before.state.kind(), step.to.kind()) {
            (StateKind::Sold, StateKind::Sold | StateKind::Held) => Invariant::I1SoldTwice,
            (StateKind::Held, StateKind::Held) => Invariant::I2HeldTwice,
            _ => Invariant::I3BrokenState,
        };
        let detail = format!("{:?} > {:?} by {:?}", before.state, step.to, step.cause);
        self.report_at(step, invariant, detail);
    }

    /// I6: a new owner needs a higher fence; none ever falls.
    fn fence(&mut self, step: &Transition, before: Unit) {
        let rises = match (step.from.kind(), step.to.kind()) {
            (StateKind::Free, StateKind::Held | StateKind::Sold)
            | (StateKind::Sold, StateKind::Free) => true,
            (StateKind::Held, StateKind::Held) => owner(step.from) != owner(step.to),
            _ => false,
        };
        if step.fence < before.fence || (rises && step.fence == before.fence) {
            let detail = format!(
                "{:?} after {:?} for {:?}",
                step.fence, before.fence, step.cause
            );
            self.report_at(step, Invariant::I6FenceNotRising, detail);
        }
    }

    /// I7: what is done in the name of a hold is done to its own units.
    fn ownership(&mut self, step: &Transition) {
        let UnitState::Held { hold, .. } = step.from else {
            return;
        };
        if step.hold != Some(hold) {
            let detail = format!("{:?} ended {hold:?} by {:?}", step.hold, step.cause);
            self.report_at(step, Invariant::I7ForeignHold, detail);
        }
    }

    fn timing(&mut self, commit: &Commit, step: &Transition) {
        let UnitState::Held { until, .. } = step.from else {
            return;
        };
        match step.cause {
            Cause::Expired if commit.at < until => {
                let detail = format!("expired at {:?}, live until {until:?}", commit.at);
                self.report_at(step, Invariant::I2HeldTwice, detail);
            }
            Cause::Confirmed | Cause::Exchanged if commit.at >= until => {
                let detail = format!("confirmed at {:?}, over since {until:?}", commit.at);
                self.report_at(step, Invariant::I4LateConfirm, detail);
            }
            Cause::Extended | Cause::Pinned | Cause::Unpinned | Cause::Changed
                if commit.at >= until =>
            {
                let detail = format!("revived at {:?}, over since {until:?}", commit.at);
                self.report_at(step, Invariant::I2HeldTwice, detail);
            }
            _ => {}
        }
    }

    /// Takes the step into memory: which hold has which units until when.
    fn remember(&mut self, commit: &Commit, step: &Transition) {
        if let UnitState::Held { hold, .. } = step.from {
            self.memory.leave(hold, step.unit);
        }
        let UnitState::Held { hold, until } = step.to else {
            return;
        };
        let known = self.memory.hold_mut(hold);
        let made = *known.made.get_or_insert(commit.seq);
        known.units.insert(step.unit);
        known.until = until;
        known.pinned |= step.cause == Cause::Pinned;
        let pinned = known.pinned;
        if step.cause == Cause::Held && made != commit.seq {
            let detail = format!("{hold:?} was made in {made:?} and again");
            self.report_at(step, Invariant::I5PartialHold, detail);
        }
        self.cap(step, hold, until, pinned);
    }

    fn cap(&mut self, step: &Transition, hold: HoldId, until: Timestamp, pinned: bool) {
        let Some(terms) = self.memory.terms(hold) else {
            self.report_at(
                step,
                Invariant::I5PartialHold,
                format!("{hold:?} is not recorded"),
            );
            return;
        };
        let allowed = match (pinned, self.history.payment_window) {
            (false, _) => Some(Span::default()),
            (true, window) => window,
        };
        if allowed.is_some_and(|window| until > terms.max_expires_at.plus(window)) {
            let detail = format!("{hold:?} until {until:?}, cap {:?}", terms.max_expires_at);
            self.report_at(step, Invariant::I8BeyondCap, detail);
        }
    }

    /// I5: a hold that ends, ends with all of its units, in one commit.
    fn whole_holds(&mut self, ended: &BTreeSet<HoldId>) {
        for hold in ended {
            let left = self
                .memory
                .hold(*hold)
                .map(|hold| hold.units.clone())
                .unwrap_or_default();
            if !left.is_empty() {
                let detail = format!("{hold:?} ended but keeps {left:?}");
                self.report(None, Invariant::I5PartialHold, detail);
            }
        }
    }

    fn budgets(&mut self, commit: &Commit, touched: &BTreeSet<HoldId>) {
        let Some(limit) = self.history.units_per_holder_max else {
            return;
        };
        for hold in touched {
            let Some(terms) = self.memory.terms(*hold) else {
                continue;
            };
            let held = self.memory.held_by(&terms.holder, commit.at);
            if u32::try_from(held).map_or(true, |held| held > limit) {
                let detail = format!("{:?} holds {held}, limit {limit}", terms.holder.name);
                self.report(None, Invariant::I9OverBudget, detail);
            }
        }
    }

    fn report_at(&mut self, step: &Transition, invariant: Invariant, detail: String) {
        self.report(Some(step.unit), invariant, detail);
    }

    fn report(&mut self, unit: Option<crate::UnitNo>, invariant: Invariant, detail: String) {
        self.violations.push(Violation {
            invariant,
            seq: self.seq,
            unit,
            detail,
        });
    }
}

fn ends_whole_hold(cause: Cause) -> bool {
    matches!(
        cause,
        Cause::Released | Cause::Expired | Cause::Revoked | Cause::Confirmed | Cause::Exchanged
    )
}

fn owner(state: UnitState) -> Option<HoldId> {
    match state {
        UnitState::Held { hold, .. } => Some(hold),
        UnitState::Free | UnitState::Sold(_) | UnitState::Blocked => None,
    }
}
