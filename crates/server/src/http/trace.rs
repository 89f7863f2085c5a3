//! A request's span, for an operator's traces (docs/operations.md, "Traces"), as a part of the trace that its
//! caller began. The names of its fields are those of OpenTelemetry's conventions for HTTP servers.

use axum::http::{HeaderMap, StatusCode};
use opentelemetry::Context;
use opentelemetry::propagation::TextMapPropagator;
use opentelemetry::trace::TraceContextExt;
use opentelemetry_http::HeaderExtractor;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use soldonce_engine::metrics::SPANS;
use tracing::Span;
use tracing::field::Empty;
use tracing_opentelemetry::OpenTelemetrySpanExt;

use super::route::Route;

/// The size of a `traceparent` of version 00; later ones may be longer (W3C Trace Context, 3.2.2).
const TRACEPARENT_BYTES_MIN: usize = 55;

/// The span of a request. Without an exporter it is only the trace that the caller named.
pub(super) struct Trace {
    pub(super) span: Span,
    /// The id of the trace, for the log.
    pub(super) id: Option<String>,
}

impl Trace {
    /// Begins the span of a request. It goes on with the trace of `traceparent` (W3C Trace Context) if there is one.
    pub(super) fn begin(route: Route, headers: &HeaderMap, request_id: &str) -> Self {
        let (method, path) = (route.verb.as_str(), route.path);
        let span = tracing::info_span!(
            target: SPANS, "request", otel.kind = "server", otel.name = %format_args!("{method} {path}"),
            otel.status_code = Empty, http.request.method = method, http.route = path,
            http.response.status_code = Empty, error.r#type = Empty, soldonce.request_id = request_id,
            soldonce.event = Empty, soldonce.hold = Empty, soldonce.booking = Empty,
        );
        let caller = caller(headers);
        let id = match caller {
            Some(caller) => {
                let id = trace_id(&caller);
                // Fails only where there is no exporter.
                span.set_parent(caller).ok();
                id
            }
            None if span.is_disabled() => None,
            None => trace_id(&span.context()),
        };
        Self { span, id }
    }

    /// Tells whether the span is exported.
    pub(super) fn is_exported(&self) -> bool {
        !self.span.is_disabled()
    }

    /// Says what became of the request, with the code of a refusal, and which things it was about.
    pub(super) fn end(
        &self,
        status: StatusCode,
        code: &str,
        about: [(&'static str, &Option<String>); 3],
    ) {
        self.span
            .record("http.response.status_code", status.as_u16());
        if !code.is_empty() {
            self.span.record("error.type", code);
        }
        if status.is_server_error() {
            self.span.record("otel.status_code", "ERROR");
        }
        for (field, id) in about {
            self.span.record(field, id.as_deref());
        }
    }
}

/// Reads the trace that the caller began.
fn caller(headers: &HeaderMap) -> Option<Context> {
    // The library takes shorter ids than the document allows.
    headers
        .get("traceparent")
        .filter(|value| value.len() >= TRACEPARENT_BYTES_MIN)?;
    let propagator = TraceContextPropagator::new();
    let context = propagator.extract_with_context(&Context::new(), &HeaderExtractor(headers));
    context.has_active_span().then_some(context)
}

fn trace_id(context: &Context) -> Option<String> {
    let span = context.span();
    let id = span
        .span_context()
        .is_valid()
        .then(|| span.span_context().trace_id());
    id.map(|id| id.to_string())
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
            ("00-1-1-01", None),
            ("", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert("traceparent", value.parse().unwrap());
            let found = caller(&headers).and_then(|caller| trace_id(&caller));
            assert_eq!(found.as_deref(), expected, "{value}");
        }
    }
}
