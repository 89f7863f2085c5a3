//! A fence source for one host: numbers in the files of a folder.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::counter::CounterFiles;
use crate::backend::Fut;
use crate::{Clock, FenceError, FenceKind, FenceSource, Namespace, SystemClock};

/// Longest wait for another process that holds the lock file.
const LOCK_WAIT: Duration = Duration::from_secs(2);

/// Pause between two tries to take the lock.
const LOCK_POLL: Duration = Duration::from_millis(5);

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
pub struct FileFence {
    folder: PathBuf,
    clock: Arc<dyn Clock>,
}

impl std::fmt::Debug for FileFence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FileFence")
            .field("folder", &self.folder)
            .finish_non_exhaustive()
    }
}

impl FileFence {
    /// Creates a source that keeps its numbers in `folder`, which is made with the first number.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            clock: Arc::new(SystemClock),
        }
    }

    /// Uses `clock` for the wait for the lock of another process.
    #[must_use]
    pub fn clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock, ..self }
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
        if given > kind.most() {
            return Err(FenceError::Exhausted { above: given });
        }
        let files = CounterFiles::new(kind, &self.folder, namespace);
        let lock = files.open_lock()?;
        lock.lock().map_err(|error| files.failed("lock", &error))?;
        files.write(given)
    }

    /// Takes the next number. Waits for the lock file while another process holds it; fails after 2 s.
    async fn advance(&self, files: CounterFiles, above: u64) -> Result<u64, FenceError> {
        let (files, until) = (Arc::new(files), self.clock.boot().plus(LOCK_WAIT));
        loop {
            let counter = Arc::clone(&files);
            let given = tokio::task::spawn_blocking(move || counter.advance(above))
                .await
                .map_err(|error| FenceError::Unavailable(error.to_string()))?;
            if let Some(given) = given? {
                return Ok(given);
            }
            if self.clock.boot() >= until {
                let busy = format!("another process holds {}", files.lock.display());
                return Err(FenceError::Unavailable(busy));
            }
            let next = self.clock.boot().plus(LOCK_POLL);
            self.clock.sleep_until(next).await;
        }
    }
}

impl FenceSource for FileFence {
    /// Takes the next number. Must be polled inside a tokio runtime: the files are opened, locked and synced on its
    /// blocking threads, so that a slow disk does not stop renewals.
    fn next<'a>(
        &'a self,
        kind: FenceKind,
        namespace: &'a str,
        above: u64,
    ) -> Fut<'a, Result<u64, FenceError>> {
        Box::pin(async move {
            let namespace = Namespace::new(namespace)
                .map_err(|error| FenceError::Unavailable(error.to_string()))?;
            let files = CounterFiles::new(kind, &self.folder, &namespace);
            self.advance(files, above).await
        })
    }
}
