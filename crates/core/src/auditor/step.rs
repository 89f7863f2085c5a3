//! Checks of each transition of each unit.

use super::Invariant;
use super::check::{Auditor, HoldChanges};
use super::legal::is_legal;
use super::live::{Pin, Terms};
use crate::{Cause, HoldId, Span, StateKind, Timestamp, Transition, Unit, UnitState};

impl Auditor<'_> {
    pub(super) fn transition(&mut self, touched: &mut HoldChanges, step: &Transition) {
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
        if let UnitState::Held { hold, until } = step.from {
            self.leaving(step, hold, until);
            touched.touched(hold, step.cause);
            if step.cause == Cause::Changed {
                touched.had(hold, before.fence);
            }
            self.memory.leave(hold, step.unit);
        }
        if let UnitState::Held { hold, until } = step.to {
            self.entering(step, hold, until);
            touched.touched(hold, step.cause);
            if matches!(step.cause, Cause::Held | Cause::Changed) {
                touched.fenced(hold, before.fence, step.fence);
            }
        }
        let now = Unit {
            state: step.to,
            fence: step.fence,
            version: step.version,
        };
        self.memory.set_unit(step.unit, now);
    }

    fn legal_step(&mut self, step: &Transition, before: Unit) {
        let (from, to) = (before.state.kind(), step.to.kind());
        let invariant = match (from, to) {
            // Wrong by any table.
            (StateKind::Sold, StateKind::Sold) if before.state != step.to => Invariant::I1SoldTwice,
            (StateKind::Sold, StateKind::Held) => Invariant::I1SoldTwice,
            _ if is_legal(step.cause, from, to) => return,
            (StateKind::Sold, StateKind::Sold) => Invariant::I1SoldTwice,
            (StateKind::Held, StateKind::Held) => Invariant::I2HeldTwice,
            _ => Invariant::I3BrokenState,
        };
        let detail = format!("{:?} > {:?} by {:?}", before.state, step.to, step.cause);
        self.report_at(step, invariant, detail);
    }

    /// Checks I6: a new owner needs a higher fence; no fence falls.
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

    /// Checks I7: a step of the units of a hold is done in the name of that hold.
    fn ownership(&mut self, step: &Transition) {
        for hold in [owner(step.from), owner(step.to)].into_iter().flatten() {
            if step.hold != Some(hold) {
                let by = step.hold;
                let detail = format!("{by:?} acted on {hold:?} by {:?}", step.cause);
                self.report_at(step, Invariant::I7ForeignHold, detail);
            }
        }
    }

    /// Checks a step of a held unit: its hold must be live, unless the clock ends it.
    fn leaving(&mut self, step: &Transition, hold: HoldId, until: Timestamp) {
        let is_live = self.at < until;
        let broken = match step.cause {
            Cause::Expired if is_live => Some((Invariant::I2HeldTwice, "expired while live")),
            Cause::Confirmed | Cause::Exchanged => (!is_live).then_some(LATE_CONFIRM),
            Cause::Extended | Cause::Pinned | Cause::Unpinned | Cause::Changed => {
                (!is_live).then_some((Invariant::I2HeldTwice, "revived when over"))
            }
            Cause::Released | Cause::Revoked => {
                (!is_live).then_some((Invariant::I7ForeignHold, "ended when over"))
            }
            // Done by the clock, or not for held units, as `legal_step` reports.
            Cause::Expired
            | Cause::Held
            | Cause::SoldDirectly
            | Cause::Cancelled
            | Cause::Blocked
            | Cause::Unblocked
            | Cause::ClockCorrected => None,
        };
        if let Some((invariant, what)) = broken {
            let detail = format!("{hold:?}: {what}, at {:?} with end {until:?}", self.at);
            self.report_at(step, invariant, detail);
        }
        self.new_end(step, until);
    }

    /// Checks that a live hold never ends earlier than it would have, but for a failed payment.
    fn new_end(&mut self, step: &Transition, before: Timestamp) {
        let UnitState::Held { until, .. } = step.to else {
            return;
        };
        let fits = match step.cause {
            Cause::Extended | Cause::Pinned => until >= before,
            Cause::Changed => until == before,
            Cause::ClockCorrected => until == before.minus(self.set_back),
            Cause::Held
            | Cause::Unpinned
            | Cause::Released
            | Cause::Expired
            | Cause::Revoked
            | Cause::Confirmed
            | Cause::SoldDirectly
            | Cause::Cancelled
            | Cause::Exchanged
            | Cause::Blocked
            | Cause::Unblocked => true,
        };
        if !fits {
            let detail = format!("end {until:?} after {before:?} by {:?}", step.cause);
            self.report_at(step, Invariant::I3BrokenState, detail);
        }
    }

    /// Checks a unit that enters a hold, or stays in it on other terms.
    fn entering(&mut self, step: &Transition, id: HoldId, until: Timestamp) {
        if self.memory.is_over(id) {
            let detail = format!("{id:?} was over and has units again");
            self.report_at(step, Invariant::I3BrokenState, detail);
        }
        let (seq, fence) = (self.seq, step.fence);
        let hold = self.memory.hold_mut(id);
        let made = *hold.made.get_or_insert(seq);
        hold.units.insert(step.unit, Terms { until, fence });
        let pinned_once = hold.pin != Pin::Never || step.cause == Cause::Pinned;
        if step.cause == Cause::Held && made != seq {
            let detail = format!("{id:?} was made in {made:?} and again");
            self.report_at(step, Invariant::I5PartialHold, detail);
        }
        if step.cause == Cause::Held && until <= self.at {
            let detail = format!("{id:?} is over when made: end {until:?}");
            self.report_at(step, Invariant::I3BrokenState, detail);
        }
        let beyond = if pinned_once {
            self.bounds.map(|bounds| bounds.payment_window)
        } else {
            Some(Span::default())
        };
        self.cap(step, id, until, beyond);
        if step.cause == Cause::Held {
            self.cap_by_terms(step, id);
        }
    }

    /// Checks I8: a new hold has no later cap than the terms of its event allow.
    fn cap_by_terms(&mut self, step: &Transition, id: HoldId) {
        let (Some(bounds), Some(terms)) = (self.bounds, self.memory.terms(id)) else {
            return;
        };
        let (cap, most) = (terms.max_expires_at, self.at.plus(bounds.hold_max));
        if cap > most {
            let detail = format!("{id:?} has the cap {cap:?}, allowed is {most:?}");
            self.report_at(step, Invariant::I8BeyondCap, detail);
        }
    }

    /// Checks I8: no end more than `beyond` after the cap; `None` if that limit is unknown.
    fn cap(&mut self, step: &Transition, id: HoldId, until: Timestamp, beyond: Option<Span>) {
        let Some(terms) = self.memory.terms(id) else {
            let detail = format!("{id:?} is not recorded");
            self.report_at(step, Invariant::I5PartialHold, detail);
            return;
        };
        let cap = terms.max_expires_at;
        let most = beyond.map_or(Timestamp::MAX, |beyond| cap.plus(beyond));
        if until > most {
            let detail = format!("{id:?} until {until:?}, cap {cap:?}");
            self.beyond_cap(id, most.until(until));
            self.report_at(step, Invariant::I8BeyondCap, detail);
        }
    }

    fn report_at(&mut self, step: &Transition, invariant: Invariant, detail: String) {
        self.report(Some(step.unit), invariant, detail);
    }
}

const LATE_CONFIRM: (Invariant, &str) = (Invariant::I4LateConfirm, "confirmed when over");

fn owner(state: UnitState) -> Option<HoldId> {
    match state {
        UnitState::Held { hold, .. } => Some(hold),
        UnitState::Free | UnitState::Sold(_) | UnitState::Blocked => None,
    }
}
