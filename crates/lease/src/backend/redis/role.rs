//! The connections to one server. `lease.md` 8.

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
