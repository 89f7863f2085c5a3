//! What every handler shares.

use std::sync::Arc;

use prometheus_client::registry::Registry;
use soldonce_clock::Clock;
use soldonce_engine::Engine;
use soldonce_engine::reply::Rfc3339;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::files::Files;
use super::frames::Hubs;
use super::leases::LiveLeases;
use super::metrics::{CertificateEnd, HttpMetrics};
use super::rendered::Rendered;
use super::request_id::RequestIds;
use super::route::Route;
use super::streams::Streams;
use crate::accept::ConnectionCounts;
use crate::leases::LeaseBackend;
use crate::rate::Rates;
use crate::settings::{Access, ServerSettings};
use crate::throttle::Throttle;

/// The server's parts. One per server, shared by all requests.
pub(super) struct App {
    pub(super) engine: Engine,
    pub(super) settings: ServerSettings,
    pub(super) shutdown: CancellationToken,
    pub(super) request_ids: RequestIds,
    pub(super) metrics: Arc<HttpMetrics>,
    pub(super) registry: Registry,
    pub(super) snapshots: Rendered,
    pub(super) charts: Rendered,
    pub(super) streams: Arc<Streams>,
    pub(super) feeds: Hubs,
    pub(super) rates: Rates,
    pub(super) leases: LeaseBackend,
    pub(super) live_leases: Arc<LiveLeases>,
    pub(super) files: Files,
    pub(super) false_notices: Throttle,
    pub(super) lease_faults: Throttle,
    pub(super) connections: ConnectionCounts,
    /// Commands that run to their end though their callers hang up.
    pub(super) commands: TaskTracker,
}

impl App {
    pub(super) fn new(
        engine: Engine,
        settings: ServerSettings,
        shutdown: CancellationToken,
        routes: &[Route],
    ) -> Self {
        let metrics = Arc::new(HttpMetrics::new(routes));
        let mut registry = Registry::default();
        engine.metrics().register(&mut registry);
        registry.register_collector(Box::new(Arc::clone(&metrics)));
        let rates = Rates::new(settings.rates.clone());
        rates.counts.register(&mut registry);
        let connections = ConnectionCounts::default();
        connections.register(&mut registry);
        let clock = Arc::clone(&engine.world().clock);
        let leases = LeaseBackend::new(Arc::clone(&settings.leases.place), Arc::clone(&clock));
        let live_leases = Arc::new(LiveLeases::new(clock, settings.leases.live_max));
        registry.register_collector(Box::new(Arc::clone(&live_leases)));
        registry.register_collector(Box::new(CertificateEnd(settings.tls.clone())));
        Self {
            request_ids: RequestIds::new(engine.ids()),
            metrics,
            registry,
            snapshots: Rendered::default(),
            charts: Rendered::default(),
            streams: Arc::new(Streams::new(settings.streams)),
            feeds: Hubs::default(),
            rates,
            leases,
            live_leases,
            files: Files::load(settings.feed.page),
            false_notices: Throttle::default(),
            lease_faults: Throttle::default(),
            connections,
            commands: TaskTracker::new(),
            engine,
            settings,
            shutdown,
        }
    }

    /// Tells whether shoppers are let in.
    pub(super) fn is_open(&self) -> bool {
        self.settings.shoppers == Access::Open
    }

    pub(super) fn clock(&self) -> &Arc<dyn Clock> {
        &self.engine.world().clock
    }

    /// Returns the ledger's time as the API writes it.
    pub(super) fn server_time(&self) -> Rfc3339 {
        Rfc3339(self.engine.now())
    }
}
