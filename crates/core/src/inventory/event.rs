//! Events: create, change the policy, cancel.

use std::sync::Arc;

use super::Inventory;
use super::work::Work;
use crate::{
    Answer, Cause, Event, EventNo, EventState, HoldState, NewEvent, PolicyChange, Rejection, Seq,
    Text,
};

impl Inventory {
    pub(super) fn create_event(
        &mut self,
        work: &mut Work<'_>,
        new: &NewEvent,
    ) -> Result<Answer, Rejection> {
        if let Some(no) = self.by_id.get(&new.id) {
            let known = &self.book(*no)?.event;
            let same = known.fingerprint == new.fingerprint;
            return if same {
                Ok(Answer::Event(Arc::clone(known)))
            } else {
                Err(Rejection::EventExists)
            };
        }
        let no = self.next_event().ok_or(Rejection::Overloaded)?;
        let event = Arc::new(Event::create(no, new, work.now)?);
        self.add_event(Arc::clone(&event), Seq::default());
        work.event = Some(no);
        Ok(Answer::EventCreated(event))
    }

    pub(super) fn update_policy(
        &mut self,
        work: &mut Work<'_>,
        event: EventNo,
        change: &PolicyChange,
    ) -> Result<Answer, Rejection> {
        let found = &self.book(event)?.event;
        let policy = found.policy.changed(change)?;
        policy.require_sale(found.starts_at)?;
        Ok(self.change_event(work, event, |event| event.policy = policy))
    }

    fn change_event(
        &mut self,
        work: &mut Work<'_>,
        no: EventNo,
        change: impl FnOnce(&mut Event),
    ) -> Answer {
        self.remember_event(no);
        let book = self.book_mut(no);
        change(Arc::make_mut(&mut book.event));
        work.event = Some(no);
        Answer::Event(Arc::clone(&book.event))
    }

    pub(super) fn cancel_event(
        &mut self,
        work: &mut Work<'_>,
        event: EventNo,
        reason: &Text,
    ) -> Result<Answer, Rejection> {
        let book = self.book(event)?;
        if let EventState::Cancelled(_) = book.event.state {
            return Ok(Answer::Event(Arc::clone(&book.event)));
        }
        let ends = book.ends.clone();
        for (until, hold) in ends {
            let (state, cause) = if until <= work.now {
                (HoldState::Expired, Cause::Expired)
            } else {
                (HoldState::Revoked(reason.clone()), Cause::Revoked)
            };
            self.end_hold(work, hold, state, cause);
        }
        work.reason = Some(reason.clone());
        let state = EventState::Cancelled(reason.clone());
        Ok(self.change_event(work, event, |event| event.state = state))
    }
}
