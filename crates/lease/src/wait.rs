//! How long an acquire waits for a lease that another owner holds.

use std::time::Duration;

/// How long to wait for a lease that another owner holds. It is unrelated to the ttl.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Tries once, and a second time if the first got no answer.
    No,
    /// For this long. A call that is under way at the end is waited for, at most the call time-out,
    /// and as long as the replicas of the request may take. A wait that is shorter than a call and whose only try was
    /// not sent tries once more.
    UpTo(Duration),
    /// Until it is granted or the future is dropped.
    Forever,
}

impl Wait {
    /// Waits for `span`; zero is no wait.
    pub(crate) fn up_to(span: Duration) -> Self {
        if span.is_zero() {
            Self::No
        } else {
            Self::UpTo(span)
        }
    }
}
