//! The log's line of an answered request: what it was, what became of it, and what it was about. Nothing
//! that it carried but ids.

use std::time::Duration;

use axum::http::StatusCode;
use soldonce_clock::BootTime;
use soldonce_core::{BookingId, EventId, HoldId};

use super::query::decode;
use super::route::Route;
use super::trace::Trace;
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
    pub(super) trace: Trace,
    pub(super) took: Duration,
}

impl Served<'_> {
    /// Ends the request's span. Logs it at debug level; a slow one as a warning, once in a while for each route.
    pub(super) fn end(self, slow: &Throttle, now: BootTime) {
        let is_slow = self.took >= Duration::from_millis(SLOW_REQUEST_MS) && !self.route.waits;
        let slow = is_slow.then(|| slow.pass(now)).flatten();
        let is_logged = slow.is_some() || tracing::enabled!(tracing::Level::DEBUG);
        if !is_logged && !self.trace.is_exported() {
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
        self.trace.end(
            self.status,
            code,
            [
                ("soldonce.event", &event),
                ("soldonce.hold", &hold),
                ("soldonce.booking", &booking),
            ],
        );
        if !is_logged {
            return;
        }
        let trace_id = self.trace.id;
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
