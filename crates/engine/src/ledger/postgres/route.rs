//! Finds the event that a command belongs to, and puts the command into its queue.

use std::sync::Arc;

use soldonce_core::{EventNo, Rejection};
use tokio::sync::{mpsc, oneshot};

use super::Parts;
use super::bind::bind;
use super::context::Context;
use super::event_slot::{EventSlot, Job};
use super::failure::Failure;
use super::tables::Id;
use super::tables::bookings::EVENT_OF_BOOKING;
use super::tables::holds::EVENT_OF_HOLD;
use crate::ledger::{Done, NamedIds, Subject, Transaction, subject};
use crate::locks::lock;

impl Parts {
    pub(super) async fn route(&self, transaction: Transaction) -> Result<Done, Rejection> {
        if !self.context.is_open() {
            return Err(Rejection::ShuttingDown);
        }
        // What is rare is boxed: every hold would move the room for it, too.
        let event = match subject(&transaction.command) {
            Subject::NewEvent => return Box::pin(self.create(transaction)).await,
            Subject::All => return Box::pin(self.sweep(transaction)).await,
            Subject::Event(event) => event,
            Subject::Named(ids) => match self.event_of(ids).await {
                Ok(event) => event,
                // The key comes first: the same request may have found what is asked for.
                Err(rejection) => {
                    let known = Box::pin(self.context.replay(transaction.key)).await?;
                    return known.map(Done::Replayed).ok_or(rejection);
                }
            },
        };
        let slot = self.slot(event).await?;
        submit(&slot, transaction).await
    }

    /// Returns the slot of an event. Registers new events first if this server does not know it.
    pub(super) async fn slot(&self, event: EventNo) -> Result<Arc<EventSlot>, Rejection> {
        match self.context.catalogue.require(event) {
            Err(Rejection::EventNotFound) => {}
            known => return known,
        }
        self.discover().await.map_err(Failure::of_read)?;
        self.context.catalogue.require(event)
    }

    async fn event_of(&self, named: NamedIds) -> Result<EventNo, Rejection> {
        let context = &self.context;
        if let Some(hold) = named.hold {
            let known = lock(&context.hold_events).get(&hold).copied();
            if let Some(event) = known {
                return Ok(event);
            }
            let id = Id(*hold.bytes());
            if let Some(event) = Box::pin(context.event_of(EVENT_OF_HOLD, id)).await? {
                return Ok(event);
            }
        }
        if let Some(booking) = named.booking {
            let id = Id(*booking.bytes());
            let found = Box::pin(context.event_of(EVENT_OF_BOOKING, id)).await?;
            return found.ok_or(Rejection::BookingNotFound);
        }
        Err(Rejection::HoldNotFound)
    }
}

impl Context {
    /// Finds the event of a hold or a booking by its id, with this statement. None if not found.
    async fn event_of(&self, sql: &'static str, id: Id) -> Result<Option<EventNo>, Failure> {
        let mut connection = self.database.connection().await.map_err(Failure::of_read)?;
        let found = connection.one((sql, "events"), &[bind(&id)]).await;
        found.map_err(Failure::of_read)
    }
}

/// Puts a command into the queue of its event and waits for the answer.
pub(super) async fn submit(slot: &EventSlot, transaction: Transaction) -> Result<Done, Rejection> {
    let (reply, answer) = oneshot::channel();
    let job = Job { transaction, reply };
    let queue = slot.queue()?;
    match queue.try_send(job) {
        // The task ended before it answered.
        Ok(()) => answer.await.unwrap_or(Err(Rejection::OutcomeUnknown)),
        Err(mpsc::error::TrySendError::Full(_)) => Err(Rejection::Overloaded),
        Err(mpsc::error::TrySendError::Closed(_)) => Err(Rejection::ShuttingDown),
    }
}
