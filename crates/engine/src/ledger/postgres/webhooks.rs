//! Endpoints and deliveries. One server at a time works on a delivery; what it does not finish
//! in its time is taken by another server.

use soldonce_core::{Rejection, Span, Timestamp};

use super::PostgresLedger;
use super::bind::{Value, bind};
use super::context::Context;
use super::database::Connection;
use super::failure::Failure;
use super::limits::ENDPOINT_LOCK_MS;
use super::tables::{Id, deliveries as rows, endpoints, most, short};
use crate::ledger::rows::codes::number;
use crate::ledger::rows::deliveries::get as get_delivery;
use crate::ledger::rows::endpoints::get as get_endpoint;
use crate::ledger::{AddOutcome, NewEndpoint, Page, Read, Webhooks, Write, require_room};
use crate::reply::ReplyKind;
use crate::webhook::{
    Attempt, Delivery, DeliveryState, DueDelivery, Endpoint, EndpointChange, EndpointId, MessageId,
    Then,
};

const TABLE: &str = "webhook_endpoints";

impl Webhooks for PostgresLedger {
    fn endpoints(&self) -> Read<'_, Vec<Endpoint>> {
        Box::pin(async move {
            let all = (endpoints::ENDPOINTS, TABLE);
            Ok(self.database().read(all, &[], get_endpoint).await?)
        })
    }

    fn add_endpoint(&self, new: NewEndpoint) -> Write<'_, AddOutcome> {
        Box::pin(async move {
            let context = &self.parts.context;
            if let Some(known) = context.replay(new.key).await? {
                return Ok(AddOutcome::Replayed(known));
            }
            let refused = match add(context, &new).await {
                Ok(Ok(())) => return Ok(AddOutcome::Stored),
                Ok(Err(full)) => full,
                Err(failure) if failure.is_key_taken() => failure.into(),
                Err(failure) => return Err(failure.into()),
            };
            // Another server may have been asked the same meanwhile.
            let known = context.replay(new.key).await?;
            known.map(AddOutcome::Replayed).ok_or(refused)
        })
    }

    fn change_endpoint(&self, id: EndpointId, how: EndpointChange) -> Write<'_, Option<Endpoint>> {
        Box::pin(async move {
            let (id, at) = (Id(*id.bytes()), self.parts.context.time.now().ms());
            let values = [bind(&id), bind(&at)];
            let [only_id, _] = &values;
            let (sql, values) = match how {
                EndpointChange::Rotate => (endpoints::ROTATE_ENDPOINT, &values[..]),
                EndpointChange::Disable => (endpoints::DISABLE_ENDPOINT, &values[..]),
                EndpointChange::Enable => (endpoints::ENABLE_ENDPOINT, &values[..]),
                EndpointChange::Delete => {
                    (endpoints::DELETE_ENDPOINT, std::slice::from_ref(only_id))
                }
            };
            let mut connection = self.database().connection().await?;
            Ok(connection.first((sql, TABLE), values, get_endpoint).await?)
        })
    }

    fn take_deliveries(&self, keep: Span, limit: usize) -> Read<'_, Vec<DueDelivery>> {
        Box::pin(async move {
            let context = &self.parts.context;
            let now = context.time.now();
            let (until, now) = (now.plus(keep).ms(), now.ms());
            let (limit, server) = (most(limit), bind(&context.server));
            let values = [server, bind(&now), bind(&until), bind(&limit)];
            let taken = (rows::TAKE_DELIVERIES, "deliveries");
            Ok(self.database().read(taken, &values, rows::get_due).await?)
        })
    }

    fn note_attempts(&self, attempts: Vec<Attempt>) -> Write<'_, ()> {
        Box::pin(async move {
            let context = &self.parts.context;
            let all = attempts.as_slice();
            let numbers = column(all, |one| one.number);
            let states = column(all, |one| {
                short(number(&DeliveryState::ALL, &one.then.state()))
            });
            let statuses = column(all, |one| one.status.map(i32::from));
            let problems = column(all, |one| one.problem);
            let tried = column(all, |one| one.at.ms());
            let nexts = column(all, |one| one.next_at().map(Timestamp::ms));
            let quiets = column(all, |one| one.quiet_until.map(Timestamp::ms));
            let gone = column(all, |one| one.then == Then::Disable);
            let before = column(all, |one| i32::try_from(one.before).unwrap_or(i32::MAX));
            let values = [
                bind(&context.server),
                bind(&numbers),
                bind(&states),
                bind(&statuses),
                bind(&problems),
                bind(&tried),
                bind(&nexts),
                bind(&quiets),
                bind(&gone),
                bind(&before),
            ];
            context.database.rows(rows::NOTE_ATTEMPTS, &values).await?;
            Ok(())
        })
    }

    fn deliveries(&self, endpoint: EndpointId, page: Page<i64>) -> Read<'_, Vec<Delivery>> {
        Box::pin(async move {
            let (before, limit) = (page.0.unwrap_or(i64::MAX), most(page.1));
            let id = Id(*endpoint.bytes());
            let values = [bind(&id), bind(&before), bind(&limit)];
            let log = (rows::LOG_OF_ENDPOINT, "deliveries");
            Ok(self.database().read(log, &values, get_delivery).await?)
        })
    }

    fn resend(&self, endpoint: EndpointId, message: MessageId) -> Write<'_, Option<Delivery>> {
        Box::pin(async move {
            let at = self.parts.context.time.now().ms();
            let (id, message) = (Id(*endpoint.bytes()), Id(*message.bytes()));
            let values = [bind(&id), bind(&message), bind(&at)];
            let mut connection = self.database().connection().await?;
            let opened = connection.first((rows::RESEND, "deliveries"), &values, get_delivery);
            Ok(opened.await?)
        })
    }

    fn forget_deliveries(&self, before: Timestamp, limit: usize) -> Write<'_, usize> {
        Box::pin(async move {
            let (before, limit) = (before.ms(), most(limit));
            let values = [bind(&before), bind(&limit)];
            let gone = self.database().rows(rows::FORGET_DELIVERIES, &values);
            Ok(gone.await?.len())
        })
    }
}

