//! What a backend on Redis needs beside the address of its server.

use std::sync::Arc;
use std::time::Duration;

use super::keys;
use crate::{Clock, EpochSource, Namespace, Notices};

/// What a backend on Redis needs beside the address of its server.
pub struct RedisSettings {
    /// Keeps the leases of one application apart from all others on the server.
    pub namespace: Namespace,
    /// Into how many slots the names of the namespace spread, 1 to 256. Every process of a
    /// namespace must use the same number. Default 64.
    pub shards: u16,
    /// Where epochs come from; `None` gives unanchored tokens.
    pub epochs: Option<Arc<dyn EpochSource>>,
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
    /// Settings of `namespace`: 64 shards, no epochs, 500 ms for a call, the machine's clock.
    pub fn new(namespace: Namespace) -> Self {
        Self {
            namespace,
            shards: keys::SHARDS,
            epochs: None,
            call_timeout: Duration::from_millis(500),
            clock: Arc::new(crate::SystemClock),
            notices: Notices::default(),
            #[cfg(all(feature = "test-kit", debug_assertions))]
            script: None,
        }
    }
}
