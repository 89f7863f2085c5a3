//! What is counted and timed of HTTP (api.md 5): by route template and status, never by anything
//! that a caller can choose. A request costs a few additions to atomics and no lock.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::http::StatusCode;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use soldonce_tls::Listener;

use super::route::Route;
use crate::throttle::Throttle;

/// The statuses that have a counter of their own; all others share the last one.
const STATUSES: [u16; 22] = [
    200, 201, 204, 304, 400, 401, 403, 404, 405, 408, 409, 410, 413, 415, 422, 429, 431, 500, 501,
    502, 503, 504,
];
/// Upper bounds of the buckets of times, seconds.
const BUCKETS: [f64; 16] = [
    0.000_05, 0.000_1, 0.000_2, 0.000_4, 0.000_8, 0.001_6, 0.003_2, 0.006_4, 0.012_8, 0.025_6,
    0.051_2, 0.102_4, 0.204_8, 0.409_6, 1.638_4, 6.553_6,
];

/// The counters of every route.
#[derive(Debug)]
pub(super) struct HttpMetrics {
    routes: Vec<RouteMetrics>,
}

#[derive(Debug)]
pub(super) struct RouteMetrics {
    label: String,
    /// By place in [`STATUSES`], then the rest.
    answers: [AtomicU64; STATUSES.len() + 1],
    /// By place in [`BUCKETS`], then the rest.
    times: [AtomicU64; BUCKETS.len() + 1],
    micros: AtomicU64,
    /// Limits the log lines about slow requests: a client makes its own slow.
    pub(super) slow: Throttle,
}

impl RouteMetrics {
    fn new(route: Route) -> Self {
        Self {
            label: route.label(),
            answers: std::array::from_fn(|_| AtomicU64::new(0)),
            times: std::array::from_fn(|_| AtomicU64::new(0)),
            micros: AtomicU64::new(0),
            slow: Throttle::default(),
        }
    }

    pub(super) fn answered(&self, status: StatusCode, took: Duration) {
        let at = STATUSES.iter().position(|known| *known == status.as_u16());
        add(&self.answers, at, 1);
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let took = seconds(micros);
        let at = BUCKETS.iter().position(|bound| took <= *bound);
        add(&self.times, at, 1);
        self.micros.fetch_add(micros, Ordering::Relaxed);
    }
}

/// Adds to the counter at `at`, else to the last one.
fn add(counters: &[AtomicU64], at: Option<usize>, amount: u64) {
    let last = counters.len().saturating_sub(1);
    if let Some(counter) = counters.get(at.unwrap_or(last)) {
        counter.fetch_add(amount, Ordering::Relaxed);
    }
}

impl HttpMetrics {
    pub(super) fn new(routes: &[Route]) -> Self {
        let routes = routes.iter().copied().map(RouteMetrics::new).collect();
        Self { routes }
    }

    /// Returns the counters of the route at this place of the table.
    pub(super) fn route(&self, at: usize) -> Option<&RouteMetrics> {
        self.routes.get(at)
    }
}

impl Collector for HttpMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), std::fmt::Error> {
        let (name, help) = ("soldonce_http_requests", "Answers by route and status");
        let mut answers = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        for route in &self.routes {
            route.encode_answers(&mut answers)?;
        }
        let name = "soldonce_http_request_seconds";
        let help = "Time of requests until their answer's head";
        let mut times = encoder.encode_descriptor(name, help, None, MetricType::Histogram)?;
        for route in &self.routes {
            route.encode_times(&mut times)?;
        }
        Ok(())
    }
}

/// When the certificate of the listeners ends, if they have one.
#[derive(Debug)]
pub(super) struct CertificateEnd(pub(super) Option<Listener>);

impl Collector for CertificateEnd {
    fn encode(&self, mut to: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let name = "soldonce_tls_certificate_not_after_timestamp_seconds";
        let help = "When the server's certificate ends, seconds since 1970";
        let metric = to.encode_descriptor(name, help, None, MetricType::Gauge)?;
        match self.0.as_ref().and_then(Listener::ends_at) {
            Some(end) => ConstGauge::new(end).encode(metric),
            None => Ok(()),
        }
    }
}

impl RouteMetrics {
    fn encode_answers(&self, to: &mut MetricEncoder<'_>) -> Result<(), std::fmt::Error> {
        let answers = self.answers.iter();
        let counts = answers.map(|count| count.load(Ordering::Relaxed));
        // A counter that began at 1 would have no increase, which an alert rests on.
        let is_told = |(at, count): &(usize, u64)| *count > 0 || STATUSES.get(*at) == Some(&500);
        for (at, count) in counts.enumerate().filter(is_told) {
            let status = STATUSES.get(at).map_or("other".to_owned(), u16::to_string);
            let labels = [("route", self.label.as_str()), ("status", status.as_str())];
            ConstCounter::new(count).encode(to.encode_family(&labels)?)?;
        }
        Ok(())
    }

    fn encode_times(&self, to: &mut MetricEncoder<'_>) -> Result<(), std::fmt::Error> {
        let counts = self.times.iter().map(|count| count.load(Ordering::Relaxed));
        let counts: Vec<u64> = counts.collect();
        let total: u64 = counts.iter().sum();
        if total == 0 {
            return Ok(());
        }
        let bounds = BUCKETS.into_iter().chain([f64::INFINITY]);
        let buckets: Vec<(f64, u64)> = bounds.zip(counts).collect();
        let sum = seconds(self.micros.load(Ordering::Relaxed));
        let labels = [("route", self.label.as_str())];
        let mut family = to.encode_family(&labels)?;
        family.encode_histogram::<NoLabelSet>(sum, total, &buckets, None)
    }
}

fn seconds(micros: u64) -> f64 {
    Duration::from_micros(micros).as_secs_f64()
}
