//! Webhook endpoints and the log of what was delivered to them. A signing secret is in the answer that
//! makes it, in the same answer to the same `Idempotency-Key`, and nowhere else.

use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use soldonce_engine::reply::{EndpointBody, Rfc3339};
use soldonce_engine::webhook::{
    Delivery, EndpointChange, EndpointId, Kinds, MessageId, MessageKind,
};
use utoipa::ToSchema;

use super::api_request::ApiRequest;
use super::json::{self, Str};
use super::operation::{Keyed, LIMIT, Tag, delete, get, post};
use super::problem::{Handled, Problem};
use super::route::Admission::Admin;
use super::shapes::{DeliveryState, MessageType, NewWebhookEndpoint, WebhookEndpoint};
use super::table::Table;
use super::{answer, kinds};

pub(super) fn routes(table: &mut Table) {
    table.tag(Tag::Webhooks);
    table.add(
        post("/v1/webhook-endpoints", Admin)
            .id("create_webhook_endpoint")
            .summary(
                "Makes an endpoint, which hears of every commit from now on; its secret is told \
                 here, again to the same key, and never else",
            )
            .takes::<WebhookEndpointRequest<'_>>(
                r#"{"url": "https://shop.example/soldonce", "types": ["booking.confirmed"]}"#,
            )
            .keyed(Keyed::Optional)
            .gives::<NewWebhookEndpoint>(201, "The endpoint"),
        create,
    );
    table.add(
        get("/v1/webhook-endpoints", Admin)
            .id("list_webhook_endpoints")
            .summary("Every endpoint, oldest first")
            .gives::<EndpointList<'_>>(200, "The endpoints"),
        list,
    );
    table.add(
        get("/v1/webhook-endpoints/{endpoint}", Admin)
            .id("read_webhook_endpoint")
            .summary("One endpoint")
            .gives::<WebhookEndpoint>(200, "The endpoint"),
        read,
    );
    table.add(
        delete("/v1/webhook-endpoints/{endpoint}", Admin)
            .id("delete_webhook_endpoint")
            .summary("Deletes an endpoint with all that waits for it")
            .gives::<WebhookEndpoint>(200, "The endpoint"),
        |req| change(req, EndpointChange::Delete),
    );
    table.add(
        post("/v1/webhook-endpoints/{endpoint}/rotate", Admin)
            .id("rotate_webhook_endpoint")
            .summary("Gives an endpoint another secret; the two before sign, too, for a day")
            .gives::<NewWebhookEndpoint>(200, "The endpoint"),
        rotate,
    );
    table.add(
        post("/v1/webhook-endpoints/{endpoint}/disable", Admin)
            .id("disable_webhook_endpoint")
            .summary(
                "Sends nothing more to an endpoint; what it would hear waits, for a week at most",
            )
            .gives::<WebhookEndpoint>(200, "The endpoint"),
        |req| change(req, EndpointChange::Disable),
    );
    table.add(
        post("/v1/webhook-endpoints/{endpoint}/enable", Admin)
            .id("enable_webhook_endpoint")
            .summary(
                "Sends to an endpoint again, also one that said it was gone: what waits, at once \
                 and with all attempts",
            )
            .gives::<WebhookEndpoint>(200, "The endpoint"),
        |req| change(req, EndpointChange::Enable),
    );
    log_routes(table);
}

