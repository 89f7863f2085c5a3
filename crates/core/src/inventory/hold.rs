//! Hold, release and revoke.

use super::claim::{Claim, Demand, require_adjacency};
use super::work::Work;
use super::{EventBook, Inventory};
use crate::{
    Answer, Authority, Cause, HeldUnit, Hold, HoldId, HoldState, HoldTermsAsked, NewHold, OnHold,
    Planted, Rejection, Span, Text, Timestamp, UnitNo, UnitState, Wish,
};

impl Inventory {
    pub(super) fn hold_units(
        &mut self,
        work: &mut Work<'_>,
        new: NewHold,
    ) -> Result<Answer, Rejection> {
        let now = work.now;
        let book = self.book(new.event)?;
        let count = new.wish.count();
        let asked = HoldTermsAsked {
            count,
            ttl: new.ttl,
            ttl_max: new.ttl_max,
        };
        let ttl = book.event.require_terms(now, asked)?;
        if let Some(own) = self.own_hold(book, now, &new) {
            return Ok(Answer::OwnHold(own.clone()));
        }
        if self.has(Planted::PartialHold) {
            self.hold_what_is_left(work, &new, ttl);
        }
        let book = self.book(new.event)?;
        let claim = self.claim(book, now, &new.wish, &new.holder)?;
        let demand = Demand {
            holder: &new.holder,
            besides: None,
            units: count,
        };
        self.require_budget(book, now, &demand)?;
        require_adjacency(book, now, &claim.units, None)?;
        Ok(Answer::Held(self.make_hold(work, new, &claim, ttl)))
    }

    /// The holder's own live hold of exactly the named seats: a double click, a lost reply or a
    /// reload gets it back instead of a conflict with himself (model.md 4).
    fn own_hold(&self, book: &EventBook, now: Timestamp, new: &NewHold) -> Option<&Hold> {
        let Wish::Named(selection) = &new.wish else {
            return None;
        };
        let first = selection
            .seats()
            .first()
            .filter(|_| selection.areas().is_empty())?;
        let UnitState::Held { hold, .. } = book.seating.unit(*first).state else {
            return None;
        };
        let own = self.holds.get(&hold)?;
        let same_units = own
            .units
            .iter()
            .map(|held| held.unit)
            .eq(selection.seats().iter().copied());
        (own.is_live(now) && own.holder == new.holder && same_units).then_some(own)
    }

    fn make_hold(&mut self, work: &mut Work<'_>, new: NewHold, claim: &Claim, ttl: Span) -> Hold {
        let NewHold {
            event,
            hold: id,
            holder,
            ..
        } = new;
        self.end_overdue_holds(work, event, &claim.units);
        let fence = self.next_fence(event, &claim.units);
        let book = self.book_mut(event);
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
        book.track(&hold);
        self.restate_units(work, &mut hold, Cause::Held);
        work.changed_hold(id);
        self.holds.insert(id, hold.clone());
        hold
    }

    /// Planted bug: whatever of the wish is free is taken before the whole is looked at.
    fn hold_what_is_left(&mut self, work: &mut Work<'_>, new: &NewHold, ttl: Span) {
        let Wish::Named(selection) = &new.wish else {
            return;
        };
        let Some(book) = self.events.get(new.event.index()) else {
            return;
        };
        let is_free = |unit: &UnitNo| book.seating.unit(*unit).state == UnitState::Free;
        let units: Vec<UnitNo> = selection.seats().iter().copied().filter(is_free).collect();
        if units.is_empty() || units.len() == selection.seats().len() {
            return;
        }
        let fence = self.next_fence(new.event, &units);
        let until = work.now.plus(ttl);
        for unit in units {
            let to = UnitState::Held {
                hold: new.hold,
                until,
            };
            let step = crate::unit::Step {
                to,
                fence,
                cause: Cause::Held,
                hold: Some(new.hold),
            };
            self.step(work, new.event, unit, step);
        }
    }

    pub(super) fn release(&mut self, work: &mut Work<'_>, on: OnHold) -> Result<Answer, Rejection> {
        if self.has(Planted::BlindRelease) {
            return Ok(self.release_blindly(work, on));
        }
        let hold = self.require_hold(on.hold, on.by)?;
        if hold.state == HoldState::Released {
            return Ok(Answer::Hold(hold.clone()));
        }
        hold.require_live(work.now, on.fence)?;
        self.end_hold(work, on.hold, HoldState::Released, Cause::Released);
        Ok(Answer::Hold(self.hold_mut(on.hold).clone()))
    }

    /// Planted bug: frees by unit, whoever has it now.
    fn release_blindly(&mut self, work: &mut Work<'_>, on: OnHold) -> Answer {
        let mut hold = self.hold_mut(on.hold).clone();
        for held in &hold.units {
            let state = self.book_mut(hold.event).seating.unit(held.unit).state;
            if let UnitState::Held { .. } = state {
                let fence = self.unit_fence(hold.event, held.unit);
                let (to, cause, by) = (UnitState::Free, Cause::Released, Some(hold.id));
                let step = crate::unit::Step {
                    to,
                    fence,
                    cause,
                    hold: by,
                };
                self.step(work, hold.event, held.unit, step);
            }
        }
        self.book_mut(hold.event).untrack(&hold);
        hold.state = HoldState::Released;
        self.holds.insert(hold.id, hold.clone());
        Answer::Hold(hold)
    }

    pub(super) fn revoke(
        &mut self,
        work: &mut Work<'_>,
        id: HoldId,
        reason: &Text,
    ) -> Result<Answer, Rejection> {
        let hold = self.require_hold(id, Authority::Staff)?;
        if let HoldState::Revoked(_) = hold.state {
            return Ok(Answer::Hold(hold.clone()));
        }
        hold.require_live(work.now, None)?;
        work.reason = Some(reason.clone());
        self.end_hold(work, id, HoldState::Revoked(reason.clone()), Cause::Revoked);
        Ok(Answer::Hold(self.hold_mut(id).clone()))
    }
}

/// `units` with their prices of today, not yet taken.
pub(super) fn held_units(book: &EventBook, units: &[UnitNo]) -> Vec<HeldUnit> {
    let chart = &book.event.chart;
    let held = |unit: &UnitNo| HeldUnit {
        unit: *unit,
        price: book.event.price(chart.category_of(*unit)),
        version: book.seating.unit(*unit).version,
    };
    units.iter().map(held).collect()
}
