//! Webhook endpoints: what their routes are for, and the shapes of what they answer.
#![expect(dead_code, reason = "only their shape is read")]

use serde_json::{Map, Value, json};
use soldonce_engine::webhook::MessageKind;
use utoipa::ToSchema;

use super::super::route::Admission::Admin;
use super::super::route::Verb::{Delete, Get, Post};
use super::operations::Content::Json;
use super::operations::{Keyed, Operation, operation};
use super::sold::{Booking, Hold};

const TAG: &str = "webhooks";

pub(super) const OPERATIONS: &[Operation] = &[
    operation(
        Post,
        "/v1/webhook-endpoints",
        Admin,
        TAG,
        (
            "create_webhook_endpoint",
            "Makes an endpoint, which hears of every commit from now on; its secret is told here, again to the same key, and never else",
        ),
    )
    .keyed(Keyed::Optional)
    .takes("WebhookEndpointRequest")
    .answers(&[(201, "The endpoint", Json("NewWebhookEndpoint"))]),
    operation(
        Get,
        "/v1/webhook-endpoints",
        Admin,
        TAG,
        ("list_webhook_endpoints", "Every endpoint, oldest first"),
    )
    .answers(&[(200, "The endpoints", Json("WebhookEndpointList"))]),
    operation(
        Delete,
        "/v1/webhook-endpoints/{endpoint}",
        Admin,
        TAG,
        (
            "delete_webhook_endpoint",
            "Deletes an endpoint with all that waits for it",
        ),
    )
    .answers(&[(200, "The endpoint", Json("WebhookEndpoint"))]),
    operation(
        Post,
        "/v1/webhook-endpoints/{endpoint}/rotate",
        Admin,
        TAG,
        (
            "rotate_webhook_endpoint",
            "Gives an endpoint another secret; the one before signs beside it for a day",
        ),
    )
    .answers(&[(200, "The endpoint", Json("NewWebhookEndpoint"))]),
    operation(
        Post,
        "/v1/webhook-endpoints/{endpoint}/disable",
        Admin,
        TAG,
        (
            "disable_webhook_endpoint",
            "Sends nothing more to an endpoint; what it would hear waits, for a week at most",
        ),
    )
    .answers(&[(200, "The endpoint", Json("WebhookEndpoint"))]),
    operation(
        Post,
        "/v1/webhook-endpoints/{endpoint}/enable",
        Admin,
        TAG,
        (
            "enable_webhook_endpoint",
            "Sends to an endpoint again, also one that said it was gone: what waits, at once and with all attempts",
        ),
    )
    .answers(&[(200, "The endpoint", Json("WebhookEndpoint"))]),
    operation(
        Get,
        "/v1/webhook-endpoints/{endpoint}/deliveries",
        Admin,
        TAG,
        (
            "list_webhook_deliveries",
            "What was delivered to an endpoint and what is on its way, newest first; kept for a week",
        ),
    )
    .query(&[
        ("after", "The `next` of the page before", "integer"),
        ("limit", "Most deliveries in the page, 1 to 100", "integer"),
    ])
    .answers(&[(200, "A page of deliveries", Json("WebhookDeliveryList"))]),
    operation(
        Post,
        "/v1/webhook-endpoints/{endpoint}/deliveries/{message}/resend",
        Admin,
        TAG,
        (
            "resend_webhook_delivery",
            "Delivers a message again, at once and with all attempts",
        ),
    )
    .answers(&[(200, "The delivery", Json("WebhookDelivery"))]),
];

/// The messages by their types, as they are posted to endpoints.
pub(super) fn messages() -> Value {
    let header = |name: &str, about: &str| {
        json!({
            "name": name, "in": "header", "required": true, "description": about,
            "schema": {"type": "string"},
        })
    };
    let message = |kind: MessageKind| {
        let (about, schema) = match kind {
            MessageKind::HoldExpired => ("The clock ended a hold", "HoldMessage"),
            MessageKind::BookingConfirmed => ("Units were sold", "BookingMessage"),
            MessageKind::BookingCancelled => {
                ("Lines of a booking were cancelled", "BookingMessage")
            }
            MessageKind::BookingRefunded => ("Money went back", "BookingMessage"),
            MessageKind::BookingExchanged => (
                "Lines of a booking were swapped for others",
                "BookingMessage",
            ),
        };
        let described = json!({"post": {
            "operationId": format!("on_{}", kind.as_str().replace('.', "_")),
            "tags": [TAG],
            "summary": about,
            "parameters": [
                header("webhook-id", "The message's id; the same in every attempt"),
                header("webhook-timestamp", "When it is sent, in seconds since 1970"),
                header("webhook-signature", "`v1,` and a signature for each secret that counts"),
            ],
            "requestBody": {
                "required": true,
                "content": {"application/json": {"schema": super::reference(schema)}},
            },
            "responses": {
                "2XX": {"description": "The message is taken"},
                "410": {"description": "The endpoint is gone: nothing more is sent to it"},
                "default": {"description": "The message is sent again, later and later"},
            },
        }});
        (kind.as_str().to_owned(), described)
    };
    Value::Object(
        MessageKind::ALL
            .map(message)
            .into_iter()
            .collect::<Map<_, _>>(),
    )
}

