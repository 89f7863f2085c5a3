//! Block and unblock: staff take free units out of sale and put them back.

use super::Inventory;
use super::booking::require_staff_count;
use super::work::Work;
use crate::unit::Step;
use crate::{
    Answer, Cause, Conflict, ConflictState, EventNo, Rejection, Selection, Text, Unavailable,
    UnitNo, UnitState,
};

impl Inventory {
    pub(super) fn block(
        &mut self,
        work: &mut Work<'_>,
        event: EventNo,
        selection: &Selection,
        reason: &Text,
    ) -> Result<Answer, Rejection> {
        let book = self.book(event)?;
        require_staff_count(selection)?;
        let nobody = crate::Holder {
            caller: crate::CallerId::from_bits(0),
            name: crate::HolderName::parse("nobody").expect("a legal id"),
        };
        let units = self.claim_named(book, work.now, selection, &nobody)?;
        self.end_overdue_holds(work, event, &units);
        self.step_all(work, event, &units, UnitState::Blocked, Cause::Blocked);
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
        let book = self.book(event)?;
        require_staff_count(selection)?;
        let is_blocked = |unit: &UnitNo| book.seating.unit(*unit).state == UnitState::Blocked;
        let (mut units, others): (Vec<UnitNo>, Vec<UnitNo>) =
            selection.seats().iter().partition(|unit| is_blocked(unit));
        let mut conflicts: Vec<Conflict> = others
            .into_iter()
            .map(|unit| not_blocked(book.seating.unit(unit).state, unit))
            .collect();
        for (number, quantity) in selection.areas() {
            let Some(area) = book.event.chart.area(*number) else {
                continue;
            };
            let places = (area.first.0..area.end().0).map(UnitNo).filter(is_blocked);
            let found: Vec<UnitNo> = places.take(UnitNo(*quantity).index()).collect();
            if found.len() < UnitNo(*quantity).index() {
                let free = book.seating.area_tally(*number).free;
                conflicts.push(Conflict::Area {
                    area: *number,
                    free,
                });
            }
            units.extend(found);
        }
        if !conflicts.is_empty() {
            let refusal = Unavailable {
                conflicts,
                alternatives: Vec::new(),
                seq: book.seq,
            };
            return Err(Rejection::UnitUnavailable(Box::new(refusal)));
        }
        self.step_all(work, event, &units, UnitState::Free, Cause::Unblocked);
        work.reason = Some(reason.clone());
        Ok(Answer::Units(event, units))
    }

    fn step_all(
        &mut self,
        work: &mut Work<'_>,
        event: EventNo,
        units: &[UnitNo],
        to: UnitState,
        cause: Cause,
    ) {
        for unit in units {
            let fence = self.unit_fence(event, *unit);
            self.step(
                work,
                event,
                *unit,
                Step {
                    to,
                    fence,
                    cause,
                    hold: None,
                },
            );
        }
    }
}

/// Why a unit that is not blocked cannot be unblocked.
fn not_blocked(state: UnitState, unit: UnitNo) -> Conflict {
    let state = match state {
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
