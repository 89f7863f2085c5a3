//! Counters, none by name: names are unbounded. With feature `metrics` each is also a metric.

#[cfg(feature = "metrics")]
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

#[cfg(feature = "metrics")]
use metrics::Label;

/// A count of events, which only grows.
#[derive(Debug, Default)]
pub(crate) struct Counter {
    value: AtomicU64,
    #[cfg(feature = "metrics")]
    metric: OnceLock<metrics::Counter>,
}

impl Counter {
    pub(crate) fn add(&self, count: u64) {
        self.value.fetch_add(count, Ordering::Relaxed);
        #[cfg(feature = "metrics")]
        if let Some(metric) = self.metric.get() {
            metric.increment(count);
        }
    }

    fn get(&self) -> u64 {
        self.value.load(Ordering::Relaxed)
    }

    #[cfg(feature = "metrics")]
    fn register(&self, name: &'static str, labels: Vec<Label>) {
        self.metric.set(metrics::counter!(name, labels)).ok();
    }
}

/// A number that rises and falls: a gauge.
#[derive(Debug, Default)]
pub(crate) struct Level {
    value: AtomicU64,
    #[cfg(feature = "metrics")]
    metric: OnceLock<metrics::Gauge>,
}

impl Level {
    pub(crate) fn set(&self, count: usize) {
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        let before = self.value.swap(count, Ordering::Relaxed);
        #[cfg(feature = "metrics")]
        if let Some(metric) = self.metric.get() {
            // Other leases of the process may have the same gauge.
            let change = u32::try_from(count.abs_diff(before)).unwrap_or(u32::MAX);
            if count < before {
                metric.decrement(change);
            } else {
                metric.increment(change);
            }
        }
        #[cfg(not(feature = "metrics"))]
        let _: u64 = before;
    }

    fn get(&self) -> u64 {
        self.value.load(Ordering::Relaxed)
    }

    #[cfg(feature = "metrics")]
    fn register(&self, name: &'static str, labels: Vec<Label>) {
        self.metric.set(metrics::gauge!(name, labels)).ok();
    }
}

/// A sum of spans, in microseconds.
#[derive(Debug, Default)]
pub(crate) struct Time {
    micros: AtomicU64,
    #[cfg(feature = "metrics")]
    metric: OnceLock<metrics::Histogram>,
}

impl Time {
    pub(crate) fn add(&self, span: Duration) {
        let micros = u64::try_from(span.as_micros()).unwrap_or(u64::MAX);
        self.micros.fetch_add(micros, Ordering::Relaxed);
        #[cfg(feature = "metrics")]
        if let Some(metric) = self.metric.get() {
            metric.record(span);
        }
    }

    fn get(&self) -> Duration {
        Duration::from_micros(self.micros.load(Ordering::Relaxed))
    }

    #[cfg(feature = "metrics")]
    fn register(&self, name: &'static str, labels: Vec<Label>) {
        self.metric.set(metrics::histogram!(name, labels)).ok();
    }
}

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident: $kind:ident -> $value:ty = $metric:literal $($label:ident $is:literal)?;)*) => {
        #[derive(Debug, Default)]
        pub(crate) struct Counters {
            $(pub(crate) $name: $kind,)*
        }

        /// The counters since the leases were connected. `lease.md` 2.4.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Stats {
            $($(#[$doc])* pub $name: $value,)*
        }

        impl Counters {
            pub(crate) fn read(&self) -> Stats {
                Stats {
                    $($name: self.$name.get(),)*
                }
            }

            /// Registers them as metrics with the recorder of the process.
            #[cfg(feature = "metrics")]
            pub(crate) fn register(&self, backend: crate::backend::Kind) {
                let backend = Label::new("backend", backend.as_str());
                $(
                    let labels = vec![backend.clone(), $(Label::new(stringify!($label), $is))?];
                    self.$name.register($metric, labels);
                )*
            }
        }
    };
}

counters! {
    /// Leases held now.
    live: Level -> u64 = "soldonce_leases_live";
    /// Leases granted.
    acquired: Counter -> u64 = "soldonce_lease_requests_total" outcome "acquired";
    /// Requests that ended refused, or timed out refused.
    refused: Counter -> u64 = "soldonce_lease_requests_total" outcome "refused";
    /// Requests that ended without the backend's answer, or with an error.
    failed: Counter -> u64 = "soldonce_lease_requests_total" outcome "failed";
    /// How long all ended requests took together.
    wait: Time -> Duration = "soldonce_lease_wait_seconds";
    /// Leases released by their holders, and not ended before.
    released: Counter -> u64 = "soldonce_lease_releases_total";
    /// How long all released leases were held together; those of holders elsewhere are left out.
    held: Time -> Duration = "soldonce_lease_held_seconds";
    /// Renewals confirmed.
    renewed: Counter -> u64 = "soldonce_lease_renewals_total";
    /// Renewals without the backend's answer.
    renew_failures: Counter -> u64 = "soldonce_lease_renew_failures_total";
    /// Leases lost because the deadline passed.
    lost_deadline: Counter -> u64 = "soldonce_leases_lost_total" reason "deadline";
    /// Leases lost because the backend did not know them.
    lost_gone: Counter -> u64 = "soldonce_leases_lost_total" reason "gone";
    /// Leases lost to another owner.
    lost_taken: Counter -> u64 = "soldonce_leases_lost_total" reason "taken";
    /// Leases lost at their cap.
    lost_cap: Counter -> u64 = "soldonce_leases_lost_total" reason "cap";
    /// Leases lost because the target had seen a higher token: stale writes.
    lost_overtaken: Counter -> u64 = "soldonce_leases_lost_total" reason "overtaken";
    /// Acquire commands that may have run.
    unknown_acquire: Counter -> u64 = "soldonce_lease_unknown_total" op "acquire";
    /// Renewals that may have run.
    unknown_renew: Counter -> u64 = "soldonce_lease_unknown_total" op "renew";
    /// Releases that may have run.
    unknown_release: Counter -> u64 = "soldonce_lease_unknown_total" op "release";
    /// Grants whose callers had gone away, released.
    orphans: Counter -> u64 = "soldonce_lease_orphans_total";
    /// Releases that the backend never answered, left to the ttl.
    left_to_ttl: Counter -> u64 = "soldonce_lease_left_to_ttl_total";
    /// Connections to the backend that were replaced.
    link_rebuilds: Counter -> u64 = "soldonce_lease_link_rebuilds_total";
}

/// The outcome of a shutdown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Drained {
    /// Releases that the backend has answered; a group counts as one.
    pub released: u64,
    /// Leases, and what acquires may have left, that end only by their ttl. A group counts as one.
    pub left_to_ttl: u64,
}
