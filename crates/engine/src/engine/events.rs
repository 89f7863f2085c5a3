//! Events: create, change the policy, call off, block seats, look at them.

use std::sync::Arc;

use soldonce_core::{
    Answer, BookingId, Command, Commit, Event, EventId, HoldId, NewEvent, Origin, Policy,
    Rejection, Seq, Text,
};

use super::{Engine, EngineError, NamedUnits, Reply};
use crate::caller::Call;
use crate::ledger::{Done, ReadError, Transaction};
use crate::limits::{LIST_MAX, UNIT_HISTORY_MAX};
use crate::live::{LiveEvent, Picture, Subscription};

/// An event with the counts of its units.
#[derive(Clone)]
pub struct EventSummary {
    /// The event.
    pub event: Arc<Event>,
    /// Its seats at one commit number.
    pub picture: Arc<Picture>,
}

impl EventSummary {
    fn of(live: &LiveEvent) -> Self {
        Self {
            event: live.event(),
            picture: live.picture(),
        }
    }
}

impl Engine {
    /// Creates an event; whether it is new. `chart` is the seat plan as it was given, which the
    /// ledger keeps.
    ///
    /// # Errors
    /// `EventExists` when one of this id was created by another request; `Invalid`.
    ///
    /// # Cancel safety
    /// Dropped, the event may have been created: repeat.
    pub async fn create_event(
        &self,
        call: &Call,
        new: NewEvent,
        chart: Arc<[u8]>,
    ) -> Result<(EventSummary, bool), EngineError> {
        let actor = soldonce_core::Actor::Caller(call.caller.id());
        let origin = Origin {
            actor,
            request: Arc::clone(&call.request),
        };
        let command = Command::CreateEvent(Box::new(new));
        let transaction = Transaction {
            origin,
            command,
            key: None,
            chart: Some(chart),
        };
        let done = self.parts.ledger.transact(transaction).await?;
        let created = matches!(
            &done,
            Done::Fresh {
                answer: Answer::EventCreated(_),
                ..
            }
        );
        Ok((self.summary_of(done)?, created))
    }

    /// Gives an event another policy.
    ///
    /// # Errors
    /// `EventNotFound`, `Invalid`.
    ///
    /// # Cancel safety
    /// Dropped, the policy may have been changed: repeat.
    pub async fn update_policy(
        &self,
        call: &Call,
        event: &EventId,
        policy: Policy,
    ) -> Result<EventSummary, EngineError> {
        let event = self.live(event)?.event().no;
        let command = Command::UpdatePolicy {
            event,
            policy: Box::new(policy),
        };
        let done = self.submit(call, command).await?;
        self.summary_of(done)
    }

    /// Calls an event off and revokes its holds.
    ///
    /// # Errors
    /// `EventNotFound`.
    ///
    /// # Cancel safety
    /// Dropped, the event may be called off: repeat.
    pub async fn cancel_event(
        &self,
        call: &Call,
        event: &EventId,
        reason: Text,
    ) -> Result<EventSummary, EngineError> {
        let event = self.live(event)?.event().no;
        let done = self
            .submit(call, Command::CancelEvent { event, reason })
            .await?;
        self.summary_of(done)
    }

    fn summary_of(&self, done: Done) -> Result<EventSummary, EngineError> {
        let Done::Fresh {
            answer: Answer::EventCreated(event) | Answer::Event(event),
            ..
        } = done
        else {
            return Err(ReadError::Failed("the ledger answered with no event".to_owned()).into());
        };
        let live = self
            .parts
            .live
            .event(event.no)
            .ok_or(Rejection::EventNotFound)?;
        Ok(EventSummary::of(&live))
    }

    /// One event.
    ///
    /// # Errors
    /// `EventNotFound`.
    pub fn event(&self, event: &EventId) -> Result<EventSummary, Rejection> {
        Ok(EventSummary::of(&*self.live(event)?))
    }

    /// One event without its counts: what most callers need, and cheaper.
    ///
    /// # Errors
    /// `EventNotFound`.
    pub fn find_event(&self, event: &EventId) -> Result<Arc<Event>, Rejection> {
        Ok(self.live(event)?.event())
    }

    /// The event of a hold that exists: for names of units in a refusal.
    pub async fn event_of_hold(&self, hold: HoldId) -> Option<Arc<Event>> {
        let hold = self.parts.ledger.hold(hold).await.ok()??;
        self.event_of(hold.event).ok()
    }

    /// The event of a booking that exists: for names of units in a refusal.
    pub async fn event_of_booking(&self, booking: BookingId) -> Option<Arc<Event>> {
        let booking = self.parts.ledger.booking(booking).await.ok()??;
        self.event_of(booking.event).ok()
    }

    /// Events by id, those after `after`, at most `limit`; and whether there are more.
    pub fn events(&self, after: Option<&EventId>, limit: usize) -> (Vec<EventSummary>, bool) {
        let limit = limit.clamp(1, LIST_MAX);
        let mut page = self.parts.live.page(after, limit.saturating_add(1));
        let more = page.len() > limit;
        page.truncate(limit);
        (
            page.iter().map(|live| EventSummary::of(live)).collect(),
            more,
        )
    }

    /// Goes on with an event's feed after a commit number.
    ///
    /// # Errors
    /// `EventNotFound`.
    pub fn subscribe(&self, event: &EventId, after: Seq) -> Result<Subscription, Rejection> {
        Ok(self.live(event)?.feed.subscribe(after))
    }

    /// Takes free units out of sale.
    ///
    /// # Errors
    /// `EventNotFound`, `UnknownUnit`, `UnitUnavailable` with every conflict.
    ///
    /// # Cancel safety
    /// Dropped, the units may be blocked: look at the seats.
    pub async fn block(
        &self,
        call: &Call,
        event: &EventId,
        units: &NamedUnits<'_>,
        reason: Text,
    ) -> Result<Reply, EngineError> {
        let event = self.live(event)?.event();
        let selection = units.wanted(&event.chart)?;
        let command = Command::Block {
            event: event.no,
            selection,
            reason,
        };
        Ok(self
            .reply(self.submit(call, command).await?)?
            .naming("blocked"))
    }

    /// Puts blocked units back on sale.
    ///
    /// # Errors
    /// `EventNotFound`, `UnknownUnit`, `UnitUnavailable` with every unit that is not blocked.
    ///
    /// # Cancel safety
    /// Dropped, the units may be unblocked: look at the seats.
    pub async fn unblock(
        &self,
        call: &Call,
        event: &EventId,
        units: &NamedUnits<'_>,
        reason: Text,
    ) -> Result<Reply, EngineError> {
        let event = self.live(event)?.event();
        let selection = units.wanted(&event.chart)?;
        let command = Command::Unblock {
            event: event.no,
            selection,
            reason,
        };
        Ok(self
            .reply(self.submit(call, command).await?)?
            .naming("unblocked"))
    }

    /// Every transition of a unit, oldest first.
    ///
    /// # Errors
    /// `EventNotFound`, `UnknownUnit`.
    pub async fn unit_history(
        &self,
        event: &EventId,
        unit: &str,
    ) -> Result<(Arc<Event>, Vec<Commit>), EngineError> {
        let event = self.live(event)?.event();
        let unknown = || Rejection::UnknownUnit(vec![unit.to_owned()]);
        let no = event.chart.find_unit(unit).ok_or_else(unknown)?;
        let history = self
            .parts
            .ledger
            .unit_history(event.no, no, UNIT_HISTORY_MAX)
            .await?;
        Ok((event, history))
    }
}
