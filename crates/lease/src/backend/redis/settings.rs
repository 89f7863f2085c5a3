//! The settings of a backend on Redis, without the address of its server.

use std::sync::Arc;
use std::time::Duration;

use crate::{Clock, FenceSource, Namespace, Notices};

/// The settings of a backend on Redis, without the address of its server.
#[derive(Clone)]
pub struct RedisSettings {
    /// Keeps the leases of one application apart from all others on the server.
    pub namespace: Namespace,
    /// Whether grants have tokens. Without them a grant costs the server less, and needs no `INFO` inside
    /// scripts.
    pub fenced: bool,
    /// The source of epochs; without one tokens follow the server's clock.
    pub fence: Option<Arc<dyn FenceSource>>,
    /// Longest wait for one answer, connecting included.
    pub call_timeout: Duration,
    /// The clock that paces reconnects.
    pub clock: Arc<dyn Clock>,
    /// Receives the notices of installed epochs and replaced connections.
    pub notices: Notices,
    /// Another text for the script in this file: a test must see that a wrong script fails.
    #[cfg(all(feature = "test-kit", debug_assertions))]
    pub script: Option<(&'static str, String)>,
}

impl RedisSettings {
    /// Creates settings: tokens by the server's clock, 500 ms for a call, the system's clock.
    pub fn new(namespace: Namespace) -> Self {
        Self {
            namespace,
            fenced: true,
            fence: None,
            call_timeout: Duration::from_millis(500),
            clock: Arc::new(crate::SystemClock),
            notices: Notices::default(),
            #[cfg(all(feature = "test-kit", debug_assertions))]
            script: None,
        }
    }
}
