//! The settings of a Redlock: its nodes, and how long a restarted node does not vote.

use std::time::Duration;

use crate::backend::redis::RedisConfig;

/// The default of [`RedlockConfig::ttl_longest`].
const TTL_LONGEST: Duration = Duration::from_mins(1);

/// The nodes of a Redlock: 3, 5 or 7 independent primaries without replicas. Every process must
/// name the same nodes and the same longest ttl.
#[derive(Clone, Debug)]
pub struct RedlockConfig {
    pub(super) nodes: Vec<RedisConfig>,
    pub(super) ttl_longest: Duration,
    pub(super) sit_out: Duration,
}

impl RedlockConfig {
    /// Creates a Redlock of `nodes`. No ttl may be longer than a minute unless
    /// [`RedlockConfig::ttl_longest`] allows it.
    pub fn new(nodes: Vec<RedisConfig>) -> Self {
        Self {
            nodes,
            ttl_longest: TTL_LONGEST,
            sit_out: TTL_LONGEST,
        }
    }

    /// Sets the longest ttl that any process asks for. A node that started more recently grants
    /// nothing: it may have forgotten a lease that is alive. So this is also how long new nodes
    /// take until they vote.
    #[must_use]
    pub fn ttl_longest(mut self, longest: Duration) -> Self {
        self.ttl_longest = longest;
        self.sit_out = longest;
        self
    }

    /// Lets a restarted node vote after `span`, however long a lease may live. For tests.
    #[cfg(feature = "test-kit")]
    #[must_use]
    pub fn sit_out(mut self, span: Duration) -> Self {
        self.sit_out = span;
        self
    }
}

impl<I: IntoIterator<Item: Into<RedisConfig>>> From<I> for RedlockConfig {
    fn from(nodes: I) -> Self {
        Self::new(nodes.into_iter().map(Into::into).collect())
    }
}
