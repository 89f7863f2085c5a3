//! What the listeners count, for metrics.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// The connections of all listeners.
#[derive(Clone, Debug, Default)]
pub struct ConnectionCounts {
    /// Open now.
    pub(super) open: Gauge,
    pub(super) closed_early: Family<WhyLabel, Counter>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct WhyLabel {
    why: &'static str,
}

/// Its address had as many as it may.
pub(super) const ADDRESS: WhyLabel = WhyLabel { why: "address" };
/// It was idle, or kept the body of its request back, while another one waited for room.
pub(super) const ROOM: WhyLabel = WhyLabel { why: "room" };

impl ConnectionCounts {
    /// Lists the counters, all of them from the first scrape on.
    pub(crate) fn register(&self, registry: &mut Registry) {
        for why in [ADDRESS, ROOM] {
            self.closed_early.get_or_create(&why).inc_by(0);
        }
        registry.register(
            "soldonce_connections",
            "Connections that are open",
            self.open.clone(),
        );
        registry.register(
            "soldonce_connections_closed_early",
            "Connections that a limit ended: of their address, or of all for one that waited",
            self.closed_early.clone(),
        );
    }

    pub(super) fn closed_early(&self, why: &WhyLabel) {
        self.closed_early.get_or_create(why).inc();
    }
}
