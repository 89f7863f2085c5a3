//! Responses of each media type, with the header fields that all of them have.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;

pub(super) const JSON: HeaderValue = HeaderValue::from_static("application/json");
/// The page may run and show what this server sends, and nothing else.
const POLICY: &str = "default-src 'self'; script-src 'self'; style-src 'self'; \
                      img-src 'self' data:; connect-src 'self'; object-src 'none'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const OPENER: HeaderName = HeaderName::from_static("cross-origin-opener-policy");
const BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// Header fields that answers usually have: five of their own, over gRPC seven, two of a rate limit. Room for them at
/// once spares the map its growth.
pub(super) const HEADERS: usize = 8;

/// What a stream of events sends when it has none for long.
pub(super) const KEEP_ALIVE: Bytes = Bytes::from_static(b": still here\n\n");

/// Creates an answer without header fields yet.
pub(super) fn bare(status: StatusCode, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = HeaderMap::with_capacity(HEADERS);
    response
}

pub(super) fn json(status: StatusCode, body: impl Into<Body>) -> Response {
    let mut response = bare(status, body.into());
    response.headers_mut().insert(header::CONTENT_TYPE, JSON);
    response
}

/// Creates an answer of server-sent events, which no proxy keeps back.
pub(super) fn stream(body: Body) -> Response {
    let fields = [
        (header::CONTENT_TYPE, "text/event-stream"),
        (BUFFERING, "no"),
    ];
    (fields, body).into_response()
}

/// Creates a page for people, with the headers that keep everything else out of it.
pub(super) fn html(body: Body) -> Response {
    let fields = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::REFERRER_POLICY, "no-referrer"),
        (OPENER, "same-origin"),
    ];
    (fields, body).into_response()
}
