//! A request that was let in, and what handlers read from it: ids in the path, query, headers, body.

use std::borrow::Cow;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderName, header};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use soldonce_clock::timeout_at;
use soldonce_core::{BookingId, EventId, HoldId, Rejection};
use soldonce_engine::{Call, CallKey, Caller, HoldSecret};

use super::app::App;
use super::kinds;
use super::problem::Problem;
use super::query::{Query, decode};
use super::route::{BodySize, Route};
use crate::limits::{BODY_READ_MS_MAX, CHART_BODY_READ_MS_MAX, IDEMPOTENCY_KEY_BYTES_MAX};

const HOLD_SECRET: HeaderName = HeaderName::from_static("hold-secret");
const BOOKING_SECRET: HeaderName = HeaderName::from_static("booking-secret");
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// A request that was let in.
pub(super) struct ApiRequest {
    pub(super) app: Arc<App>,
    pub(super) route: Route,
    /// The caller; none where the route is public.
    pub(super) caller: Option<Caller>,
    pub(super) request_id: Arc<str>,
    pub(super) parts: Parts,
    pub(super) body: Body,
}

impl ApiRequest {
    /// Returns the path's segment at this place, from 0, percent-decoded; empty if there is none.
    pub(super) fn segment(&self, at: usize) -> Cow<'_, str> {
        let path = self.parts.uri.path().as_bytes();
        let mut segments = path.split(|byte| *byte == b'/');
        let segment = segments.nth(at.saturating_add(1)).unwrap_or_default();
        let segment = std::str::from_utf8(segment).unwrap_or_default();
        decode(segment).unwrap_or_default()
    }

    /// Parses the event in a path `/v1/events/{event}..`. What is no id is not found either.
    pub(super) fn event_id(&self) -> Result<EventId, Problem> {
        EventId::parse(&self.segment(2)).map_err(|_| Rejection::EventNotFound.into())
    }

    /// Parses the hold in a path `/v1/holds/{hold}..`.
    pub(super) fn hold_id(&self) -> Result<HoldId, Problem> {
        let parsed = self.segment(2).parse();
        parsed.map_err(|_| Rejection::HoldNotFound.into())
    }

    /// Parses the booking in a path `/v1/bookings/{booking}..`.
    pub(super) fn booking_id(&self) -> Result<BookingId, Problem> {
        let parsed = self.segment(2).parse();
        parsed.map_err(|_| Rejection::BookingNotFound.into())
    }

    /// Parses the query, which has no names but those of the route.
    pub(super) fn query(&self) -> Result<Query<'_>, Problem> {
        Query::parse(self.parts.uri.query().unwrap_or_default(), self.route.query)
    }

    /// Builds the engine's call of the request, without an idempotency key.
    pub(super) fn call(&self) -> Result<Call, Problem> {
        let caller = self.caller.clone();
        Ok(Call {
            caller: caller.ok_or_else(|| Problem::new(&kinds::UNAUTHENTICATED))?,
            request: Arc::clone(&self.request_id),
            key: None,
            secret: self.secret(HOLD_SECRET),
            booking_secret: self.secret(BOOKING_SECRET),
        })
    }

    /// Builds the engine's call of the request, with its idempotency key if it has one. `path` are
    /// the ids of its path, `body` is what it asks.
    pub(super) fn keyed_call(&self, path: &[&str], body: &Bytes) -> Result<Call, Problem> {
        let mut call = self.call()?;
        if let Some(key) = self.idempotency_key()? {
            call.key = Some(CallKey::Sent {
                route: self.route.label(),
                key: key.to_owned(),
                path: path.iter().map(|id| (*id).to_owned()).collect(),
                body: body.clone(),
            });
        }
        Ok(call)
    }

    /// Reads the secret in a header. One that cannot be read is empty, which opens nothing.
    fn secret(&self, header: HeaderName) -> Option<HoldSecret> {
        let value = self.parts.headers.get(header)?;
        Some(HoldSecret(value.to_str().unwrap_or_default().into()))
    }

    pub(super) fn idempotency_key(&self) -> Result<Option<&str>, Problem> {
        let mut values = self.parts.headers.get_all(IDEMPOTENCY_KEY).iter();
        let Some(value) = values.next() else {
            return Ok(None);
        };
        let key = value.to_str().unwrap_or_default();
        let is_legal = (1..=IDEMPOTENCY_KEY_BYTES_MAX).contains(&key.len())
            && key.bytes().all(|byte| byte.is_ascii_graphic());
        if is_legal && values.next().is_none() {
            Ok(Some(key))
        } else {
            let rule = "one value of 1 to 255 visible ASCII characters";
            Err(Problem::invalid("Idempotency-Key", rule))
        }
    }

    /// Reads the body, which must be JSON. Where the route needs none, an empty one is `{}`.
    pub(super) async fn json(&mut self) -> Result<Bytes, Problem> {
        let bytes = self.raw().await?;
        if bytes.is_empty() && !self.route.needs_body {
            return Ok(Bytes::from_static(b"{}"));
        }
        self.require_json()?;
        Ok(bytes)
    }

    fn require_json(&self) -> Result<(), Problem> {
        let headers = &self.parts.headers;
        let plain = !headers.contains_key(header::CONTENT_ENCODING);
        let media = headers.get(header::CONTENT_TYPE);
        if plain && media.is_some_and(|value| is_json(value.as_bytes())) {
            Ok(())
        } else {
            Err(Problem::new(&kinds::UNSUPPORTED_MEDIA_TYPE))
        }
    }

    /// Reads the body as it came.
    pub(super) async fn raw(&mut self) -> Result<Bytes, Problem> {
        // Nothing that is asked with a body is asked with a query too.
        self.query()?;
        let most = self.route.body.bytes_max();
        let announced = self.parts.headers.get(header::CONTENT_LENGTH);
        let announced = announced.and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
        if announced.is_some_and(|bytes| bytes > most) {
            return Err(too_large(most));
        }
        read_body(&self.app, &mut self.body, self.route.body).await
    }
}

