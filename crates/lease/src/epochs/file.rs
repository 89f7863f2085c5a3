//! Epochs of one host, in a folder: for every namespace a file with the last number given.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::record;
use crate::backend::Fut;
use crate::{Clock, EPOCH_MAX, EpochError, EpochSource, Namespace, SystemClock};

/// How long to wait for another process that takes a number.
const LOCK_WAIT: Duration = Duration::from_secs(2);

/// How often to look whether it is done.
const LOCK_POLL: Duration = Duration::from_millis(5);

/// An [`EpochSource`] for the processes of one host: a folder with a file for each namespace.
///
/// A number is written to a temporary file, synced, renamed over the old one, and the folder is
/// synced, before the number is returned. A lock file lets one process at a time do that. A file
/// that is damaged is an error, never a reason to begin at 1 again; [`FileEpochs::repair`] mends
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
pub struct FileEpochs {
    folder: PathBuf,
    clock: Arc<dyn Clock>,
}

impl FileEpochs {
    /// Epochs kept in `folder`, which is made when the first number is asked for.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            clock: Arc::new(SystemClock),
        }
    }

    /// Waits for other processes by `clock`.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Writes that `given` was the last epoch given for `namespace`, whatever stands there: the
    /// mend for a damaged or lost file. Blocks. `given` must be at least the epoch of every token
    /// that was ever issued; the gates of the targets know the highest.
    ///
    /// # Errors
    /// [`EpochError`] when the file cannot be written, or `given` is above [`EPOCH_MAX`].
    pub fn repair(&self, namespace: &Namespace, given: u32) -> Result<(), EpochError> {
        if given > EPOCH_MAX {
            return Err(EpochError::Exhausted { above: given });
        }
        let place = Place::new(&self.folder, namespace);
        fs::create_dir_all(&self.folder).map_err(|error| place.failed("make", &error))?;
        let lock = place.open_lock()?;
        lock.lock().map_err(|error| place.failed("lock", &error))?;
        place.write(namespace, given)
    }

    /// Waits until no other process takes a number.
    async fn lock(&self, place: &Place) -> Result<File, EpochError> {
        fs::create_dir_all(&self.folder).map_err(|error| place.failed("make", &error))?;
        let lock = place.open_lock()?;
        let until = self.clock.boot().plus(LOCK_WAIT);
        loop {
            match lock.try_lock() {
                Ok(()) => return Ok(lock),
                Err(TryLockError::Error(error)) => return Err(place.failed("lock", &error)),
                Err(TryLockError::WouldBlock) if self.clock.boot() >= until => {
                    let busy = format!("another process holds {}", place.lock.display());
                    return Err(EpochError::Unavailable(busy));
                }
                Err(TryLockError::WouldBlock) => {
                    let next = self.clock.boot().plus(LOCK_POLL);
                    self.clock.sleep_until(next).await;
                }
            }
        }
    }
}

impl EpochSource for FileEpochs {
    /// Must be polled inside of a tokio runtime: the file is synced on one of its blocking threads,
    /// so that a slow disk does not stop renewals.
    fn next<'a>(&'a self, namespace: &'a str, above: u32) -> Fut<'a, Result<u32, EpochError>> {
        Box::pin(async move {
            let namespace = Namespace::new(namespace)
                .map_err(|error| EpochError::Unavailable(error.to_string()))?;
            let place = Place::new(&self.folder, &namespace);
            let lock = self.lock(&place).await?;
            let advance = move || {
                let given = place.advance(&namespace, above);
                drop(lock);
                given
            };
            tokio::task::spawn_blocking(advance)
                .await
                .unwrap_or_else(|error| Err(EpochError::Unavailable(error.to_string())))
        })
    }
}

/// The files of one namespace.
struct Place {
    folder: PathBuf,
    epoch: PathBuf,
    next: PathBuf,
    lock: PathBuf,
}

impl Place {
    fn new(folder: &Path, namespace: &Namespace) -> Self {
        Self {
            folder: folder.to_owned(),
            epoch: folder.join(format!("{namespace}.epoch")),
            next: folder.join(format!("{namespace}.epoch.new")),
            lock: folder.join(format!("{namespace}.lock")),
        }
    }

    fn open_lock(&self) -> Result<File, EpochError> {
        let mut options = File::options();
        options.create(true).truncate(false).write(true);
        let opened = options.open(&self.lock);
        opened.map_err(|error| self.failed("open", &error))
    }

    /// Takes the next number and makes it durable.
    fn advance(&self, namespace: &Namespace, above: u32) -> Result<u32, EpochError> {
        let last = self.last(namespace)?.max(above);
        if last >= EPOCH_MAX {
            return Err(EpochError::Exhausted { above: last });
        }
        self.write(namespace, last + 1)?;
        Ok(last + 1)
    }

    /// The last number given; 0 when none was.
    fn last(&self, namespace: &Namespace) -> Result<u32, EpochError> {
        let text = match fs::read(&self.epoch) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
            Err(error) => return Err(self.failed("read", &error)),
        };
        record::epoch(namespace, &text).ok_or_else(|| {
            EpochError::Unavailable(format!(
                "{} is damaged. Do not remove it: numbers would be given twice. Find the highest \
                 epoch in use (a token's number divided by 2^32) and call FileEpochs::repair with it",
                self.epoch.display()
            ))
        })
    }

    /// Replaces the file in one step. A crash leaves the old line or the new one: the rename comes
    /// after the sync of the file, and the sync of the folder makes the rename last.
    fn write(&self, namespace: &Namespace, epoch: u32) -> Result<(), EpochError> {
        let replace = || {
            let mut next = File::create(&self.next)?;
            next.write_all(record::line(namespace, epoch).as_bytes())?;
            next.sync_all()?;
            fs::rename(&self.next, &self.epoch)?;
            File::open(&self.folder)?.sync_all()
        };
        replace().map_err(|error| self.failed("write", &error))
    }

    fn failed(&self, what: &str, error: &io::Error) -> EpochError {
        let folder = self.folder.display();
        EpochError::Unavailable(format!(
            "cannot {what} the epoch files in {folder}: {error}"
        ))
    }
}
