//! What the auditor remembers while it walks a history: units as they were left, and holds by the
//! units they have.

use std::collections::{BTreeMap, BTreeSet};

use super::HoldTerms;
use crate::{HoldId, Holder, Seq, Timestamp, Unit, UnitNo};

/// A hold as its transitions show it.
#[derive(Debug, Default)]
pub(super) struct LiveHold {
    pub(super) units: BTreeSet<UnitNo>,
    pub(super) until: Timestamp,
    /// The commit that made it.
    pub(super) made: Option<Seq>,
    /// Whether payment ever began: then its end may pass the cap by one window.
    pub(super) pinned: bool,
}

/// The event as the transitions so far have left it.
#[derive(Debug, Default)]
pub(super) struct Memory<'a> {
    units: BTreeMap<UnitNo, Unit>,
    holds: BTreeMap<HoldId, LiveHold>,
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

    /// Drops a hold that has no units any more.
    pub(super) fn forget_if_empty(&mut self, hold: HoldId) {
        if self
            .holds
            .get(&hold)
            .is_none_or(|known| !known.units.is_empty())
        {
            return;
        }
        self.holds.remove(&hold);
        if let Some(terms) = self.terms(hold)
            && let Some(of_holder) = self.by_holder.get_mut(&terms.holder)
        {
            of_holder.remove(&hold);
        }
    }

    /// Units that a holder has in holds that are live at `at`.
    pub(super) fn held_by(&self, holder: &Holder, at: Timestamp) -> usize {
        let holds = self.by_holder.get(holder).into_iter().flatten();
        holds
            .filter_map(|id| self.holds.get(id))
            .filter(|hold| at < hold.until)
            .map(|hold| hold.units.len())
            .sum()
    }
}
