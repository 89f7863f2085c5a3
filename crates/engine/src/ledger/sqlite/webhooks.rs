//! Endpoints and deliveries: written by the writer, read by the readers.

use soldonce_core::{Span, Timestamp};

use super::SqliteLedger;
use super::tables::{deliveries, endpoints};
use crate::ledger::{AddOutcome, Ledger, NewEndpoint, Page, Read, Webhooks, Write};
use crate::webhook::{
    Attempt, Delivery, DueDelivery, Endpoint, EndpointChange, EndpointId, MessageId,
};

impl Webhooks for SqliteLedger {
    fn endpoints(&self) -> Read<'_, Vec<Endpoint>> {
        self.readers.read(endpoints::all)
    }

    fn add_endpoint(&self, new: NewEndpoint) -> Write<'_, AddOutcome> {
        self.own(|writer| writer.add_endpoint(new))
    }

    fn change_endpoint(&self, id: EndpointId, how: EndpointChange) -> Write<'_, Option<Endpoint>> {
        let at = self.now();
        self.own(move |writer| writer.change_endpoint(id, how, at).map(Ok))
    }

    fn take_deliveries(&self, _keep: Span, limit: usize) -> Read<'_, Vec<DueDelivery>> {
        // There is no other server.
        let now = self.now();
        self.readers.read(move |connection| {
            deliveries::due(connection, &endpoints::all(connection)?, now, limit)
        })
    }

    fn note_attempts(&self, attempts: Vec<Attempt>) -> Write<'_, ()> {
        self.own(move |writer| writer.note_attempts(&attempts).map(Ok))
    }

    fn deliveries(&self, endpoint: EndpointId, page: Page<i64>) -> Read<'_, Vec<Delivery>> {
        self.readers
            .read(move |connection| deliveries::log(connection, endpoint, page))
    }

    fn resend(&self, endpoint: EndpointId, message: MessageId) -> Write<'_, Option<Delivery>> {
        let at = self.now();
        self.own_commit(move |tables| deliveries::resend(tables, endpoint, message, at))
    }

    fn forget_deliveries(&self, before: Timestamp, limit: usize) -> Write<'_, usize> {
        self.own_commit(move |tables| deliveries::forget(tables, before, limit))
    }
}
