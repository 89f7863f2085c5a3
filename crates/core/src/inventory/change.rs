//! Change: add units to a hold and drop units from it in one commit, choosing seat by seat.

use super::Inventory;
use super::budget::{Demand, may_hold};
use super::claim::require_adjacency;
use super::hold::held_units;
use super::indexes::OpenEvent;
use super::work::Work;
use crate::number::{count, index};
use crate::unit::{Owner, Step};
use crate::{
    Answer, Cause, Change, Hold, HoldId, Invalid, Rejection, Selection, UnitNo, UnitState,
};

impl Inventory {
    pub(super) fn change(
        &mut self,
        work: &mut Work<'_>,
        change: &Change,
    ) -> Result<Answer, Rejection> {
        let hold = self.require_hold(change.on.hold, change.on.by)?;
        hold.require_active(work.now, change.on.fence)?;
        let event = hold.event;
        self.reopen_units_of_ended_holds(event, work.now);
        let hold = self.require_hold(change.on.hold, change.on.by)?;
        let book = self.book(event)?;
        let drop = dropped_units(book, hold, change)?;
        let add = added_selection(hold, &change.add, &drop)?;
        if drop.is_empty() && add.is_empty() {
            return Ok(Answer::Hold(hold.clone()));
        }
        let is_kept = |unit: &UnitNo| drop.binary_search(unit).is_err();
        let mut units: Vec<UnitNo> = hold.unit_nos().filter(is_kept).collect();
        if units.is_empty() && add.is_empty() {
            let text = "at least one unit stays; release the hold to give up all".to_owned();
            return Err(Invalid::new("drop", text).into());
        }
        let added = self.added_units(work, book, hold, (&units, &add))?;
        units.extend(&added);
        units.sort_unstable();
        require_adjacency(work, book, &units, Some(hold))?;
        Ok(self.make_change(work, change.on.hold, &drop, &added))
    }

    /// Returns the units for `add`, in addition to those that are kept. A change that only drops
    /// units passes: a policy that became stricter must not keep the holder from coming closer to
    /// it.
    fn added_units(
        &self,
        work: &mut Work<'_>,
        book: &OpenEvent,
        hold: &Hold,
        (kept, add): (&[UnitNo], &Selection),
    ) -> Result<Vec<UnitNo>, Rejection> {
        if add.is_empty() {
            return Ok(Vec::new());
        }
        let units = count(kept.len()).saturating_add(add.count());
        book.event.require_on_sale(work.now)?;
        book.event.require_count(units)?;
        let added = self.claim_named(book, work.now, add, Some(&hold.holder))?;
        let demand = Demand {
            holder: &hold.holder,
            except: Some(hold.id),
            units,
        };
        self.require_budget(work, book, &demand, may_hold)?;
        Ok(added)
    }

    fn make_change(
        &mut self,
        work: &mut Work<'_>,
        id: HoldId,
        drop: &[UnitNo],
        added: &[UnitNo],
    ) -> Answer {
        let hold = self.change_hold(work, id, |this, work, hold| {
            this.expire_holds_of(work, hold.event, added);
            let step = Step {
                to: UnitState::Free,
                fence: hold.fence,
                cause: Cause::Changed,
                by: Owner::Hold(id),
            };
            for unit in drop {
                this.step(work, hold.event, *unit, step);
            }
            // Above the units that are given up, too: the fence of a hold never falls, though all it takes
            // in their place was never held.
            let fenced: Vec<UnitNo> = hold.unit_nos().chain(added.iter().copied()).collect();
            hold.units
                .retain(|held| drop.binary_search(&held.unit).is_err());
            hold.units
                .extend(held_units(this.known_book(hold.event), added));
            hold.units.sort_unstable_by_key(|held| held.unit);
            hold.fence = this.next_fence(hold.event, &fenced);
            this.restate_units(work, hold, Cause::Changed);
            hold.clone()
        });
        Answer::Hold(hold)
    }
}

/// Returns the units to be given up, sorted and distinct: the named ones, and of each area the last places.
fn dropped_units(book: &OpenEvent, hold: &Hold, change: &Change) -> Result<Vec<UnitNo>, Rejection> {
    let chart = &book.event.chart;
    let mut drop = change.drop.clone();
    let name = |unit: &UnitNo| chart.unit_name(*unit).to_string();
    let foreign = drop.iter().filter(|unit| !hold.has(**unit));
    let foreign: Vec<String> = foreign.map(name).collect();
    if !foreign.is_empty() {
        return Err(Rejection::UnknownUnit(foreign));
    }
    for (area, quantity) in change.drop_places.areas() {
        let own = hold.unit_nos().rev();
        let places = own
            .filter(|unit| chart.area_no_of(*unit) == Some(*area) && !change.drop.contains(unit));
        let (wanted, before) = (index(*quantity), drop.len());
        drop.extend(places.take(wanted));
        if drop.len() - before != wanted {
            return Err(Rejection::UnknownUnit(vec![chart.area_name(*area)]));
        }
    }
    drop.sort_unstable();
    drop.dedup();
    Ok(drop)
}

/// Returns the units to be added that the hold does not have yet.
fn added_selection(hold: &Hold, add: &Selection, drop: &[UnitNo]) -> Result<Selection, Rejection> {
    let is_dropped = |unit: &UnitNo| drop.binary_search(unit).is_ok();
    if add.seats().iter().any(is_dropped) {
        let text = "a unit is both added and dropped".to_owned();
        return Err(Invalid::new("add", text).into());
    }
    let mut add = add.clone();
    add.seats.retain(|unit| !hold.has(*unit));
    Ok(add)
}
