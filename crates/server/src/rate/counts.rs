//! What the limits did, for metrics (api.md 5). Labelled by limit, never by caller.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

use super::{HeldKind, RateKind};

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct LimitLabel {
    limit: &'static str,
}

/// Requests that were refused, and those that were not counted together with other servers'.
#[derive(Debug, Default)]
pub(crate) struct RateCounts {
    refused: Family<LimitLabel, Counter>,
    unshared: Counter,
}

impl RateCounts {
    /// Lists the counters, all of them from the first scrape on.
    pub(crate) fn register(&self, registry: &mut Registry) {
        let kinds = RateKind::WORDS.into_iter().chain(HeldKind::WORDS);
        for limit in kinds.chain([STREAMS, LEASES]) {
            self.refused.get_or_create(&LimitLabel { limit }).inc_by(0);
        }
        registry.register(
            "soldonce_rate_limited",
            "Requests refused because their caller asked too often",
            self.refused.clone(),
        );
        registry.register(
            "soldonce_rate_limits_unshared",
            "Requests let go on without knowing what other servers counted",
            self.unshared.clone(),
        );
    }

    /// Counts a refusal by the limit of this name.
    pub(crate) fn refused(&self, limit: &'static str) {
        self.refused.get_or_create(&LimitLabel { limit }).inc();
    }

    pub(crate) fn unshared(&self) {
        self.unshared.inc();
    }
}

/// The limit of open streams, by its name in headers and metrics.
pub(crate) const STREAMS: &str = "streams";
/// The limit of live leases of a key, by its name in headers and metrics.
pub(crate) const LEASES: &str = "leases";
