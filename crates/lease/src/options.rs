//! The choices of a request. `lease.md` 2.1.

use std::time::Duration;

/// How long a lease may live with all renewals. The backend enforces it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cap {
    /// So long from the grant; at least the ttl, at most 30 days.
    After(Duration),
    /// For ever. A stuck task then holds the lease until its process ends.
    None,
}

/// How long to wait for a lease that another holds. It has nothing to do with the ttl.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wait {
    /// Tries once, and returns the refusal.
    No,
    /// So long. A question that is under way at the end is waited for, at most the call timeout, and
    /// as long as [`crate::Durability::Replicas`] says.
    UpTo(Duration),
    /// Until it is granted or the future is dropped.
    Forever,
}

/// Who renews.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, Default, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Renew {
    /// The lease thread, every third of the ttl.
    #[default]
    Auto,
    /// The holder, with [`crate::Lease::renew`].
    Manual,
}
