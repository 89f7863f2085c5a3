//! Answers: one buffer each, written by the engine but for what changes from one answer to the next.

use std::fmt::Display;
use std::io::Write;

use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use serde::Serialize;
use soldonce_core::{EventId, Intent, PaymentState};
use soldonce_engine::reply::{ReplyKind, StoredReply, open_object};
use soldonce_engine::{EngineError, ListPage, Reply};

use super::app::App;
use super::problem::{Handled, Problem};
use super::response::json;

pub(super) const IDEMPOTENCY_REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");
const TRUE: HeaderValue = HeaderValue::from_static("true");
/// Room for the server's time and the secret behind a stored body.
const TAIL_BYTES: usize = 96;

/// Builds a JSON answer of an object that is written here, with the server's time.
pub(super) fn object(app: &App, status: StatusCode, object: &impl Serialize) -> Response {
    let mut body = open_object(object);
    close(app, &mut body);
    json(status, body)
}

/// Builds a JSON answer of an object, without the server's time.
pub(super) fn plain(object: &impl Serialize) -> Response {
    json(
        StatusCode::OK,
        serde_json::to_vec(object).unwrap_or_default(),
    )
}

/// Answers with what the engine says about an event. The event's chart names a refusal's units.
pub(super) fn about(app: &App, event: &EventId, said: Result<Reply, EngineError>) -> Handled {
    match said {
        Ok(said) => Ok(reply(app, &said)),
        Err(error) => {
            let event = app.engine.known_event(event);
            let chart = event.as_ref().map(|event| &*event.chart);
            Err(Problem::of(&error, chart))
        }
    }
}

/// Builds the answer of a reply, with its secret and its payment where it has one.
pub(super) fn reply(app: &App, reply: &Reply) -> Response {
    let mut body = Vec::with_capacity(reply.stored.body.len() + TAIL_BYTES);
    body.extend_from_slice(&reply.stored.body);
    if let Some(secret) = &reply.secret {
        body.extend_from_slice(b",\"secret\":\"");
        body.extend_from_slice(secret.as_bytes());
        body.push(b'"');
    }
    if let Some(intent) = &reply.intent {
        put_intent(&mut body, intent);
    }
    close(app, &mut body);
    let mut response = json(status_of(reply.stored.kind), body);
    if reply.replayed {
        response.headers_mut().insert(IDEMPOTENCY_REPLAYED, TRUE);
    }
    response
}

#[derive(Serialize)]
struct PaymentBegun<'a> {
    state: &'static str,
    provider: &'a str,
    intent: &'a str,
    client_secret: &'a str,
}

/// Appends what the buyer pays with to a checkout's answer: the same whenever it is asked for
/// again.
fn put_intent(body: &mut Vec<u8>, intent: &Intent) {
    let begun = PaymentBegun {
        state: PaymentState::Created.as_str(),
        provider: intent.provider.as_str(),
        intent: intent.id.as_str(),
        client_secret: intent.client_secret.as_str(),
    };
    body.extend_from_slice(b",\"payment\":");
    // Writing to memory does not fail.
    serde_json::to_writer(body, &begun).ok();
}

/// Answers with a hold or a booking as it is now.
pub(super) fn current(app: &App, stored: &StoredReply) -> Response {
    let mut body = Vec::with_capacity(stored.body.len() + TAIL_BYTES);
    body.extend_from_slice(&stored.body);
    close(app, &mut body);
    json(StatusCode::OK, body)
}

/// Builds a page of holds or bookings; `name` is the member that lists them.
pub(super) fn list<Id: Display>(app: &App, name: &str, page: &ListPage<Id>) -> Response {
    let mut body = format!("{{\"{name}\":[").into_bytes();
    for (at, reply) in page.found.iter().enumerate() {
        if at > 0 {
            body.push(b',');
        }
        body.extend_from_slice(&reply.body);
        close(app, &mut body);
    }
    body.push(b']');
    let next = page.next.as_ref().map(|next| format!("\"{next}\""));
    let next = next.as_deref().unwrap_or("null");
    // Writing to memory does not fail.
    write!(body, ",\"next\":{next}").ok();
    if let Some(seq) = page.seq {
        write!(body, ",\"seq\":{}", seq.0).ok();
    }
    close(app, &mut body);
    json(StatusCode::OK, body)
}

/// Ends an open object with the server's time.
pub(super) fn close(app: &App, body: &mut Vec<u8>) {
    body.extend_from_slice(b",\"server_time\":\"");
    // Writing to memory does not fail.
    write!(body, "{}\"}}", app.server_time()).ok();
}

/// Returns the status of each kind of answer; a replay has that of the first one.
fn status_of(kind: ReplyKind) -> StatusCode {
    match kind {
        ReplyKind::Held | ReplyKind::Booked | ReplyKind::Endpoint => StatusCode::CREATED,
        ReplyKind::OwnHold
        | ReplyKind::Hold
        | ReplyKind::Booking
        | ReplyKind::GivenBack
        | ReplyKind::Units => StatusCode::OK,
    }
}
