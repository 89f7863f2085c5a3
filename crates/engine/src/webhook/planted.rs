//! Bugs planted on purpose in the delivery of webhooks, so that a receiver can be seen to catch them
//! (assurance.md 6). Without the feature `planted` none can be chosen and the checks vanish.

/// A bug that can be planted in the delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlantedWebhook {
    /// The signature is over the body alone.
    SignsBodyAlone,
    /// An attempt that failed is taken for the last one.
    LosesFailures,
    /// What an endpoint asks for in `Retry-After` is not heard.
    IgnoresRetryAfter,
    /// What follows does not wait for what went before. In the ledger in memory.
    Unordered,
}

impl PlantedWebhook {
    /// Every planted bug.
    pub const ALL: [Self; 4] = [
        Self::SignsBodyAlone,
        Self::LosesFailures,
        Self::IgnoresRetryAfter,
        Self::Unordered,
    ];
}
