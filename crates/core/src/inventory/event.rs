//! Events: create, change, cancel.

use std::sync::Arc;

use super::Inventory;
use super::work::Work;
use crate::limits::ENDED_UNITS_MAX;
use crate::{Answer, Event, EventChange, EventNo, EventState, NewEvent, Rejection, Seq, Text};

impl Inventory {
    pub(super) fn create_event(
        &mut self,
        work: &mut Work<'_>,
        new: &NewEvent,
    ) -> Result<Answer, Rejection> {
        if let Some(no) = self.by_id.get(&new.id) {
            let known = &self.book(*no)?.event;
            return if known.fingerprint == new.fingerprint {
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

    pub(super) fn update_event(
        &mut self,
        work: &mut Work<'_>,
        event: EventNo,
        change: &EventChange,
    ) -> Result<Answer, Rejection> {
        let changed = self.book(event)?.event.changed(change)?;
        Ok(self.change_event(work, event, |event| *event = changed))
    }

    fn change_event(
        &mut self,
        work: &mut Work<'_>,
        no: EventNo,
        change: impl FnOnce(&mut Event),
    ) -> Answer {
        self.remember_event(no);
        let mut event = Arc::clone(&self.known_book(no).event);
        change(Arc::make_mut(&mut event));
        self.set_event(Arc::clone(&event));
        work.event = Some(no);
        Answer::Event(event)
    }

    pub(super) fn cancel_event(
        &mut self,
        work: &mut Work<'_>,
        event: EventNo,
        reason: &Text,
    ) -> Result<Answer, Rejection> {
        let found = &self.book(event)?.event;
        if found.cancelled().is_some() {
            return Ok(Answer::Event(Arc::clone(found)));
        }
        let state = EventState::Cancelled(reason.clone());
        let answer = self.change_event(work, event, |event| event.state = state);
        // No command takes those that are left for live, and the sweeper writes them down.
        self.end_called_off(work, event, ENDED_UNITS_MAX);
        Ok(answer)
    }
}