/// News of a hold.
#[derive(ToSchema)]
pub(super) struct HoldMessage {
    r#type: MessageType,
    /// When it happened.
    #[schema(format = DateTime)]
    timestamp: String,
    data: Hold,
}

/// News of a booking.
#[derive(ToSchema)]
pub(super) struct BookingMessage {
    r#type: MessageType,
    /// When it happened.
    #[schema(format = DateTime)]
    timestamp: String,
    data: Booking,
}

/// Where messages are posted.
#[derive(ToSchema)]
pub(super) struct WebhookEndpoint {
    id: String,
    url: String,
    types: Vec<MessageType>,
    #[schema(format = DateTime)]
    created_at: String,
    /// When its secret was changed last.
    #[schema(format = DateTime)]
    rotated_at: Option<String>,
    /// Since when nothing is sent to it, because it answered 410 or staff said so.
    #[schema(format = DateTime)]
    disabled_at: Option<String>,
    /// It asked by `Retry-After` not to be called before.
    #[schema(format = DateTime)]
    quiet_until: Option<String>,
    /// Left out inside lists.
    #[schema(format = DateTime, nullable = false)]
    server_time: Option<String>,
}

#[derive(ToSchema)]
pub(super) struct NewWebhookEndpoint {
    id: String,
    url: String,
    types: Vec<MessageType>,
    #[schema(format = DateTime)]
    created_at: String,
    #[schema(format = DateTime)]
    rotated_at: Option<String>,
    #[schema(format = DateTime)]
    disabled_at: Option<String>,
    #[schema(format = DateTime)]
    quiet_until: Option<String>,
    /// `whsec_` and base 64: what messages are signed with, shown to the caller that made or rotated it.
    secret: String,
    #[schema(format = DateTime)]
    server_time: String,
}

#[derive(ToSchema)]
pub(super) struct WebhookEndpointList {
    endpoints: Vec<WebhookEndpoint>,
    next: Option<String>,
    #[schema(format = DateTime)]
    server_time: String,
}

/// What a message tells.
#[derive(ToSchema)]
pub(super) enum MessageType {
    #[schema(rename = "hold.expired")]
    HoldExpired,
    #[schema(rename = "booking.confirmed")]
    BookingConfirmed,
    #[schema(rename = "booking.cancelled")]
    BookingCancelled,
    #[schema(rename = "booking.refunded")]
    BookingRefunded,
    #[schema(rename = "booking.exchanged")]
    BookingExchanged,
}

/// Where a delivery stands.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
pub(super) enum DeliveryState {
    Open,
    Delivered,
    GivenUp,
}

/// A message on its way to one endpoint.
#[derive(ToSchema)]
pub(super) struct WebhookDelivery {
    /// `webhook-id`: the same in each attempt.
    message: String,
    r#type: MessageType,
    /// When that happened which it tells.
    #[schema(format = DateTime)]
    at: String,
    state: DeliveryState,
    /// Since it was last asked for.
    attempts: u32,
    /// Of the last answer.
    status: Option<u16>,
    /// Why the last attempt failed: `refused`, `redirected`, `gone`, `no_connection`,
    /// `no_answer_in_time`, `connection_broke`, `certificate_expired`, `certificate_of_another_name`,
    /// `certificate_not_trusted`, `tls_failed`, `forbidden_address`, `bad_url`.
    problem: Option<String>,
    #[schema(format = DateTime)]
    tried_at: Option<String>,
    #[schema(format = DateTime)]
    next_at: Option<String>,
    /// Left out inside lists.
    #[schema(format = DateTime, nullable = false)]
    server_time: Option<String>,
}

#[derive(ToSchema)]
pub(super) struct WebhookDeliveryList {
    deliveries: Vec<WebhookDelivery>,
    next: Option<String>,
    #[schema(format = DateTime)]
    server_time: String,
}
