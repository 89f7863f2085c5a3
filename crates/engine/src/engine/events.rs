//! Events: create, change, call off, block seats, look at them.

use std::sync::Arc;

use soldonce_core::{
    Amount, Answer, BookingId, Command, Commit, Event, EventChange, EventId, EventNo, HoldId,
    Invalid, NewEvent, Rejection, Selection, Text,
};

use super::{Engine, EngineError, NamedUnits, Reply};
use crate::caller::Call;
use crate::ledger::{Done, ReadError, Transaction};
use crate::limits::{LIST_MAX, UNIT_HISTORY_MAX};
use crate::live::{Listing, LiveEvent, SeatSnapshot};

/// An event with the counts of its units.
#[derive(Clone)]
pub struct EventSummary {
    pub event: Arc<Event>,
    /// The states of its seats at one commit number.
    pub snapshot: Arc<SeatSnapshot>,
}

impl EventSummary {
    /// Returns the event as it is now.
    pub fn of(live: &LiveEvent) -> Self {
        Self {
            event: live.event(),
            snapshot: live.snapshot(),
        }
    }
}

impl Engine {
    /// Refuses an event with a price that cannot be paid here: no checkout could sell what is held.
    fn require_chargeable(&self, new: &NewEvent) -> Result<(), Rejection> {
        let Some(provider) = self.provider() else {
            return Ok(());
        };
        for (category, price) in &new.prices {
            if *price == Amount::ZERO {
                continue;
            }
            let chargeable = provider.require_chargeable(new.currency, *price);
            chargeable.map_err(|why| Invalid::new("prices", format!("`{category}`: {why}")))?;
        }
        Ok(())
    }

    /// Creates an event; returns with it whether it is new. `chart` is the seat plan as it was
    /// given, which the ledger keeps.
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
        self.require_chargeable(&new)?;
        let transaction = Transaction {
            origin: call.origin(),
            command: Command::CreateEvent(Box::new(new)),
            key: None,
            chart: Some(chart),
        };
        let done = self.transact(transaction).await?;
        let created = matches!(
            &done,
            Done::Fresh {
                answer: Answer::EventCreated(_),
                ..
            }
        );
        Ok((self.summary_of(done)?, created))
    }

    /// Sets fields of an event and of its policy; the others stay, whichever server set them last.
    ///
    /// # Errors
    /// `EventNotFound`, `Invalid`.
    ///
    /// # Cancel safety
    /// Dropped, the event may have been changed: repeat.
    pub async fn update_event(
        &self,
        call: &Call,
        event: &EventId,
        change: EventChange,
    ) -> Result<EventSummary, EngineError> {
        let event = self.live(event).await?.event().no;
        let command = Command::UpdateEvent {
            event,
            change: Box::new(change),
        };
        self.summary_of(self.submit(call, command).await?)
    }

    /// Cancels an event and revokes its holds.
    ///
    /// # Errors
    /// `EventNotFound`.
    ///
    /// # Cancel safety
    /// Dropped, the event may be cancelled: repeat.
    pub async fn cancel_event(
        &self,
        call: &Call,
        event: &EventId,
        reason: Text,
    ) -> Result<EventSummary, EngineError> {
        let event = self.live(event).await?.event().no;
        let done = self.submit(call, Command::CancelEvent { event, reason });
        self.summary_of(done.await?)
    }

    fn summary_of(&self, done: Done) -> Result<EventSummary, EngineError> {
        let Done::Fresh {
            answer: Answer::EventCreated(event) | Answer::Event(event),
            ..
        } = done
        else {
            return Err(ReadError::Failed("the ledger answered with no event".to_owned()).into());
        };
        Ok(EventSummary::of(&*self.parts.live.event(event.no)?))
    }

    /// Returns an event with the counts of its units.
    ///
    /// # Errors
    /// `EventNotFound`.
    pub async fn event(&self, event: &EventId) -> Result<EventSummary, EngineError> {
        Ok(EventSummary::of(&*self.live(event).await?))
    }

    /// Returns an event without its counts: what most callers need, and cheaper.
    ///
    /// # Errors
    /// `EventNotFound`.
    pub async fn find_event(&self, event: &EventId) -> Result<Arc<Event>, EngineError> {
        Ok(self.live(event).await?.event())
    }

    /// Finds an event that this server knows already: for the names of units.
    pub fn known_event(&self, event: &EventId) -> Option<Arc<Event>> {
        Some(self.parts.live.find(event).ok()?.event())
    }

    /// Returns the event of this number, if this server knows it.
    pub fn event_of_no(&self, no: EventNo) -> Option<Arc<Event>> {
        self.event_of(no).ok()
    }

    /// Finds the event of a hold: for names of units in a refusal. `None` if there is no such hold,
    /// or it cannot be read.
    pub async fn event_of_hold(&self, hold: HoldId) -> Option<Arc<Event>> {
        let hold = self.parts.ledger.hold(hold).await.ok()??;
        self.event_of(hold.event).ok()
    }

    /// Finds the event of a booking: for names of units in a refusal. `None` if there is no such
    /// booking, or it cannot be read.
    pub async fn event_of_booking(&self, booking: BookingId) -> Option<Arc<Event>> {
        let booking = self.parts.ledger.booking(booking).await.ok()??;
        self.event_of(booking.event).ok()
    }

    /// Lists events by id, those after `after`, at most `limit`; tells whether there are more.
    /// While the store cannot be read, lists those that this server knows.
    pub async fn events(
        &self,
        which: Listing,
        after: Option<&EventId>,
        limit: usize,
    ) -> (Vec<EventSummary>, bool) {
        if let Err(error) = self.parts.ledger.find_new_events().await {
            tracing::debug!(%error, "new events were not looked for");
        }
        let limit = limit.clamp(1, LIST_MAX);
        let mut page = self.parts.live.page(which, after, limit.saturating_add(1));
        let more = page.len() > limit;
        page.truncate(limit);
        let page = page.iter().map(|live| EventSummary::of(live));
        (page.collect(), more)
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
        let command = |event, selection| Command::Block {
            event,
            selection,
            reason,
        };
        let reply = self.on_units(call, event, units, command).await?;
        Ok(reply.naming("blocked"))
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
        let command = |event, selection| Command::Unblock {
            event,
            selection,
            reason,
        };
        let reply = self.on_units(call, event, units, command).await?;
        Ok(reply.naming("unblocked"))
    }

    async fn on_units(
        &self,
        call: &Call,
        event: &EventId,
        units: &NamedUnits<'_>,
        command: impl FnOnce(EventNo, Selection) -> Command,
    ) -> Result<Reply, EngineError> {
        let event = self.live(event).await?.event();
        let command = command(event.no, units.wanted(&event.chart)?);
        self.reply(self.submit(call, command).await?)
    }

    /// Returns the newest [`UNIT_HISTORY_MAX`] transitions of a unit, oldest first.
    ///
    /// # Errors
    /// `EventNotFound`, `UnknownUnit`.
    pub async fn unit_history(
        &self,
        event: &EventId,
        unit: &str,
    ) -> Result<(Arc<Event>, Vec<Commit>), EngineError> {
        let event = self.live(event).await?.event();
        let unknown = || Rejection::UnknownUnit(vec![unit.to_owned()]);
        let no = event.chart.find_unit(unit).ok_or_else(unknown)?;
        let ledger = &self.parts.ledger;
        let history = ledger.unit_history(event.no, no, UNIT_HISTORY_MAX);
        Ok((event, history.await?))
    }
}