/// Lists a value of each attempt.
fn column<T>(attempts: &[Attempt], of: impl Fn(&Attempt) -> T) -> Vec<T> {
    attempts.iter().map(of).collect()
}

/// Stores an endpoint, if there is room for it.
async fn add(context: &Context, new: &NewEndpoint) -> Result<Result<(), Rejection>, Failure> {
    let endpoint = &new.endpoint;
    let (id, url) = (Id(*endpoint.id.bytes()), &*endpoint.url);
    let (kinds, created_at) = (endpoint.kinds.0, endpoint.created_at.ms());
    let key = new.key.map(|key| Id(key.scoped.0));
    let fingerprint = new.key.map(|key| Id(key.fingerprint.0));
    let kind = short(number(&ReplyKind::ALL, &new.reply.kind));
    let body = &*new.reply.body;
    let values = [
        bind(&id),
        bind(&url),
        bind(&kinds),
        bind(&created_at),
        bind(&key),
        bind(&fingerprint),
        bind(&kind),
        bind(&body),
    ];
    let mut connection = context.database.connection().await?;
    connection.begin_write().await?;
    match insert(&mut connection, &values).await {
        Ok(Ok(())) => connection.commit().await.map(Ok),
        Ok(full) => {
            connection.roll_back().await;
            Ok(full)
        }
        failed => connection.finish(failed).await,
    }
}

async fn insert(
    connection: &mut Connection,
    values: &[Value<'_>],
) -> Result<Result<(), Rejection>, Failure> {
    let wait = format!("SET LOCAL lock_timeout = {ENDPOINT_LOCK_MS}");
    connection.run(&wait).await?;
    connection.rows(endpoints::LOCK_ENDPOINTS, &[]).await?;
    // No other server adds one between this look and the end.
    let known = connection.rows(endpoints::ENDPOINTS, &[]).await?.len();
    if let Err(full) = require_room(known) {
        return Ok(Err(full));
    }
    connection.rows(endpoints::ADD_ENDPOINT, values).await?;
    Ok(Ok(()))
}
