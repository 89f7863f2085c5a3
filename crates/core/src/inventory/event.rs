//! Events: create, give another policy, call off.

use std::sync::Arc;

use super::Inventory;
use super::work::Work;
use crate::{
    Answer, Cause, Event, EventNo, EventState, HoldId, HoldState, NewEvent, PolicyChange,
    Rejection, Seq, Text, Timestamp,
};

impl Inventory {
    pub(super) fn create_event(
        &mut self,
        work: &mut Work<'_>,
        new: &NewEvent,
    ) -> Result<Answer, Rejection> {
        if let Some(known) = self.by_id.get(&new.id).and_then(|no| self.event(*no)) {
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
        self.remember_event(event);
        let book = self.book_mut(event);
        book.event = Arc::new(Event {
            policy,
            ..Event::clone(&book.event)
        });
        work.event = Some(event);
        Ok(Answer::Event(Arc::clone(&book.event)))
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
        let ends: Vec<(Timestamp, HoldId)> = self.expiries.of_event(event).collect();
        for (until, hold) in ends {
            let (state, cause) = if until <= work.now {
                (HoldState::Expired, Cause::Expired)
            } else {
                (HoldState::Revoked(reason.clone()), Cause::Revoked)
            };
            self.end_hold(work, hold, state, cause);
        }
        self.remember_event(event);
        let book = self.book_mut(event);
        let state = EventState::Cancelled(reason.clone());
        book.event = Arc::new(Event {
            state,
            ..Event::clone(&book.event)
        });
        work.reason = Some(reason.clone());
        work.event = Some(event);
        Ok(Answer::Event(Arc::clone(&self.book_mut(event).event)))
    }
}
