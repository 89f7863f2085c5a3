//! The log's line of an answered request: what it was, what became of it, and what it was about. Nothing
//! that it carried but ids.

use std::time::Duration;

use axum::http::{HeaderMap, StatusCode};
use soldonce_clock::BootTime;
use soldonce_core::{BookingId, EventId, HoldId};

use super::query::decode;
use super::route::Route;
use crate::limits::SLOW_REQUEST_MS;
use crate::throttle::Throttle;

/// An answered request.
pub(super) struct Served<'a> {
    pub(super) route: Route,
    pub(super) path: &'a str,
    pub(super) status: StatusCode,
    /// The code of a refusal; else empty.
    pub(super) code: &'a str,
    pub(super) request_id: &'a str,
    /// The id of the caller's trace, if it has one.
    pub(super) trace_id: Option<String>,
    pub(super) took: Duration,
}

/// Parses the trace that `traceparent` names (W3C Trace Context): `00-<32 hex digits>-<16>-<2>`.
pub(super) fn trace_id(headers: &HeaderMap) -> Option<String> {
    let mut parts = headers.get("traceparent")?.to_str().ok()?.split('-');
    let (version, id) = (parts.next()?, parts.next()?);
    let is_hex = |text: &str| {
        text.bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    let is_legal = version.len() == 2 && id.len() == 32 && is_hex(version) && is_hex(id);
    let is_valid = is_legal && version != "ff" && id.bytes().any(|byte| byte != b'0');
    is_valid.then(|| id.to_owned())
}

impl Served<'_> {
    /// Logs the request at debug level; a slow one as a warning, once in a while for each route.
    pub(super) fn log(self, slow: &Throttle, now: BootTime) {
        let is_slow = self.took >= Duration::from_millis(SLOW_REQUEST_MS) && !self.route.waits;
        let slow = is_slow.then(|| slow.pass(now)).flatten();
        if slow.is_none() && !tracing::enabled!(tracing::Level::DEBUG) {
            return;
        }
        let (method, route) = (self.route.verb.as_str(), self.route.path);
        // What the path names. What is no id names nothing: it is the caller's own text.
        let id = self.path.split('/').nth(3).and_then(decode);
        let of = |template: &str| id.as_deref().filter(|_| route.starts_with(template));
        let event = of("/v1/events/{event}").and_then(|id| EventId::parse(id).ok());
        let event = event.map(|id| id.to_string());
        let hold = of("/v1/holds/{hold}").and_then(|id| id.parse::<HoldId>().ok());
        let hold = hold.map(|id| id.to_string());
        let booking = of("/v1/bookings/{booking}").and_then(|id| id.parse::<BookingId>().ok());
        let booking = booking.map(|id| id.to_string());
        let (status, code, request_id) = (self.status.as_u16(), self.code, self.request_id);
        let trace_id = self.trace_id;
        let took_us = u64::try_from(self.took.as_micros()).unwrap_or(u64::MAX);
        macro_rules! line {
            ($level:ident, $($field:ident)?, $text:literal) => {
                tracing::$level!(
                    method, route, event, hold, booking, status, code, request_id, trace_id,
                    took_us, $($field,)? $text
                )
            };
        }
        if let Some(left_out) = slow {
            line!(warn, left_out, "a request took long");
        } else {
            line!(debug, , "request served");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_is_known_by_its_id_and_other_text_is_none() {
        let id = "0af7651916cd43dd8448eb211c80319c";
        let whole = format!("00-{id}-b7ad6b7169203331-01");
        let zero = format!("00-{}-b7ad6b7169203331-01", "0".repeat(32));
        for (value, expected) in [
            (whole.as_str(), Some(id)),
            (&whole.replacen("00", "cc", 1), Some(id)),
            (&whole.replacen("00", "ff", 1), None),
            (&whole.to_uppercase(), None),
            (&zero, None),
            ("00-x", None),
            ("", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert("traceparent", value.parse().unwrap());
            assert_eq!(trace_id(&headers).as_deref(), expected, "{value}");
        }
    }
}
