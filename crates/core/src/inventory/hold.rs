//! Hold: gives units of an event to one holder for a limited time.

use super::Inventory;
use super::budget::{Demand, may_hold};
use super::claim::{Choice, require_adjacency, rest_on_neighbours};
use super::indexes::OpenEvent;
use super::work::Work;
use crate::{
    Answer, Cause, HeldUnit, Hold, HoldState, NewHold, Rejection, RequestedTerms, Span, Timestamp,
    UnitNo, UnitState, Wish,
};

impl Inventory {
    pub(super) fn hold_units(
        &mut self,
        work: &mut Work<'_>,
        new: NewHold,
    ) -> Result<Answer, Rejection> {
        let now = work.now;
        self.reopen_units_of_ended_holds(new.event, now);
        let book = self.book(new.event)?;
        // The terms may have changed since: the hold was made under those of its time.
        if let Some(own) = self.own_hold(book, now, &new) {
            return Ok(Answer::OwnHold(own.clone()));
        }
        let terms = RequestedTerms {
            count: new.wish.count(),
            ttl: new.ttl,
            ttl_max: new.ttl_max,
        };
        let ttl = book.event.require_terms(now, terms)?;
        let claim = self.claim(book, now, &new.wish, &new.holder)?;
        let demand = Demand {
            holder: &new.holder,
            except: None,
            units: terms.count,
        };
        self.require_budget(work, book, &demand, may_hold)?;
        match new.wish {
            Wish::Named(_) => require_adjacency(work, book, &claim.units, None)?,
            // The engine's own pick leaves no orphan that it need not.
            Wish::Best { .. } => rest_on_neighbours(work, book, &claim.units),
        }
        Ok(Answer::Held(self.make_hold(work, new, &claim, ttl)))
    }

    /// Finds the holder's own live hold of exactly the named seats: a double click, a lost reply or
    /// a reload gets it back, and no conflict with itself (model.md 4).
    fn own_hold(&self, book: &OpenEvent, now: Timestamp, new: &NewHold) -> Option<&Hold> {
        let Wish::Named(selection) = &new.wish else {
            return None;
        };
        if !selection.areas().is_empty() {
            return None;
        }
        let first = *selection.seats().first()?;
        let UnitState::Held { hold, .. } = book.seating.unit(first).state else {
            return None;
        };
        let own = self.holds.get(&hold)?;
        let same_units = own.unit_nos().eq(selection.seats().iter().copied());
        let is_live = own.is_live(now) && book.event.cancelled().is_none();
        (is_live && own.holder == new.holder && same_units).then_some(own)
    }

    fn make_hold(&mut self, work: &mut Work<'_>, new: NewHold, claim: &Choice, ttl: Span) -> Hold {
        let NewHold {
            event,
            hold: id,
            holder,
            ..
        } = new;
        self.expire_holds_of(work, event, &claim.units);
        let fence = self.next_fence(event, &claim.units);
        let book = self.known_book(event);
        let max_expires_at = work.now.plus(book.event.policy.hold_max);
        let mut hold = Hold {
            id,
            event,
            holder,
            state: HoldState::Active,
            fence,
            units: held_units(book, &claim.units),
            created_at: work.now,
            expires_at: work.now.plus(ttl).min(max_expires_at),
            max_expires_at,
            together: claim.together,
        };
        self.restate_units(work, &mut hold, Cause::Held);
        self.track(&hold);
        work.changed_hold(id);
        self.remember_hold(id);
        let other = self.holds.insert(id, hold.clone());
        assert!(
            other.is_none(),
            "{id}: the id of a new hold is another's already"
        );
        hold
    }
}

/// Lists `units` with their present prices, not yet taken.
pub(super) fn held_units(book: &OpenEvent, units: &[UnitNo]) -> Vec<HeldUnit> {
    let chart = &book.event.chart;
    let held = |unit: &UnitNo| HeldUnit {
        unit: *unit,
        price: book.event.price(chart.category_of(*unit)),
        version: book.seating.unit(*unit).version,
    };
    units.iter().map(held).collect()
}
