//! Endpoints and deliveries in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use soldonce_core::{Rejection, Span, Timestamp};

use super::{MemoryLedger, State, ready};
use crate::ledger::{
    Added, Decision, LedgerFuture, NewEndpoint, ReadError, Webhooks, require_room,
};
use crate::webhook::{
    Attempt, Delivery, DeliveryState, DueDelivery, Endpoint, EndpointChange, EndpointId, Message,
    MessageId,
};

/// A delivery with what the log does not show.
struct Row {
    endpoint: EndpointId,
    subject: [u8; 16],
    body: Arc<str>,
    delivery: Delivery,
}

impl Row {
    fn is_open(&self) -> bool {
        self.delivery.state == DeliveryState::Open
    }
}

fn row(number: i64, endpoint: EndpointId, message: &Message, at: Timestamp) -> Row {
    let delivery = Delivery {
        number,
        message: message.id,
        kind: message.kind,
        at,
        state: DeliveryState::Open,
        attempts: 0,
        status: None,
        problem: None,
        tried_at: None,
        next_at: Some(at),
    };
    Row {
        endpoint,
        subject: message.subject,
        body: message.body.as_str().into(),
        delivery,
    }
}

/// All of it.
#[derive(Default)]
pub(super) struct Post {
    pub(super) endpoints: Vec<Endpoint>,
    rows: Vec<Row>,
    last: i64,
}

impl Post {
    pub(super) fn add(&mut self, messages: &[Message], at: Timestamp) {
        for message in messages {
            let wanted = |endpoint: &&Endpoint| endpoint.kinds.has(message.kind);
            for endpoint in self.endpoints.iter().filter(wanted) {
                self.last += 1;
                self.rows.push(row(self.last, endpoint.id, message, at));
            }
        }
    }

    fn due(&self, endpoint: EndpointId, now: Timestamp, limit: usize) -> Vec<DueDelivery> {
        let mut waited_for = BTreeSet::new();
        let open = self
            .rows
            .iter()
            .filter(|row| row.endpoint == endpoint && row.is_open());
        let first = open.filter(|row| waited_for.insert(row.subject));
        let due = first.filter(|row| row.delivery.next_at.is_some_and(|next| next <= now));
        let due = due.map(|row| DueDelivery {
            number: row.delivery.number,
            endpoint,
            message: row.delivery.message,
            kind: row.delivery.kind,
            attempts: row.delivery.attempts,
            body: Arc::clone(&row.body),
        });
        due.take(limit).collect()
    }

    fn note(&mut self, attempt: &Attempt) {
        let numbered = |row: &&mut Row| row.delivery.number == attempt.number && row.is_open();
        if let Some(row) = self.rows.iter_mut().find(numbered) {
            row.delivery.state = attempt.then.state();
            row.delivery.attempts += 1;
            row.delivery.status = attempt.status;
            row.delivery.problem = attempt.problem.map(str::to_owned);
            row.delivery.tried_at = Some(attempt.at);
            row.delivery.next_at = attempt.next_at();
            let told = |known: &&mut Endpoint| known.id == attempt.endpoint;
            if let Some(known) = self.endpoints.iter_mut().find(told) {
                *known = known.clone().after(attempt);
            }
        }
    }

    fn change(
        &mut self,
        endpoint: EndpointId,
        change: EndpointChange,
        at: Timestamp,
    ) -> Option<Endpoint> {
        let found = self
            .endpoints
            .iter()
            .position(|known| known.id == endpoint)?;
        let changed = self.endpoints.remove(found).changed(change, at);
        match change {
            EndpointChange::Delete => return Some(changed),
            EndpointChange::Rotate | EndpointChange::Disable => {}
            EndpointChange::Enable => self.open_again(endpoint, at),
        }
        self.endpoints.insert(found, changed.clone());
        Some(changed)
    }

    fn open_again(&mut self, endpoint: EndpointId, at: Timestamp) {
        let waits = |row: &&mut Row| row.endpoint == endpoint && row.is_open();
        for row in self.rows.iter_mut().filter(waits) {
            row.delivery.attempts = 0;
            row.delivery.next_at = Some(at);
        }
    }

