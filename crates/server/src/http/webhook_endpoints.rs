//! Webhook endpoints and the log of what was delivered to them. A signing secret is in the answer that
//! makes it, in the same answer to the same `Idempotency-Key`, and nowhere else.

use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use soldonce_engine::reply::{EndpointBody, Rfc3339};
use soldonce_engine::webhook::{Delivery, Endpoint, EndpointId, Kinds, MessageId, MessageKind};
use utoipa::ToSchema;

use super::answer;
use super::asked::Asked;
use super::json::{self, Str};
use super::kinds;
use super::problem::{Handled, Problem};
use crate::limits::PAGE_MAX;

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WebhookEndpointRequest<'a> {
    /// Where messages are posted: `https`, out in the internet.
    #[serde(borrow)]
    #[schema(value_type = String)]
    url: Str<'a>,
    /// The types it wants; left out: all, also those of later versions.
    #[serde(borrow)]
    #[schema(value_type = Option<Vec<String>>)]
    types: Option<Vec<Str<'a>>>,
}

impl WebhookEndpointRequest<'_> {
    fn kinds(&self) -> Result<Kinds, Problem> {
        let Some(types) = &self.types else {
            return Ok(Kinds::ALL);
        };
        let kinds = types.iter().map(|name| MessageKind::parse(&name.0));
        let kinds: Option<Vec<MessageKind>> = kinds.collect();
        let kinds = kinds.filter(|kinds| !kinds.is_empty());
        let kinds = kinds.ok_or_else(|| {
            let all = MessageKind::ALL.map(MessageKind::as_str).join("`, `");
            Problem::invalid("types", format!("name at least one of `{all}`, or none"))
        })?;
        Ok(Kinds::of(&kinds))
    }
}

#[derive(Serialize)]
struct NewSecret<'a> {
    #[serde(flatten)]
    row: EndpointBody<'a>,
    secret: String,
}

#[derive(Serialize)]
struct EndpointList<'a> {
    endpoints: Vec<EndpointBody<'a>>,
    next: Option<String>,
}

#[derive(Serialize)]
struct DeliveryRow<'a> {
    message: String,
    #[serde(rename = "type")]
    kind: &'static str,
    at: Rfc3339,
    state: &'static str,
    attempts: u32,
    status: Option<u16>,
    problem: Option<&'a str>,
    tried_at: Option<Rfc3339>,
    next_at: Option<Rfc3339>,
}

impl<'a> DeliveryRow<'a> {
    fn new(delivery: &'a Delivery) -> Self {
        Self {
            message: delivery.message.to_string(),
            kind: delivery.kind.as_str(),
            at: Rfc3339(delivery.at),
            state: delivery.state.as_str(),
            attempts: delivery.attempts,
            status: delivery.status,
            problem: delivery.problem.as_deref(),
            tried_at: delivery.tried_at.map(Rfc3339),
            next_at: delivery.next_at.map(Rfc3339),
        }
    }
}

#[derive(Serialize)]
struct DeliveryList<'a> {
    deliveries: Vec<DeliveryRow<'a>>,
    next: Option<String>,
}

fn missing() -> Problem {
    Problem::new(&kinds::NOT_FOUND)
}

fn endpoint_id(asked: &Asked) -> Result<EndpointId, Problem> {
    asked.segment(2).parse().map_err(|_| missing())
}

fn one(asked: &Asked, found: Option<Endpoint>) -> Handled {
    let found = found.ok_or_else(missing)?;
    let row = EndpointBody::new(&found);
    Ok(answer::object(&asked.app, StatusCode::OK, &row))
}

/// `POST /v1/webhook-endpoints`
pub(super) async fn create(mut asked: Asked) -> Handled {
    let body = asked.json().await?;
    let request: WebhookEndpointRequest<'_> = json::parse(&body)?;
    let kinds = request.kinds()?;
    let key = asked.keyed_call(&[], &body)?.record();
    let engine = &asked.app.engine;
    let made = engine.add_endpoint(&request.url.0, kinds, key).await?;
    Ok(answer::reply(&asked.app, &made))
}

/// `GET /v1/webhook-endpoints`
pub(super) async fn list(asked: Asked) -> Handled {
    asked.query(&[])?;
    let endpoints = asked.app.engine.endpoints().await?;
    let list = EndpointList {
        endpoints: endpoints.iter().map(EndpointBody::new).collect(),
        next: None,
    };
    Ok(answer::object(&asked.app, StatusCode::OK, &list))
}

/// `DELETE /v1/webhook-endpoints/{endpoint}`
pub(super) async fn delete(asked: Asked) -> Handled {
    asked.query(&[])?;
    let id = endpoint_id(&asked)?;
    let deleted = asked.app.engine.delete_endpoint(id).await?;
    one(&asked, deleted)
}

/// `POST /v1/webhook-endpoints/{endpoint}/disable`
pub(super) async fn disable(asked: Asked) -> Handled {
    asked.query(&[])?;
    let id = endpoint_id(&asked)?;
    let disabled = asked.app.engine.disable_endpoint(id).await?;
    one(&asked, disabled)
}

/// `POST /v1/webhook-endpoints/{endpoint}/enable`
pub(super) async fn enable(asked: Asked) -> Handled {
    asked.query(&[])?;
    let id = endpoint_id(&asked)?;
    let enabled = asked.app.engine.enable_endpoint(id).await?;
    one(&asked, enabled)
}

/// `POST /v1/webhook-endpoints/{endpoint}/rotate`
pub(super) async fn rotate(asked: Asked) -> Handled {
    asked.query(&[])?;
    let id = endpoint_id(&asked)?;
    let rotated = asked.app.engine.rotate_endpoint(id).await?;
    let (endpoint, secret) = rotated.ok_or_else(missing)?;
    let answer = NewSecret {
        row: EndpointBody::new(&endpoint),
        secret,
    };
    Ok(answer::object(&asked.app, StatusCode::OK, &answer))
}

/// `GET /v1/webhook-endpoints/{endpoint}/deliveries`
pub(super) async fn deliveries(asked: Asked) -> Handled {
    let query = asked.query(&["after", "limit"])?;
    // No delivery has a number beyond those of the ledger.
    let after = query.number("after")?;
    let after = after.map(|after| i64::try_from(after).unwrap_or(i64::MAX));
    let limit = match query.number("limit")? {
        None => PAGE_MAX,
        Some(limit @ 1..=PAGE_MAX) => limit,
        Some(limit) => {
            let reason = format!("{limit} is outside 1 ..= {PAGE_MAX}");
            return Err(Problem::invalid("limit", reason));
        }
    };
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let id = endpoint_id(&asked)?;
    let found = asked.app.engine.deliveries(id, after, limit).await?;
    let found = found.ok_or_else(missing)?;
    let end = found.last().filter(|_| found.len() == limit);
    let list = DeliveryList {
        deliveries: found.iter().map(DeliveryRow::new).collect(),
        next: end.map(|end| end.number.to_string()),
    };
    Ok(answer::object(&asked.app, StatusCode::OK, &list))
}

/// `POST /v1/webhook-endpoints/{endpoint}/deliveries/{message}/resend`
pub(super) async fn resend(asked: Asked) -> Handled {
    asked.query(&[])?;
    let id = endpoint_id(&asked)?;
    let message: MessageId = asked.segment(4).parse().map_err(|_| missing())?;
    let opened = asked.app.engine.resend(id, message).await?;
    let opened = opened.ok_or_else(missing)?;
    let row = DeliveryRow::new(&opened);
    Ok(answer::object(&asked.app, StatusCode::OK, &row))
}
