//! What the leases of strategies `lease` and `redlock` come to (lease.md 2.4). Never labelled by name.

use std::fmt::Error;
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use soldonce_lease::{Locks, Stats};

use super::seconds;

/// What became of a wish for a lease, and where.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WaitLabel {
    backend: &'static str,
    outcome: &'static str,
}

/// The metrics of the leases that a strategy takes.
#[derive(Debug)]
pub(super) struct LeaseMetrics {
    locks: Locks,
    wait_seconds: Family<WaitLabel, Histogram, fn() -> Histogram>,
}

impl LeaseMetrics {
    pub(super) fn new(locks: Locks) -> Self {
        Self {
            locks,
            wait_seconds: Family::new_with_constructor(seconds),
        }
    }

    /// Makes them part of a registry, under their whole names.
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register(
            "soldonce_lease_wait_seconds",
            "Time until a wish for a lease had its answer",
            self.wait_seconds.clone(),
        );
        registry.register_collector(Box::new(Counted(self.locks.clone())));
    }

    /// A wish for a lease ended so, after so long.
    pub(super) fn leased(&self, outcome: &'static str, took: Duration) {
        let backend = self.locks.facts().kind.as_str();
        let label = WaitLabel { backend, outcome };
        let seconds = took.as_secs_f64();
        self.wait_seconds.get_or_create(&label).observe(seconds);
    }
}

/// What the lease library counts itself, read when it is asked for.
#[derive(Debug)]
struct Counted(Locks);

impl Collector for Counted {
    fn encode(&self, mut to: DescriptorEncoder<'_>) -> Result<(), Error> {
        let stats = self.0.stats();
        let live = i64::try_from(stats.live).unwrap_or(i64::MAX);
        let (name, help) = ("soldonce_leases_live", "Leases held now");
        let gauge = to.encode_descriptor(name, help, None, MetricType::Gauge)?;
        ConstGauge::new(live).encode(gauge)?;
        let (name, help) = ("soldonce_lease_held_seconds", "Time that leases were held");
        let seconds = Duration::from_millis(stats.held_ms).as_secs_f64();
        let counter = to.encode_descriptor(name, help, None, MetricType::Counter)?;
        ConstCounter::new(seconds).encode(counter)?;
        for (name, help, count) in single(&stats) {
            let counter = to.encode_descriptor(name, help, None, MetricType::Counter)?;
            ConstCounter::new(count).encode(counter)?;
        }
        for (name, help, label, counts) in by_label(&stats) {
            let mut family = to.encode_descriptor(name, help, None, MetricType::Counter)?;
            for (value, count) in counts {
                let labels = [(label, value)];
                let counter = family.encode_family(&labels)?;
                ConstCounter::new(count).encode(counter)?;
            }
        }
        Ok(())
    }
}

/// Counters without a label.
fn single(stats: &Stats) -> [(&'static str, &'static str, u64); 2] {
    [
        (
            "soldonce_lease_renew_failures",
            "Renewals without an answer",
            stats.renew_failures,
        ),
        (
            "soldonce_lease_link_rebuilds",
            "Connections to lease servers that were replaced",
            stats.link_rebuilds,
        ),
    ]
}

/// Counters, each with the name of its label and its values.
type Labelled<'a> = (&'a str, &'a str, &'a str, Vec<(&'a str, u64)>);

fn by_label(stats: &Stats) -> [Labelled<'static>; 2] {
    [
        (
            "soldonce_leases_lost",
            "Leases that ended before their holder gave them back",
            "reason",
            vec![
                ("deadline", stats.lost_deadline),
                ("gone", stats.lost_gone),
                ("taken", stats.lost_taken),
                ("cap", stats.lost_cap),
                ("overtaken", stats.lost_overtaken),
            ],
        ),
        (
            "soldonce_lease_unknown",
            "Calls that may have run, without an answer",
            "op",
            vec![
                ("acquire", stats.unknown_acquire),
                ("renew", stats.unknown_renew),
                ("release", stats.unknown_release),
            ],
        ),
    ]
}
