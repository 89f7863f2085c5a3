//! Spans, sent to a collector by OTLP over HTTP. OpenTelemetry's own variables count too:
//! `OTEL_SERVICE_NAME`, `OTEL_RESOURCE_ATTRIBUTES`, `OTEL_TRACES_SAMPLER`, `OTEL_EXPORTER_OTLP_HEADERS`,
//! `OTEL_BSP_*`.

use std::time::Duration;

use opentelemetry::trace::TracerProvider;
use opentelemetry::{Key, KeyValue};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider};
use soldonce_engine::metrics::SPANS;
use soldonce_tls::choose_cryptography;
use tracing::{Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, filter_fn};
use tracing_subscriber::registry::LookupSpan;

/// The path of spans under a collector's address.
const PATH: &str = "v1/traces";
/// Longest time that the last spans have to be sent, milliseconds.
const FLUSH_MS: u64 = 800;

/// Sends what is left when it is dropped.
#[derive(Debug)]
pub(crate) struct Traces(SdkTracerProvider);

impl Traces {
    /// Starts a thread that sends spans to the collector at `endpoint`. Spans that come faster than they can be sent
    /// are dropped: no request waits for a collector.
    pub(super) fn to(endpoint: &str) -> anyhow::Result<Self> {
        choose_cryptography();
        let exporter = SpanExporter::builder()
            .with_http()
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(format!("{}/{PATH}", endpoint.trim_end_matches('/')))
            .build()
            // Its own error quotes the address, which may have a token.
            .map_err(|_| anyhow::anyhow!("otlp_endpoint: it is no address of a collector"))?;
        let mut resource = Resource::builder();
        let name = Resource::builder()
            .build()
            .get(&Key::from_static_str("service.name"));
        if name.is_none_or(|name| name.as_str().starts_with("unknown_service")) {
            resource = resource.with_service_name("soldonce");
        }
        let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
        let provider = SdkTracerProvider::builder()
            .with_resource(resource.with_attribute(version).build())
            .with_batch_exporter(exporter)
            .build();
        Ok(Self(provider))
    }

    /// Builds what takes the spans.
    pub(super) fn layer<S>(&self) -> impl Layer<S> + use<S>
    where
        S: Subscriber + for<'a> LookupSpan<'a>,
    {
        let tracer: SdkTracer = self.0.tracer("soldonce");
        let layer = tracing_opentelemetry::layer().with_tracer(tracer);
        let layer = layer
            .with_location(false)
            .with_threads(false)
            .with_target(false);
        layer
            .with_tracked_inactivity(false)
            .with_filter(filter_fn(is_exported).with_max_level_hint(LevelFilter::DEBUG))
    }
}

impl Drop for Traces {
    fn drop(&mut self) {
        if let Err(error) = self
            .0
            .shutdown_with_timeout(Duration::from_millis(FLUSH_MS))
        {
            tracing::warn!(%error, "the last spans were not sent");
        }
    }
}

/// Exports our own spans and those of leases.
fn is_exported(span: &Metadata<'_>) -> bool {
    span.is_span() && (span.target() == SPANS || span.target().starts_with("soldonce_lease"))
}
