//! Pages of other origins: who may read answers (CORS), and whose requests count as the shopper's
//! own. Browsers tell the origin; other clients need not.

use axum::http::request::Parts;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::kinds;
use super::problem::Problem;
use crate::settings::ServerSettings;

/// Returns the origin to be named in the answer: that of a page which the operator allowed.
pub(super) fn to_answer(settings: &ServerSettings, headers: &HeaderMap) -> Option<HeaderValue> {
    if settings.allowed_origins.is_empty() {
        return None;
    }
    let origin = headers.get(header::ORIGIN)?;
    is_allowed(settings, origin).then(|| origin.clone())
}

/// Lets the page of this origin read the answer.
pub(super) fn allow(headers: &mut HeaderMap, origin: HeaderValue) {
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(
        header::ACCESS_CONTROL_ALLOW_CREDENTIALS,
        HeaderValue::from_static("true"),
    );
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
}

const EXPOSED: HeaderValue = HeaderValue::from_static(
    "Request-Id, Retry-After, RateLimit, RateLimit-Policy, ETag, Idempotency-Replayed, Date",
);
const ALLOWED_METHODS: &str = "GET, POST, PATCH, DELETE";
const ALLOWED_HEADERS: &str = "Authorization, Booking-Secret, Content-Type, Hold-Secret, \
                               Idempotency-Key, If-None-Match, Last-Event-ID, Request-Id";

/// Answers a browser that asks whether a page of an allowed origin may send a request (preflight).
pub(super) fn preflight(settings: &ServerSettings, parts: &Parts) -> Option<Response> {
    let asks = parts.method == Method::OPTIONS
        && parts
            .headers
            .contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
    if !asks || to_answer(settings, &parts.headers).is_none() {
        return None;
    }
    let fields = [
        (header::ACCESS_CONTROL_ALLOW_METHODS, ALLOWED_METHODS),
        (header::ACCESS_CONTROL_ALLOW_HEADERS, ALLOWED_HEADERS),
        (header::ACCESS_CONTROL_MAX_AGE, "600"),
    ];
    Some((StatusCode::NO_CONTENT, fields).into_response())
}

/// Passes a request that the server's own page, an allowed one, or no page at all has made.
pub(super) fn require_own(settings: &ServerSettings, parts: &Parts) -> Result<(), Problem> {
    let Some(origin) = parts.headers.get(header::ORIGIN) else {
        return Ok(());
    };
    if is_own(origin, parts) || is_allowed(settings, origin) {
        return Ok(());
    }
    // A proxy that names its upstream in `Host` shuts the server's own page out, too.
    let (page, asked) = (origin.to_str(), host(parts));
    let (page, asked) = (page.unwrap_or_default(), asked.unwrap_or_default());
    let text = format!(
        "a page of {page} asked the host {asked}: other origins are allowed by --origins, and a proxy must pass \
         `Host` on as it came"
    );
    Err(Problem::detailed(&kinds::FORBIDDEN, text))
}

fn is_allowed(settings: &ServerSettings, origin: &HeaderValue) -> bool {
    let mut allowed = settings.allowed_origins.iter();
    allowed.any(|allowed| origin == allowed.as_str())
}

/// Tells whether the origin's host is the one that was asked. A proxy may have ended TLS, so the
/// scheme does not count.
fn is_own(origin: &HeaderValue, parts: &Parts) -> bool {
    let host = host(parts);
    let theirs = origin.to_str().ok();
    let theirs = theirs.and_then(|origin| origin.split_once("://"));
    matches!((host, theirs), (Some(host), Some((_, theirs))) if host.eq_ignore_ascii_case(theirs))
}

/// Returns the host that was asked.
fn host(parts: &Parts) -> Option<&str> {
    let host = parts.headers.get(header::HOST);
    let host = host.and_then(|host| host.to_str().ok());
    host.or_else(|| parts.uri.authority().map(Authority::as_str))
}
