//! The state that the auditor keeps while it reads a history: units as they were left, and holds by
//! the units they have.

use std::collections::{BTreeMap, BTreeSet};

use super::HoldTerms;
use crate::{Fence, HoldId, Holder, Seq, Timestamp, Unit, UnitNo};

/// The terms on which a hold has a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Terms {
    pub(super) until: Timestamp,
    pub(super) fence: Fence,
}

/// The progress of a hold's payment. Once it began, the hold's end may pass the cap by one window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) enum Pin {
    #[default]
    Never,
    Open,
    Ended,
}

/// A hold as its transitions show it.
#[derive(Debug, Default)]
pub(super) struct LiveHold {
    pub(super) units: BTreeMap<UnitNo, Terms>,
    /// The commit that made it.
    pub(super) made: Option<Seq>,
    pub(super) pin: Pin,
}

/// The event as the transitions so far have left it.
#[derive(Debug, Default)]
pub(super) struct Memory<'a> {
    units: BTreeMap<UnitNo, Unit>,
    holds: BTreeMap<HoldId, LiveHold>,
    over: BTreeSet<HoldId>,
    terms: BTreeMap<HoldId, &'a HoldTerms>,
    by_holder: BTreeMap<&'a Holder, BTreeSet<HoldId>>,
}

impl<'a> Memory<'a> {
    pub(super) fn new(holds: &'a [HoldTerms]) -> Self {
        Self {
            terms: holds.iter().map(|hold| (hold.id, hold)).collect(),
            ..Self::default()
        }
    }

    pub(super) fn unit(&self, unit: UnitNo) -> Unit {
        self.units.get(&unit).copied().unwrap_or_default()
    }

    pub(super) fn set_unit(&mut self, no: UnitNo, unit: Unit) {
        self.units.insert(no, unit);
    }

    pub(super) fn terms(&self, hold: HoldId) -> Option<&'a HoldTerms> {
        self.terms.get(&hold).copied()
    }

    pub(super) fn hold(&self, hold: HoldId) -> Option<&LiveHold> {
        self.holds.get(&hold)
    }

    pub(super) fn hold_mut(&mut self, hold: HoldId) -> &mut LiveHold {
        if let Some(terms) = self.terms(hold) {
            self.by_holder
                .entry(&terms.holder)
                .or_default()
                .insert(hold);
        }
        self.holds.entry(hold).or_default()
    }

    pub(super) fn leave(&mut self, hold: HoldId, unit: UnitNo) {
        if let Some(known) = self.holds.get_mut(&hold) {
            known.units.remove(&unit);
        }
    }

    pub(super) fn holding(&self) -> impl Iterator<Item = HoldId> + '_ {
        let holds = self.holds.iter().filter(|(_, hold)| !hold.units.is_empty());
        holds.map(|(id, _)| *id)
    }

    /// Tells whether a hold had units and lost them all.
    pub(super) fn is_over(&self, hold: HoldId) -> bool {
        self.over.contains(&hold)
    }

    pub(super) fn pin(&self, hold: HoldId) -> Pin {
        let known = self.holds.get(&hold);
        known.map(|known| known.pin).unwrap_or_default()
    }

    pub(super) fn set_pin(&mut self, hold: HoldId, pin: Pin) {
        if let Some(known) = self.holds.get_mut(&hold) {
            known.pin = pin;
        }
    }

    /// Drops a hold that has no units any more.
    pub(super) fn forget_if_empty(&mut self, hold: HoldId) {
        let known = self.holds.get(&hold);
        if known.is_none_or(|known| !known.units.is_empty()) {
            return;
        }
        self.holds.remove(&hold);
        self.over.insert(hold);
        if let Some(terms) = self.terms(hold)
            && let Some(of_holder) = self.by_holder.get_mut(&terms.holder)
        {
            of_holder.remove(&hold);
        }
    }

    /// Returns the holds of a holder that are live at `at`.
    pub(super) fn live_holds(
        &self,
        holder: &Holder,
        at: Timestamp,
    ) -> impl Iterator<Item = &LiveHold> {
        let holds = self.by_holder.get(holder).into_iter().flatten();
        let holds = holds.filter_map(|id| self.holds.get(id));
        holds.filter(move |hold| hold.units.values().any(|terms| at < terms.until))
    }
}