fn log_routes(table: &mut Table) {
    table.add(
        get("/v1/webhook-endpoints/{endpoint}/deliveries", Admin)
            .id("list_webhook_deliveries")
            .summary(
                "What was delivered to an endpoint and what is on its way, newest first; kept \
                 for a week",
            )
            .query(&[("after", "The `next` of the page before", "integer"), LIMIT])
            .gives::<DeliveryList<'_>>(200, "A page of deliveries"),
        deliveries,
    );
    table.add(
        post(
            "/v1/webhook-endpoints/{endpoint}/deliveries/{message}/resend",
            Admin,
        )
        .id("resend_webhook_delivery")
        .summary("Delivers a message again, at once and with all attempts")
        .gives::<DeliveryRow<'_>>(200, "The delivery"),
        resend,
    );
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct WebhookEndpointRequest<'a> {
    /// Where messages are posted: `https`, out in the internet.
    #[serde(borrow)]
    #[schema(value_type = String)]
    url: Str<'a>,
    /// The types it wants; left out: all, also those of later versions.
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
        let kinds = kinds.filter(|kinds| !kinds.is_empty()).ok_or_else(|| {
            let all = MessageKind::WORDS.join("`, `");
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

#[derive(Serialize, ToSchema)]
#[schema(as = WebhookEndpointList)]
struct EndpointList<'a> {
    #[schema(value_type = Vec<WebhookEndpoint>)]
    endpoints: Vec<EndpointBody<'a>>,
    next: Option<String>,
}

/// A message on its way to one endpoint.
#[derive(Serialize, ToSchema)]
#[schema(as = WebhookDelivery)]
struct DeliveryRow<'a> {
    /// `webhook-id`: the same in each attempt.
    message: String,
    #[serde(rename = "type")]
    #[schema(value_type = MessageType)]
    kind: &'static str,
    /// When that happened which it tells.
    #[schema(value_type = String, format = DateTime)]
    at: Rfc3339,
    #[schema(value_type = DeliveryState)]
    state: &'static str,
    /// Since it was last asked for.
    attempts: u32,
    /// Of the last answer.
    status: Option<u16>,
    /// Why the last attempt failed: `refused`, `redirected`, `gone`, `no_connection`,
    /// `no_answer_in_time`, `connection_broke`, `certificate_expired`, `certificate_of_another_name`,
    /// `certificate_not_trusted`, `tls_failed`, `forbidden_address`, `bad_url`.
    problem: Option<&'a str>,
    #[schema(value_type = Option<String>, format = DateTime)]
    tried_at: Option<Rfc3339>,
    #[schema(value_type = Option<String>, format = DateTime)]
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

#[derive(Serialize, ToSchema)]
#[schema(as = WebhookDeliveryList)]
struct DeliveryList<'a> {
    deliveries: Vec<DeliveryRow<'a>>,
    next: Option<String>,
}

fn missing() -> Problem {
    Problem::new(&kinds::NOT_FOUND)
}

fn endpoint_id(req: &ApiRequest) -> Result<EndpointId, Problem> {
    req.segment(2).parse().map_err(|_| missing())
}

async fn create(mut req: ApiRequest) -> Handled {
    let body = req.json().await?;
    let request: WebhookEndpointRequest<'_> = json::parse(&body)?;
    let kinds = request.kinds()?;
    let key = req.keyed_call(&[], &body)?.record();
    let engine = &req.app.engine;
    let made = engine.add_endpoint(&request.url.0, kinds, key).await?;
    Ok(answer::reply(&req.app, &made))
}

async fn list(req: ApiRequest) -> Handled {
    req.query()?;
    let endpoints = req.app.engine.endpoints().await?;
    let list = EndpointList {
        endpoints: endpoints.iter().map(EndpointBody::new).collect(),
        next: None,
    };
    Ok(answer::object(&req.app, StatusCode::OK, &list))
}

async fn read(req: ApiRequest) -> Handled {
    req.query()?;
    let id = endpoint_id(&req)?;
    let endpoints = req.app.engine.endpoints().await?;
    let found = endpoints.iter().find(|endpoint| endpoint.id == id);
    let row = EndpointBody::new(found.ok_or_else(missing)?);
    Ok(answer::object(&req.app, StatusCode::OK, &row))
}

async fn change(req: ApiRequest, change: EndpointChange) -> Handled {
    req.query()?;
    let engine = &req.app.engine;
    let changed = engine.change_endpoint(endpoint_id(&req)?, change).await?;
    let changed = changed.ok_or_else(missing)?;
    let row = EndpointBody::new(&changed);
    Ok(answer::object(&req.app, StatusCode::OK, &row))
}

async fn rotate(req: ApiRequest) -> Handled {
    req.query()?;
    let rotated = req.app.engine.rotate_endpoint(endpoint_id(&req)?).await?;
    let (endpoint, secret) = rotated.ok_or_else(missing)?;
    let answer = NewSecret {
        row: EndpointBody::new(&endpoint),
        secret,
    };
    Ok(answer::object(&req.app, StatusCode::OK, &answer))
}

async fn deliveries(req: ApiRequest) -> Handled {
    let query = req.query()?;
    // No delivery has a number beyond those of the ledger.
    let after = query.number("after")?;
    let after = after.map(|after| i64::try_from(after).unwrap_or(i64::MAX));
    let limit = query.limit()?;
    let id = endpoint_id(&req)?;
    let found = req.app.engine.deliveries(id, after, limit).await?;
    let found = found.ok_or_else(missing)?;
    let end = found.last().filter(|_| found.len() == limit);
    let list = DeliveryList {
        deliveries: found.iter().map(DeliveryRow::new).collect(),
        next: end.map(|end| end.number.to_string()),
    };
    Ok(answer::object(&req.app, StatusCode::OK, &list))
}

async fn resend(req: ApiRequest) -> Handled {
    req.query()?;
    let id = endpoint_id(&req)?;
    let message: MessageId = req.segment(4).parse().map_err(|_| missing())?;
    let opened = req.app.engine.resend(id, message).await?;
    let opened = opened.ok_or_else(missing)?;
    let row = DeliveryRow::new(&opened);
    Ok(answer::object(&req.app, StatusCode::OK, &row))
}