    fn forget(&mut self, before: Timestamp, limit: usize) -> usize {
        let ids = self
            .endpoints
            .iter()
            .map(|known| (known.id, known.disabled_at));
        let known: BTreeMap<EndpointId, Option<Timestamp>> = ids.collect();
        let mut forgotten = 0;
        self.rows.retain(|row| {
            let goes = match (known.get(&row.endpoint), row.delivery.next_at) {
                (None, _) => true,
                (Some(_), None) => row.delivery.at < before,
                (Some(disabled_at), Some(next)) => disabled_at.is_some() && next < before,
            };
            let goes = goes && forgotten < limit;
            forgotten += usize::from(goes);
            !goes
        });
        forgotten
    }
}

impl State {
    fn add_endpoint(&mut self, new: NewEndpoint) -> Result<Added, Rejection> {
        match new.key.and_then(|key| self.decider.recall(key)) {
            Some(Decision::Replay(reply)) => return Ok(Added::Replayed(reply)),
            Some(Decision::Refused(rejection)) => return Err(rejection),
            // A record alone applies nothing.
            Some(Decision::Applied(..)) | None => {}
        }
        require_room(self.post.endpoints.len())?;
        if let Some(key) = new.key {
            self.decider.keep_record(key, new.reply);
        }
        self.post.endpoints.push(new.endpoint);
        Ok(Added::Stored)
    }
}

impl Webhooks for MemoryLedger {
    fn endpoints(&self) -> LedgerFuture<'_, Result<Vec<Endpoint>, ReadError>> {
        ready(Ok(self.state().post.endpoints.clone()))
    }

    fn add_endpoint(&self, new: NewEndpoint) -> LedgerFuture<'_, Result<Added, Rejection>> {
        ready(self.state().add_endpoint(new))
    }

    fn change_endpoint(
        &self,
        endpoint: EndpointId,
        change: EndpointChange,
        at: Timestamp,
    ) -> LedgerFuture<'_, Result<Option<Endpoint>, Rejection>> {
        let changed = self.state().post.change(endpoint, change, at);
        ready(Ok(changed))
    }

    fn take_deliveries(
        &self,
        _keep: Span,
        limit: usize,
    ) -> LedgerFuture<'_, Result<Vec<DueDelivery>, ReadError>> {
        // There is no other server.
        let (now, state) = (crate::ledger::Ledger::now(self), self.state());
        let endpoints = state.post.endpoints.iter();
        let takers = endpoints.filter(|endpoint| endpoint.takes_at(now));
        let due = takers.flat_map(|endpoint| state.post.due(endpoint.id, now, limit));
        ready(Ok(due.collect()))
    }

    fn note_attempts(&self, attempts: Vec<Attempt>) -> LedgerFuture<'_, Result<(), Rejection>> {
        let mut state = self.state();
        for attempt in &attempts {
            state.post.note(attempt);
        }
        ready(Ok(()))
    }

    fn deliveries(
        &self,
        endpoint: EndpointId,
        before: i64,
        limit: usize,
    ) -> LedgerFuture<'_, Result<Vec<Delivery>, ReadError>> {
        let state = self.state();
        let newest = state.post.rows.iter().rev();
        let found = newest.filter(|row| row.endpoint == endpoint && row.delivery.number < before);
        ready(Ok(found
            .take(limit)
            .map(|row| row.delivery.clone())
            .collect()))
    }

    fn resend(
        &self,
        endpoint: EndpointId,
        message: MessageId,
        at: Timestamp,
    ) -> LedgerFuture<'_, Result<Option<Delivery>, Rejection>> {
        let mut state = self.state();
        let is_it = |row: &&mut Row| row.endpoint == endpoint && row.delivery.message == message;
        let found = state.post.rows.iter_mut().find(is_it).map(|row| {
            row.delivery.state = DeliveryState::Open;
            row.delivery.attempts = 0;
            row.delivery.next_at = Some(at);
            row.delivery.clone()
        });
        ready(Ok(found))
    }

    fn forget_deliveries(
        &self,
        before: Timestamp,
        limit: usize,
    ) -> LedgerFuture<'_, Result<usize, Rejection>> {
        ready(Ok(self.state().post.forget(before, limit)))
    }
}