/// Reads a body within the bounds of its size. A body that is there already, which is nearly every one,
/// costs neither a timer nor a copy.
pub(super) async fn read_body(
    app: &App,
    body: &mut Body,
    size: BodySize,
) -> Result<Bytes, Problem> {
    let mut collected = pin!(collect(body, size.bytes_max()));
    if let Poll::Ready(read) = poll_fn(|cx| Poll::Ready(collected.as_mut().poll(cx))).await {
        return read;
    }
    let wait = match size {
        BodySize::Usual | BodySize::Units | BodySize::Notice => BODY_READ_MS_MAX,
        BodySize::Chart => CHART_BODY_READ_MS_MAX,
    };
    let clock = app.clock();
    let end = clock.boot().plus_ms(wait);
    let read = timeout_at(&**clock, end, collected).await;
    read.unwrap_or_else(|| Err(Problem::new(&kinds::REQUEST_TIMEOUT)))
}

fn is_json(media: &[u8]) -> bool {
    let essence = media.split(|byte| *byte == b';').next().unwrap_or_default();
    essence
        .trim_ascii()
        .eq_ignore_ascii_case(b"application/json")
}

fn too_large(most: usize) -> Problem {
    Problem::new(&kinds::BODY_TOO_LARGE).with("limit", &most)
}

async fn collect(body: &mut Body, most: usize) -> Result<Bytes, Problem> {
    let mut all = Bytes::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| Problem::invalid("body", "it broke off"))?;
        let data = frame.into_data().unwrap_or_default();
        if all.len().saturating_add(data.len()) > most {
            return Err(too_large(most));
        }
        if all.is_empty() {
            all = data;
            continue;
        }
        // What is joined already is this body's alone, so it is not copied again.
        let mut joined = BytesMut::from(all);
        joined.extend_from_slice(&data);
        all = joined.freeze();
    }
    Ok(all)
}
