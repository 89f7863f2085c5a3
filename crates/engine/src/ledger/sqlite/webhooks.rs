//! Endpoints and deliveries: written by the writer, looked at by the readers.

use soldonce_core::{Rejection, Span, Timestamp};

use super::SqliteLedger;
use super::tables::{deliveries, endpoints};
use super::writer::{AdminJob, Job};
use crate::ledger::{Added, Ledger, LedgerFuture, NewEndpoint, ReadError, Webhooks};
use crate::webhook::{
    Attempt, Delivery, DueDelivery, Endpoint, EndpointChange, EndpointId, MessageId,
};

impl Webhooks for SqliteLedger {
    fn endpoints(&self) -> LedgerFuture<'_, Result<Vec<Endpoint>, ReadError>> {
        self.readers.read(endpoints::all)
    }

    fn add_endpoint(&self, new: NewEndpoint) -> LedgerFuture<'_, Result<Added, Rejection>> {
        self.ask(|reply| Job::Admin(AdminJob::AddEndpoint(Box::new(new), reply)))
    }

    fn change_endpoint(
        &self,
        endpoint: EndpointId,
        change: EndpointChange,
        at: Timestamp,
    ) -> LedgerFuture<'_, Result<Option<Endpoint>, Rejection>> {
        self.ask(|reply| Job::Admin(AdminJob::ChangeEndpoint(endpoint, change, at, reply)))
    }

    fn take_deliveries(
        &self,
        _keep: Span,
        limit: usize,
    ) -> LedgerFuture<'_, Result<Vec<DueDelivery>, ReadError>> {
        // There is no other server.
        let now = self.now();
        self.readers.read(move |connection| {
            let endpoints = endpoints::all(connection)?;
            deliveries::due(connection, &endpoints, now, limit)
        })
    }

    fn note_attempts(&self, attempts: Vec<Attempt>) -> LedgerFuture<'_, Result<(), Rejection>> {
        self.ask(|reply| Job::Admin(AdminJob::NoteAttempts(attempts, reply)))
    }

    fn deliveries(
        &self,
        endpoint: EndpointId,
        before: i64,
        limit: usize,
    ) -> LedgerFuture<'_, Result<Vec<Delivery>, ReadError>> {
        self.readers
            .read(move |connection| deliveries::log(connection, endpoint, before, limit))
    }

    fn resend(
        &self,
        endpoint: EndpointId,
        message: MessageId,
        at: Timestamp,
    ) -> LedgerFuture<'_, Result<Option<Delivery>, Rejection>> {
        self.ask(|reply| Job::Admin(AdminJob::Resend(endpoint, message, at, reply)))
    }

    fn forget_deliveries(
        &self,
        before: Timestamp,
        limit: usize,
    ) -> LedgerFuture<'_, Result<usize, Rejection>> {
        self.ask(|reply| Job::Admin(AdminJob::ForgetDeliveries(before, limit, reply)))
    }
}
