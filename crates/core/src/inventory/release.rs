//! Release and revoke: a hold ends by its holder or by staff.

use super::Inventory;
use super::work::Work;
use crate::unit::Step;
use crate::{
    Answer, Authority, Cause, Hold, HoldId, HoldState, OnHold, Planted, Rejection, Text, UnitState,
};

impl Inventory {
    pub(super) fn release(&mut self, work: &mut Work<'_>, on: OnHold) -> Result<Answer, Rejection> {
        let hold = self.require_hold(on.hold, on.by)?;
        if self.has(Planted::BlindRelease) {
            let hold = hold.clone();
            return Ok(self.release_blindly(work, hold));
        }
        if hold.state == HoldState::Released {
            return Ok(Answer::Hold(hold.clone()));
        }
        hold.require_live(work.now, on.fence)?;
        self.end_hold(work, on.hold, HoldState::Released, Cause::Released);
        Ok(self.answer_hold(on.hold))
    }

    /// Planted bug: frees by unit, whoever has it now.
    fn release_blindly(&mut self, work: &mut Work<'_>, mut hold: Hold) -> Answer {
        self.remember_hold(hold.id);
        for held in &hold.units {
            let unit = *self.book_mut(hold.event).seating.unit(held.unit);
            if let UnitState::Held { .. } = unit.state {
                let step = Step {
                    to: UnitState::Free,
                    fence: unit.fence,
                    cause: Cause::Released,
                    by: unit.state.into(),
                };
                self.step(work, hold.event, held.unit, step);
                work.in_the_name_of(hold.id);
            }
        }
        if !hold.state.is_terminal() {
            self.untrack(&hold);
            hold.state = HoldState::Released;
            work.changed_hold(hold.id);
            self.holds.insert(hold.id, hold.clone());
        }
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
        let revoked = HoldState::Revoked(reason.clone());
        self.end_hold(work, id, revoked, Cause::Revoked);
        Ok(self.answer_hold(id))
    }
}
