//! Where epochs come from: a small durable number outside the backend. `lease.md` 4.3.

use crate::backend::Fut;

/// No epoch could be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EpochError {
    /// The source did not answer, or could not store the number.
    #[error("the epoch source failed: {0}")]
    Unavailable(String),
    /// All 2,097,151 epochs are used.
    #[error("no epoch is left above {above}")]
    Exhausted {
        /// The highest epoch in use.
        above: u32,
    },
}

/// Gives epochs, the upper half of fencing tokens.
///
/// The number is durable before it is returned, was never returned before, and is higher than all
/// earlier ones of the namespace and than `above`.
pub trait EpochSource: Send + Sync + 'static {
    /// The next epoch of `namespace` above `above`, at most [`crate::EPOCH_MAX`].
    ///
    /// # Cancel safety
    /// A dropped future may use up a number; no number is ever given twice.
    fn next<'a>(&'a self, namespace: &'a str, above: u32) -> Fut<'a, Result<u32, EpochError>>;
}

/// Gives whole token numbers, for Redlock: a durable sequence.
pub trait TokenSource: Send + Sync + 'static {
    /// The next number of `namespace` above `above`, below 2^53; durable and never given before.
    ///
    /// # Cancel safety
    /// A dropped future may use up a number; no number is ever given twice.
    fn next<'a>(&'a self, namespace: &'a str, above: u64) -> Fut<'a, Result<u64, EpochError>>;
}
