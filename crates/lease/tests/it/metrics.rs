//! Counters as a recorder of the `metrics` crate sees them. It is the recorder of its process, which is that of one
//! test: nextest gives every test one.

#![expect(
    clippy::float_arithmetic,
    reason = "the facade records floating-point numbers"
)]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder,
    SharedString, Unit,
};
use soldonce_lease::Leases;

/// What was recorded, by name and labels.
#[derive(Clone, Default)]
struct Recorded(Arc<Mutex<BTreeMap<String, f64>>>);

impl Recorded {
    fn metric(&self, key: &Key) -> Arc<Metric> {
        let labels = key
            .labels()
            .map(|label| format!(" {}={}", label.key(), label.value()));
        let name = key.name().to_owned() + &labels.collect::<String>();
        Arc::new(Metric(self.clone(), name))
    }

    /// Those that are not 0.
    fn read(&self) -> Vec<(String, f64)> {
        let recorded = self.0.lock().unwrap().clone();
        recorded
            .into_iter()
            .filter(|(_, value)| *value > 0.0)
            .collect()
    }
}

/// Each thing that leases add to it.
struct Metric(Recorded, String);

impl Metric {
    fn change(&self, by: f64) {
        let mut recorded = self.0.0.lock().unwrap();
        let value = recorded.entry(self.1.clone()).or_default();
        *value += by;
    }
}

impl CounterFn for Metric {
    fn increment(&self, value: u64) {
        self.change(u32::try_from(value).unwrap().into());
    }

    fn absolute(&self, _: u64) {
        panic!("other leases may have the same counter");
    }
}

impl GaugeFn for Metric {
    fn increment(&self, value: f64) {
        self.change(value);
    }

    fn decrement(&self, value: f64) {
        self.change(-value);
    }

    fn set(&self, _: f64) {
        panic!("other leases may have the same gauge");
    }
}

/// Sums up seconds.
impl HistogramFn for Metric {
    fn record(&self, value: f64) {
        self.change(value);
    }
}

impl Recorder for Recorded {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.metric(key))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.metric(key))
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(self.metric(key))
    }
}

#[tokio::test]
async fn counters_are_metrics() {
    let recorded = Recorded::default();
    metrics::set_global_recorder(recorded.clone()).ok().unwrap();
    let (one, other) = (Leases::memory().connect(), Leases::memory().connect());
    let (one, other) = (one.await.unwrap(), other.await.unwrap());
    let first = one.lease("a").try_acquire().await.unwrap().unwrap();
    assert!(one.lease("a").try_acquire().await.unwrap().is_none());
    let second = other.lease("a").try_acquire().await.unwrap().unwrap();
    let counts = |recorded: &Recorded| {
        let counts = recorded.read().into_iter();
        counts
            .filter(|(name, _)| !name.contains("_seconds"))
            .collect::<Vec<_>>()
    };
    let requests = |outcome, count| {
        let name = format!("soldonce_lease_requests_total backend=memory outcome={outcome}");
        (name, count)
    };
    let live = |count| ("soldonce_leases_live backend=memory".to_owned(), count);
    let asked = [requests("acquired", 2.0), requests("refused", 1.0)];
    assert_eq!(counts(&recorded), [&asked[..], &[live(2.0)]].concat());
    first.release().await.unwrap();
    let released = (
        "soldonce_lease_releases_total backend=memory".to_owned(),
        1.0,
    );
    let now = [&[released], &asked[..], &[live(1.0)]].concat();
    assert_eq!(counts(&recorded), now);
    let seconds: BTreeMap<_, _> = recorded.read().into_iter().collect();
    for (name, is) in [
        ("held", one.stats().held),
        ("wait", one.stats().wait + other.stats().wait),
    ] {
        let sum = seconds[&format!("soldonce_lease_{name}_seconds backend=memory")];
        let sum = Duration::from_secs_f64(sum);
        assert!(
            sum.abs_diff(is) < Duration::from_micros(10),
            "{name}: {sum:?} and {is:?}"
        );
        assert!(is > Duration::ZERO, "{name} takes time");
    }
    drop(second);
}
