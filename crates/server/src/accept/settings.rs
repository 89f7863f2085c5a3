//! What an operator may set of the accept loop. The bounds that only a change of code may move are
//! constants in `limits.rs`.

use std::sync::Arc;
use std::time::Duration;

use soldonce_clock::{Clock, SystemClock};
use soldonce_tls::Listener;

use super::ConnectionCounts;
use crate::limits::{
    CONNECTION_IDLE_MS_MAX, CONNECTIONS_MAX, CONNECTIONS_PER_ADDRESS_MAX, DRAIN_MS_MAX,
    HEADER_READ_MS_MAX, WATCH_MS_MAX, WATCH_MS_MIN, WATCHES_PER_WAIT, WRITE_STALL_MS_MAX,
};
use crate::rate::Network;

/// Bounds of the accept loop. The default is what a server on the open internet should have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AcceptLimits {
    /// Most connections at once; default [`CONNECTIONS_MAX`].
    pub connections_max: usize,
    /// Most connections at once of one address (IPv6: of one /64 network) that is no trusted proxy;
    /// default [`CONNECTIONS_PER_ADDRESS_MAX`].
    pub connections_per_address_max: usize,
    /// Longest wait for a whole request head, milliseconds; default [`HEADER_READ_MS_MAX`].
    pub header_read_ms: u64,
    /// Longest silence between two requests, milliseconds; default [`CONNECTION_IDLE_MS_MAX`].
    pub idle_ms: u64,
    /// Longest time a peer may leave an answer unread, milliseconds; default
    /// [`WRITE_STALL_MS_MAX`].
    pub write_stall_ms: u64,
    /// Longest wait for requests in flight at shutdown, milliseconds; default [`DRAIN_MS_MAX`].
    pub drain_ms: u64,
}

impl Default for AcceptLimits {
    fn default() -> Self {
        Self {
            connections_max: CONNECTIONS_MAX,
            connections_per_address_max: CONNECTIONS_PER_ADDRESS_MAX,
            header_read_ms: HEADER_READ_MS_MAX,
            idle_ms: CONNECTION_IDLE_MS_MAX,
            write_stall_ms: WRITE_STALL_MS_MAX,
            drain_ms: DRAIN_MS_MAX,
        }
    }
}

/// What an accept loop works with: its bounds, and what a test may set besides.
#[derive(Clone)]
pub struct AcceptSettings {
    /// The bounds.
    pub limits: AcceptLimits,
    /// Peers whose connections are not counted by address; default none.
    pub trusted_proxies: Vec<Network>,
    /// The clock that waits are measured with; default the system's.
    pub clock: Arc<dyn Clock>,
    /// TLS for the connections; default none.
    pub tls: Option<Listener>,
    /// Counters of the connections; the default ones are in no registry.
    pub counts: ConnectionCounts,
}

impl From<AcceptLimits> for AcceptSettings {
    fn from(limits: AcceptLimits) -> Self {
        Self {
            limits,
            trusted_proxies: Vec::new(),
            tls: None,
            clock: Arc::new(SystemClock),
            counts: ConnectionCounts::default(),
        }
    }
}

impl AcceptLimits {
    /// Returns how often connections are looked at: several times within the shortest wait.
    pub(crate) fn watch_period(&self) -> Duration {
        let shortest = self.header_read_ms.min(self.idle_ms);
        let shortest = shortest.min(self.write_stall_ms);
        Duration::from_millis((shortest / WATCHES_PER_WAIT).clamp(WATCH_MS_MIN, WATCH_MS_MAX))
    }
}
