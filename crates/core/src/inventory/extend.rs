//! Extend: a later end for a hold, never beyond its cap.

use super::Inventory;
use super::work::{HoldUpdate, Work};
use crate::{Answer, Cause, HoldState, OnHold, Rejection, Span, TtlMax};

impl Inventory {
    pub(super) fn extend(
        &mut self,
        work: &mut Work<'_>,
        on: OnHold,
        ttl: Option<Span>,
        ttl_max: TtlMax,
    ) -> Result<Answer, Rejection> {
        let hold = self.require_hold(on.hold, on.by)?;
        hold.require_active(work.now, on.fence)?;
        let ttl = self.book(hold.event)?.event.require_ttl(ttl, ttl_max)?;
        let cap = hold.max_expires_at;
        if hold.expires_at >= cap {
            return Err(Rejection::CapReached(cap));
        }
        let until = work.now.plus(ttl).min(cap).max(hold.expires_at);
        if until == hold.expires_at {
            return Ok(Answer::Hold(hold.clone()));
        }
        // A server that took this hold to be over has counted its holder without it: one of the two is decided
        // anew.
        work.basis.holders.push(hold.holder.clone());
        let update = HoldUpdate {
            state: HoldState::Active,
            until,
            cause: Cause::Extended,
        };
        Ok(Answer::Hold(self.update_hold(work, on.hold, update)))
    }
}
