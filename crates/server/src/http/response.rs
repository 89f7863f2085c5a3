//! Responses of each media type, with the header fields that all of them have.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;

pub(super) const JSON: HeaderValue = HeaderValue::from_static("application/json");
/// The page may run and show what this server sends, and nothing else.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
     connect-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; \
     frame-ancestors 'none'",
);
const NO_REFERRER: HeaderValue = HeaderValue::from_static("no-referrer");

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
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    let media = HeaderValue::from_static("text/event-stream");
    headers.insert(header::CONTENT_TYPE, media);
    let buffering = HeaderName::from_static("x-accel-buffering");
    headers.insert(buffering, HeaderValue::from_static("no"));
    response
}

/// Creates a page for people, with the headers that keep everything else out of it.
pub(super) fn html(body: Body) -> Response {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    let media = HeaderValue::from_static("text/html; charset=utf-8");
    headers.insert(header::CONTENT_TYPE, media);
    headers.insert(header::CONTENT_SECURITY_POLICY, POLICY);
    headers.insert(header::REFERRER_POLICY, NO_REFERRER);
    let opener = HeaderName::from_static("cross-origin-opener-policy");
    headers.insert(opener, HeaderValue::from_static("same-origin"));
    response
}
