//! Epochs and whole tokens of one host, in a folder.

use std::path::PathBuf;
use std::sync::Arc;

use super::counter::DurableCounter;
use super::record::{EPOCHS, TOKENS};
use crate::backend::Fut;
use crate::{Clock, EPOCH_MAX, EpochError, EpochSource, FencingToken, Namespace, TokenSource};

/// An [`EpochSource`] for the processes of one host: a folder with a file for each namespace.
///
/// A number is written to a temporary file, synced, renamed over the old one, and the folder is
/// synced, before the number is returned. A lock file lets one process at a time do that. A file
/// that is damaged is an error, never a reason to begin at 1 again; [`FileEpochs::repair`] repairs
/// it. Must not lie on a network file system, and is of no use to processes of other hosts.
///
/// ```
/// use soldonce_lease::{FileEpochs, Locks};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = std::env::temp_dir().join(format!("soldonce-doc-epochs-{}", std::process::id()));
/// let before = Locks::memory().epochs(FileEpochs::new(&folder)).connect_blocking()?;
/// let old = before.lease("job").try_acquire_blocking()?.live_token()?;
/// // The process starts again, and its memory begins with nothing.
/// let after = Locks::memory().epochs(FileEpochs::new(&folder)).connect_blocking()?;
/// let new = after.lease("job").try_acquire_blocking()?.live_token()?;
/// assert!(new > old);
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct FileEpochs(DurableCounter);

/// A [`TokenSource`] for the processes of one host: as [`FileEpochs`], with one durable write for each
/// token. For a Redlock that serves a single host; of no use to processes of other hosts.
///
/// ```
/// use soldonce_lease::{FileTokens, Locks};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = std::env::temp_dir().join(format!("soldonce-doc-tokens-{}", std::process::id()));
/// let locks = Locks::memory().tokens(FileTokens::new(&folder)).connect_blocking()?;
/// let lease = locks.lease("job").try_acquire_blocking()?;
/// assert!(lease.live_token()?.is_anchored());
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct FileTokens(DurableCounter);

impl FileEpochs {
    /// Epochs kept in `folder`, which is made when the first number is asked for.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self(DurableCounter::new(&EPOCHS, folder.into()))
    }

    /// Waits for other processes by `clock`.
    #[must_use]
    pub fn clock(self, clock: Arc<dyn Clock>) -> Self {
        Self(self.0.clock(clock))
    }

    /// Writes that `given` was the last epoch given for `namespace`, over any content: the
    /// repair of a damaged or lost file. Blocks. `given` must be at least the epoch of every token
    /// that was ever issued; the gates of the targets know the highest.
    ///
    /// # Errors
    /// [`EpochError`] when the file cannot be written, or `given` is above [`EPOCH_MAX`].
    pub fn repair(&self, namespace: &Namespace, given: u32) -> Result<(), EpochError> {
        if given > EPOCH_MAX {
            return Err(EpochError::Exhausted { above: given });
        }
        self.0.repair(namespace, given.into())
    }
}

impl FileTokens {
    /// Tokens kept in `folder`, which is made when the first number is asked for.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self(DurableCounter::new(&TOKENS, folder.into()))
    }

    /// Waits for other processes by `clock`.
    #[must_use]
    pub fn clock(self, clock: Arc<dyn Clock>) -> Self {
        Self(self.0.clock(clock))
    }

    /// As [`FileEpochs::repair`]: `given` must be at least every token that was ever issued.
    ///
    /// # Errors
    /// [`EpochError`] when the file cannot be written.
    pub fn repair(&self, namespace: &Namespace, given: FencingToken) -> Result<(), EpochError> {
        self.0.repair(namespace, given.number())
    }
}

impl EpochSource for FileEpochs {
    /// Must be polled inside of a tokio runtime: the file is synced on one of its blocking threads,
    /// so that a slow disk does not stop renewals.
    fn next<'a>(&'a self, namespace: &'a str, above: u32) -> Fut<'a, Result<u32, EpochError>> {
        Box::pin(async move {
            let given = self.0.next(namespace, above.into()).await?;
            u32::try_from(given).map_err(|_| EpochError::Exhausted { above })
        })
    }
}

impl TokenSource for FileTokens {
    /// As [`FileEpochs`], inside of a tokio runtime.
    fn next<'a>(&'a self, namespace: &'a str, above: u64) -> Fut<'a, Result<u64, EpochError>> {
        Box::pin(self.0.next(namespace, above))
    }
}
