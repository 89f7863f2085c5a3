//! Numbers of one host, in a folder.

use std::path::PathBuf;
use std::sync::Arc;

use super::counter::DurableCounter;
use crate::backend::Fut;
use crate::{Clock, FenceError, FenceKind, FenceSource, Namespace};

/// A [`FenceSource`] for the processes of one host: a folder with a file for each namespace and kind of number.
///
/// A number is written to a temporary file, synced, renamed over the old one, and the folder is
/// synced, before the number is returned. A lock file lets one process at a time do that. A file
/// that is damaged is an error, never a reason to begin at 1 again; [`FileFence::repair`] repairs
/// it. Must not lie on a network file system, and is of no use to processes of other hosts.
///
/// ```
/// use soldonce_lease::{FileFence, Leases};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = std::env::temp_dir().join(format!("soldonce-doc-fence-{}", std::process::id()));
/// let before = Leases::memory().fence(FileFence::new(&folder)).connect().await?;
/// let old = before.lease("job").acquire().await?.token()?;
/// // The process starts again, and its memory begins with nothing.
/// let after = Leases::memory().fence(FileFence::new(&folder)).connect().await?;
/// let new = after.lease("job").acquire().await?.token()?;
/// assert!(new > old);
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct FileFence(DurableCounter);

impl FileFence {
    /// Numbers kept in `folder`, which is made when the first one is asked for.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self(DurableCounter::new(folder.into()))
    }

    /// Waits for other processes by `clock`.
    #[must_use]
    pub fn clock(self, clock: Arc<dyn Clock>) -> Self {
        Self(self.0.clock(clock))
    }

    /// Writes that `given` was the last number given for `namespace`, over any content: the
    /// repair of a damaged or lost file. Blocks. `given` must be at least the epoch, or the token, of
    /// every token that was ever issued; the gates of the targets know the highest.
    ///
    /// # Errors
    /// [`FenceError`] when the file cannot be written, or `given` is above the highest number.
    pub fn repair(
        &self,
        kind: FenceKind,
        namespace: &Namespace,
        given: u64,
    ) -> Result<(), FenceError> {
        self.0.repair(kind, namespace, given)
    }
}

impl FenceSource for FileFence {
    /// Must be polled inside of a tokio runtime: the file is synced on one of its blocking threads,
    /// so that a slow disk does not stop renewals.
    fn next<'a>(
        &'a self,
        kind: FenceKind,
        namespace: &'a str,
        above: u64,
    ) -> Fut<'a, Result<u64, FenceError>> {
        Box::pin(self.0.next(kind, namespace, above))
    }
}
