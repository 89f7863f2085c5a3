//! The connections to one server, and the report that one was replaced. `lease.md` 8.

use crate::Notices;
use crate::backend::Kind;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectionRole {
    /// All calls that have no reason to take another.
    Main,
    /// Renewals: no slow call delays them.
    Renew,
    /// Grants that wait for replicas: `WAIT` blocks all calls behind it, and counts only the writes
    /// of its own connection.
    Durable,
}

impl ConnectionRole {
    /// Returns the word for it in logs and notices.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            ConnectionRole::Main => "calls",
            ConnectionRole::Renew => "renewals",
            ConnectionRole::Durable => "durable grants",
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Replaced {
    kind: Kind,
    notices: Notices,
}

impl Replaced {
    pub(super) fn new(kind: Kind, notices: &Notices) -> Self {
        let notices = notices.clone();
        Self { kind, notices }
    }

    /// Reports `which` connection, and where it leads to or why it was replaced.
    pub(super) fn tell(&self, which: &str) {
        // Many callers share the connection, so the event is in no span of one of them.
        tracing::warn!(parent: None, backend = self.kind.as_str(), which, "connection replaced");
        self.notices.link_rebuilt(self.kind, which);
    }
}
