//! What load to put on which server.

use std::net::SocketAddr;
use std::time::Duration;

use crate::limits::LOAD_SECONDS_MAX;

/// One load run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LoadPlan {
    /// The server.
    pub(crate) address: SocketAddr,
    /// Connections, each with at most one request in flight.
    pub(crate) connections: u32,
    /// When requests are sent.
    pub(crate) pace: Pace,
    /// When no more are sent.
    pub(crate) until: Until,
}

/// When requests are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    /// Closed loop: as soon as the connection's last answer is there.
    Closed,
    /// Open loop: at equal distances, that many per second over all connections, whichever is free.
    Open(u64),
}

/// When no more requests are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Until {
    /// That many were.
    Requests(u64),
    /// That much time has passed.
    Elapsed(Duration),
}

impl Until {
    /// The longest that a load may take before its overtime begins.
    pub(crate) fn longest(self) -> Duration {
        match self {
            Until::Requests(_) => Duration::from_secs(LOAD_SECONDS_MAX),
            Until::Elapsed(span) => span,
        }
    }
}
