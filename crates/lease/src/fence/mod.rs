//! Fence sources: numbers that keep fencing tokens rising when the backend loses its data. A file
//! for one host, a row of PostgreSQL for many. `lease.md` 4.3.

mod counter;
mod file;
#[cfg(feature = "postgres")]
mod postgres;
mod record;

use crate::backend::Fut;
use crate::{EPOCH_MAX, FenceError};

pub use file::FileFence;
#[cfg(feature = "postgres")]
pub use postgres::PgFence;

/// The kinds of numbers, each with a counter of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FenceKind {
    /// Upper halves of tokens, at most [`EPOCH_MAX`]: one after each loss of data.
    Epoch,
    /// Whole tokens, from 2^32 on and below 2^53: one for each grant of a Redlock.
    Token,
}

impl FenceKind {
    /// Returns the highest number of this kind.
    pub const fn most(self) -> u64 {
        match self {
            FenceKind::Epoch => EPOCH_MAX as u64,
            FenceKind::Token => (1 << 53) - 1,
        }
    }
}

/// Gives numbers for tokens, from storage outside the backend.
///
/// A number is durable before it is returned, was never returned before for this kind and namespace, and is
/// higher than all earlier ones and than `above`.
pub trait FenceSource: Send + Sync + 'static {
    /// Takes the next number of `namespace`, which is above `above`.
    ///
    /// # Cancel safety
    /// A dropped future may use up a number; no number is ever given twice.
    fn next<'a>(
        &'a self,
        kind: FenceKind,
        namespace: &'a str,
        above: u64,
    ) -> Fut<'a, Result<u64, FenceError>>;
}

/// Takes an epoch above `above` from a source, which may be of the user: a number that is no such epoch would be asked
/// for again and again.
pub(crate) async fn next_epoch(
    source: &dyn FenceSource,
    namespace: &str,
    above: u32,
) -> Result<u32, FenceError> {
    let given = source.next(FenceKind::Epoch, namespace, above.into());
    let given = given.await?;
    let epoch = u32::try_from(given).ok();
    let epoch = epoch.filter(|&epoch| epoch > above && epoch <= EPOCH_MAX);
    epoch.ok_or_else(|| {
        FenceError::Unavailable(format!("it gave {given} when asked for more than {above}"))
    })
}
