//! Release and revoke: a hold ends by its holder or by staff.

use super::Inventory;
use super::work::Work;
use crate::{Answer, Authority, Cause, HoldId, HoldState, OnHold, Rejection, Text};

impl Inventory {
    pub(super) fn release(&mut self, work: &mut Work<'_>, on: OnHold) -> Result<Answer, Rejection> {
        let hold = self.require_hold(on.hold, on.by)?;
        if hold.state == HoldState::Released {
            return Ok(Answer::Hold(hold.clone()));
        }
        hold.require_live(work.now, on.fence)?;
        self.end_hold(work, on.hold, HoldState::Released, Cause::Released);
        Ok(self.answer_hold(on.hold))
    }

    pub(super) fn revoke(
        &mut self,
        work: &mut Work<'_>,
        id: HoldId,
        reason: &Text,
    ) -> Result<Answer, Rejection> {
        if let Some((state @ HoldState::Revoked(_), cause)) = self.end_of(id) {
            // With its event, before this.
            self.end_hold(work, id, state, cause);
            return Ok(self.answer_hold(id));
        }
        let hold = self.require_hold(id, Authority::Staff)?;
        if let HoldState::Revoked(_) = hold.state {
            return Ok(Answer::Hold(hold.clone()));
        }
        hold.require_live(work.now, None)?;
        self.end_hold(work, id, HoldState::Revoked(reason.clone()), Cause::Revoked);
        Ok(self.answer_hold(id))
    }
}
