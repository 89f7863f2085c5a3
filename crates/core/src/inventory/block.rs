//! Block and unblock: staff take free units out of sale and put them back.

use super::Inventory;
use super::claim::unavailable;
use super::sell::require_staff_count;
use super::work::Work;
use crate::number::index;
use crate::unit::{Owner, Step};
use crate::{
    Answer, Cause, Conflict, ConflictState, EventNo, Rejection, Selection, Text, Timestamp, UnitNo,
    UnitState,
};

impl Inventory {
    pub(super) fn block(
        &mut self,
        work: &mut Work<'_>,
        event: EventNo,
        selection: &Selection,
        reason: &Text,
    ) -> Result<Answer, Rejection> {
        self.reopen_units_of_ended_holds(event, work.now);
        let book = self.book(event)?;
        require_staff_count(selection)?;
        let units = self.claim_named(book, work.now, selection, None)?;
        self.expire_holds_of(work, event, &units);
        self.step_all(work, event, &units, Cause::Blocked);
        work.reason = Some(reason.clone());
        Ok(Answer::Units(event, units))
    }

    pub(super) fn unblock(
        &mut self,
        work: &mut Work<'_>,
        event: EventNo,
        selection: &Selection,
        reason: &Text,
    ) -> Result<Answer, Rejection> {
        self.reopen_units_of_ended_holds(event, work.now);
        let book = self.book(event)?;
        require_staff_count(selection)?;
        let state = |unit: UnitNo| book.seating.unit(unit).state;
        let (mut units, others): (Vec<UnitNo>, Vec<UnitNo>) = selection
            .seats()
            .iter()
            .partition(|unit| state(**unit) == UnitState::Blocked);
        let mut conflicts: Vec<Conflict> = others
            .into_iter()
            .map(|unit| not_blocked(state(unit), work.now, unit))
            .collect();
        for (area, quantity) in selection.areas() {
            let found = book.seating.blocked_places(*area, *quantity);
            if found.len() < index(*quantity) {
                let free = book.seating.open_count(*area);
                conflicts.push(Conflict::Area { area: *area, free });
            }
            units.extend(found);
        }
        if !conflicts.is_empty() {
            return Err(unavailable(book, conflicts, Vec::new()));
        }
        self.step_all(work, event, &units, Cause::Unblocked);
        work.reason = Some(reason.clone());
        Ok(Answer::Units(event, units))
    }

    fn step_all(&mut self, work: &mut Work<'_>, event: EventNo, units: &[UnitNo], cause: Cause) {
        let to = if cause == Cause::Blocked {
            UnitState::Blocked
        } else {
            UnitState::Free
        };
        for unit in units {
            let step = Step {
                to,
                fence: self.unit_fence(event, *unit),
                cause,
                by: Owner::Nobody,
            };
            self.step(work, event, *unit, step);
        }
    }
}

/// Returns the reason why a unit that is not blocked cannot be unblocked.
fn not_blocked(state: UnitState, now: Timestamp, unit: UnitNo) -> Conflict {
    let state = match state {
        over if over.is_available(now) => ConflictState::Free,
        UnitState::Held { .. } => ConflictState::Held,
        UnitState::Sold(_) => ConflictState::Sold,
        UnitState::Free | UnitState::Blocked => ConflictState::Free,
    };
    Conflict::Seat {
        unit,
        state,
        retry_after: None,
    }
}
