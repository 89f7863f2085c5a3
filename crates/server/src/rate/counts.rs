//! What the limits did, for metrics (api.md 5). Labelled by limit, never by caller.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

use super::RateKind;

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
        let streams = [STREAMS].into_iter();
        for limit in RateKind::ALL
            .map(RateKind::as_str)
            .into_iter()
            .chain(streams)
        {
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

    pub(crate) fn refused(&self, kind: RateKind) {
        let limit = kind.as_str();
        self.refused.get_or_create(&LimitLabel { limit }).inc();
    }

    /// A feed stream was refused because its address has as many as it may.
    pub(crate) fn refused_stream(&self) {
        let limit = STREAMS;
        self.refused.get_or_create(&LimitLabel { limit }).inc();
    }

    pub(crate) fn unshared(&self) {
        self.unshared.inc();
    }
}

const STREAMS: &str = "streams";
