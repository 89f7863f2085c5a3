//! How long an acquire waits.

use std::time::Duration;

/// How long to wait for a lease that another holds. It has nothing to do with the ttl.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Tries once, and a second time if the first stayed without an answer.
    No,
    /// So long. A question that is under way at the end is waited for, at most the call timeout, and
    /// as long as the replicas of the request may take.
    UpTo(Duration),
    /// Until it is granted or the future is dropped.
    Forever,
}
