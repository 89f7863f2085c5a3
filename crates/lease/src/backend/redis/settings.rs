//! What a backend on Redis needs beside the address of its server.

use std::sync::Arc;
use std::time::Duration;

use super::keys;
#[cfg(all(feature = "test-kit", debug_assertions))]
use super::planted::{self, PlantedInRedis};
use super::script::Scripts;
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
    /// A bug for tests to catch.
    #[cfg(all(feature = "test-kit", debug_assertions))]
    pub planted: Option<PlantedInRedis>,
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
            planted: None,
        }
    }

    /// The scripts to send.
    #[cfg(all(feature = "test-kit", debug_assertions))]
    pub(super) fn scripts(&self) -> &'static Scripts {
        planted::scripts(self.planted.as_ref())
    }

    /// The scripts to send.
    #[cfg(not(all(feature = "test-kit", debug_assertions)))]
    #[expect(clippy::unused_self, reason = "the same call with planted bugs")]
    pub(super) fn scripts(&self) -> &'static Scripts {
        Scripts::shipped()
    }

    /// Whether connections to silent shards of a cluster are replaced.
    #[cfg(all(feature = "cluster", feature = "test-kit", debug_assertions))]
    pub(super) fn watches(&self) -> bool {
        self.planted != Some(PlantedInRedis::NoWatchdog)
    }

    /// Whether connections to silent shards of a cluster are replaced.
    #[cfg(all(feature = "cluster", not(all(feature = "test-kit", debug_assertions))))]
    #[expect(clippy::unused_self, reason = "the same call with planted bugs")]
    pub(super) fn watches(&self) -> bool {
        true
    }
}
