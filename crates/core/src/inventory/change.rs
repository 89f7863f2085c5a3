//! Change: add units to a hold and drop units from it in one commit, choosing seat by seat.

use super::claim::{Demand, require_adjacency};
use super::hold::held_units;
use super::work::Work;
use super::{EventBook, Inventory};
use crate::unit::Step;
use crate::{Answer, Cause, Change, Hold, Invalid, Rejection, Selection, UnitNo, UnitState, Wish};

impl Inventory {
    pub(super) fn change(
        &mut self,
        work: &mut Work<'_>,
        change: &Change,
    ) -> Result<Answer, Rejection> {
        let now = work.now;
        let hold = self.require_hold(change.on.hold, change.on.by)?;
        hold.require_active(now, change.on.fence)?;
        let book = self.book(hold.event)?;
        let drop = dropped_units(book, hold, change)?;
        let add = added_selection(hold, &change.add, &drop)?;
        if drop.is_empty() && add.is_empty() {
            return Ok(Answer::Hold(hold.clone()));
        }
        let kept: Vec<UnitNo> = hold
            .units
            .iter()
            .map(|held| held.unit)
            .filter(|unit| drop.binary_search(unit).is_err())
            .collect();
        let count = u32::try_from(kept.len())
            .unwrap_or(u32::MAX)
            .saturating_add(add.count());
        if count == 0 {
            let text = "at least one unit stays; release the hold to give up all".to_owned();
            return Err(Invalid::new("drop", text).into());
        }
        book.event.require_count(count)?;
        if !add.is_empty() {
            book.event.require_on_sale(now)?;
        }
        let added = self
            .claim(book, now, &Wish::Named(add), &hold.holder)?
            .units;
        let demand = Demand {
            holder: &hold.holder,
            besides: Some(hold.id),
            units: count,
        };
        self.require_budget(book, now, &demand)?;
        let mut units = kept;
        units.extend(&added);
        units.sort_unstable();
        require_adjacency(book, now, &units, Some(hold.id))?;
        let hold = hold.clone();
        Ok(Answer::Hold(self.make_change(work, hold, &drop, &added)))
    }

    fn make_change(
        &mut self,
        work: &mut Work<'_>,
        mut hold: Hold,
        drop: &[UnitNo],
        added: &[UnitNo],
    ) -> Hold {
        self.end_overdue_holds(work, hold.event, added);
        for unit in drop {
            let fence = self.unit_fence(hold.event, *unit);
            let (to, cause) = (UnitState::Free, Cause::Changed);
            let step = Step {
                to,
                fence,
                cause,
                hold: Some(hold.id),
            };
            self.step(work, hold.event, *unit, step);
        }
        hold.units
            .retain(|held| drop.binary_search(&held.unit).is_err());
        hold.units
            .extend(held_units(self.book_mut(hold.event), added));
        hold.units.sort_unstable_by_key(|held| held.unit);
        let units: Vec<UnitNo> = hold.units.iter().map(|held| held.unit).collect();
        hold.fence = self.next_fence(hold.event, &units);
        self.restate_units(work, &mut hold, Cause::Changed);
        work.changed_hold(hold.id);
        self.holds.insert(hold.id, hold.clone());
        hold
    }
}

/// The units to be given up, sorted and distinct: the named ones, and of each area the last places.
fn dropped_units(book: &EventBook, hold: &Hold, change: &Change) -> Result<Vec<UnitNo>, Rejection> {
    let chart = &book.event.chart;
    let mut drop = change.drop.clone();
    let foreign = drop.iter().filter(|unit| !hold.has(**unit));
    let foreign: Vec<String> = foreign
        .map(|unit| chart.unit_name(*unit).to_string())
        .collect();
    if !foreign.is_empty() {
        return Err(Rejection::UnknownUnit(foreign));
    }
    for (area, quantity) in change.drop_places.areas() {
        let own = hold.units.iter().rev().map(|held| held.unit);
        let places = own
            .filter(|unit| chart.area_no_of(*unit) == Some(*area) && !change.drop.contains(unit));
        let before = drop.len();
        drop.extend(places.take(UnitNo(*quantity).index()));
        if drop.len() - before != UnitNo(*quantity).index() {
            let id = chart
                .area(*area)
                .map(|area| area.id.to_string())
                .unwrap_or_default();
            return Err(Rejection::UnknownUnit(vec![id]));
        }
    }
    drop.sort_unstable();
    drop.dedup();
    Ok(drop)
}

/// What is to be added beyond what the hold has.
fn added_selection(hold: &Hold, add: &Selection, drop: &[UnitNo]) -> Result<Selection, Rejection> {
    if add
        .seats()
        .iter()
        .any(|unit| drop.binary_search(unit).is_ok())
    {
        let text = "a unit is both added and dropped".to_owned();
        return Err(Invalid::new("add", text).into());
    }
    let mut add = add.clone();
    add.seats.retain(|unit| !hold.has(*unit));
    Ok(add)
}
