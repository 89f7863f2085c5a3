//! What a backend on Redis needs beside the address of its server.

use std::sync::Arc;
use std::time::Duration;

use crate::{Clock, FenceSource, Namespace, Notices};

/// What a backend on Redis needs beside the address of its server.
#[derive(Clone)]
pub struct RedisSettings {
    /// Keeps the leases of one application apart from all others on the server.
    pub namespace: Namespace,
    /// Whether grants have tokens. Without them a grant costs the server less, and needs no `INFO` inside
    /// scripts.
    pub fenced: bool,
    /// Where epochs come from; without a source tokens follow the server's clock.
    pub fence: Option<Arc<dyn FenceSource>>,
    /// Longest wait for one answer, connecting included.
    pub call_timeout: Duration,
    /// Paces reconnection.
    pub clock: Arc<dyn Clock>,
    /// Where installed epochs and replaced connections are told.
    pub notices: Notices,
    /// The file of a script, and another text for it: a test must see that a wrong one fails.
    #[cfg(all(feature = "test-kit", debug_assertions))]
    pub script: Option<(&'static str, String)>,
}

impl RedisSettings {
    /// Settings of `namespace`: tokens by the server's clock, 500 ms for a call, the machine's clock.
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
