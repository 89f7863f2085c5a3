//! The messages to webhook endpoints, as the section `webhooks` describes them.

use serde_json::{Map, Value, json};
use soldonce_engine::webhook::MessageKind;

use super::super::operation::Tag;

/// An example of each, by its type.
const EXAMPLES: &str = include_str!("messages.json");

/// Describes the messages by their types.
pub(super) fn all() -> Value {
    let examples: Map<String, Value> =
        serde_json::from_str(EXAMPLES).expect("the examples are JSON");
    let message = |kind: MessageKind| {
        let name = kind.as_str();
        (
            name.to_owned(),
            json!({"post": one(kind, examples.get(name))}),
        )
    };
    Value::Object(MessageKind::ALL.map(message).into_iter().collect())
}

fn one(kind: MessageKind, example: Option<&Value>) -> Value {
    let header = |name: &str, about: &str| {
        json!({
            "name": name, "in": "header", "required": true, "description": about,
            "schema": {"type": "string"},
        })
    };
    let (about, schema) = match kind {
        MessageKind::HoldExpired => ("The clock ended a hold", "HoldMessage"),
        MessageKind::BookingConfirmed => ("Units were sold", "BookingMessage"),
        MessageKind::BookingCancelled => ("Lines of a booking were cancelled", "BookingMessage"),
        MessageKind::BookingRefunded => ("Money went back", "BookingMessage"),
        MessageKind::BookingExchanged => (
            "Lines of a booking were swapped for others",
            "BookingMessage",
        ),
        MessageKind::HoldRevoked => ("Staff ended a hold, or called its event off", "HoldMessage"),
        MessageKind::EventCancelled => ("An event was called off", "EventMessage"),
    };
    json!({
        "operationId": format!("on_{}", kind.as_str().replace('.', "_")),
        "tags": [Tag::Webhooks.as_str()],
        "summary": about,
        "parameters": [
            header("webhook-id", "The message's id; the same in every attempt"),
            header("webhook-timestamp", "When it is sent, in seconds since 1970"),
            header("webhook-signature", "`v1,` and a signature for each secret that counts"),
        ],
        "requestBody": {
            "required": true,
            "content": {"application/json": {"schema": super::reference(schema), "example": example}},
        },
        "responses": {
            "2XX": {"description": "The message is taken"},
            "410": {"description": "The endpoint is gone: nothing more is sent to it"},
            "default": {"description": "The message is sent again, later and later"},
        },
    })
}
