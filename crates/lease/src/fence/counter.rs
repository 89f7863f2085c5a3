//! Durable counters of one host in a folder: for every namespace a file with the last number given, and a lock
//! that lets one process at a time take the next.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::record::{self, form};
use crate::{Clock, FenceError, FenceKind, Namespace, SystemClock};

/// How long to wait for another process that takes a number.
const LOCK_WAIT: Duration = Duration::from_secs(2);

/// How often to look whether it is done.
const LOCK_POLL: Duration = Duration::from_millis(5);

/// The files in a folder.
#[derive(Clone)]
pub(super) struct DurableCounter {
    folder: PathBuf,
    clock: Arc<dyn Clock>,
}

impl DurableCounter {
    pub(super) fn new(folder: PathBuf) -> Self {
        let clock = Arc::new(SystemClock);
        Self { folder, clock }
    }

    pub(super) fn clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock, ..self }
    }

    /// Writes that `given` was the last number given. Blocks.
    pub(super) fn repair(
        &self,
        kind: FenceKind,
        namespace: &Namespace,
        given: u64,
    ) -> Result<(), FenceError> {
        if given > kind.most() {
            return Err(FenceError::Exhausted { above: given });
        }
        let files = CounterFiles::new(kind, &self.folder, namespace);
        fs::create_dir_all(&self.folder).map_err(|error| files.failed("make", &error))?;
        let lock = files.open_lock()?;
        lock.lock().map_err(|error| files.failed("lock", &error))?;
        files.write(namespace, given)
    }

    /// The next number above `above`, durable.
    pub(super) async fn next(
        &self,
        kind: FenceKind,
        namespace: &str,
        above: u64,
    ) -> Result<u64, FenceError> {
        let namespace = Namespace::new(namespace)
            .map_err(|error| FenceError::Unavailable(error.to_string()))?;
        let files = CounterFiles::new(kind, &self.folder, &namespace);
        let lock = self.lock(&files).await?;
        let advance = move || {
            let given = files.advance(&namespace, above);
            drop(lock);
            given
        };
        tokio::task::spawn_blocking(advance)
            .await
            .unwrap_or_else(|error| Err(FenceError::Unavailable(error.to_string())))
    }

    /// Waits until no other process takes a number.
    async fn lock(&self, files: &CounterFiles) -> Result<File, FenceError> {
        fs::create_dir_all(&self.folder).map_err(|error| files.failed("make", &error))?;
        let lock = files.open_lock()?;
        let until = self.clock.boot().plus(LOCK_WAIT);
        loop {
            match lock.try_lock() {
                Ok(()) => return Ok(lock),
                Err(TryLockError::Error(error)) => return Err(files.failed("lock", &error)),
                Err(TryLockError::WouldBlock) if self.clock.boot() >= until => {
                    let busy = format!("another process holds {}", files.lock.display());
                    return Err(FenceError::Unavailable(busy));
                }
                Err(TryLockError::WouldBlock) => {
                    let next = self.clock.boot().plus(LOCK_POLL);
                    self.clock.sleep_until(next).await;
                }
            }
        }
    }
}

/// The files of one namespace.
struct CounterFiles {
    kind: FenceKind,
    folder: PathBuf,
    last: PathBuf,
    next: PathBuf,
    lock: PathBuf,
}

impl CounterFiles {
    fn new(kind: FenceKind, folder: &Path, namespace: &Namespace) -> Self {
        let (word, lock) = (form(kind).word, form(kind).lock);
        Self {
            kind,
            folder: folder.to_owned(),
            last: folder.join(format!("{namespace}.{word}")),
            next: folder.join(format!("{namespace}.{word}.new")),
            lock: folder.join(format!("{namespace}.{lock}")),
        }
    }

    fn open_lock(&self) -> Result<File, FenceError> {
        let mut options = File::options();
        options.create(true).truncate(false).write(true);
        let opened = options.open(&self.lock);
        opened.map_err(|error| self.failed("open", &error))
    }

    /// Takes the next number and makes it durable.
    fn advance(&self, namespace: &Namespace, above: u64) -> Result<u64, FenceError> {
        let last = self.last(namespace)?.max(above);
        if last >= self.kind.most() {
            return Err(FenceError::Exhausted { above: last });
        }
        self.write(namespace, last + 1)?;
        Ok(last + 1)
    }

    /// The last number given; the one before the first when none was.
    fn last(&self, namespace: &Namespace) -> Result<u64, FenceError> {
        let text = match fs::read(&self.last) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(form(self.kind).before_first);
            }
            Err(error) => return Err(self.failed("read", &error)),
        };
        record::number(self.kind, namespace, &text).ok_or_else(|| {
            FenceError::Unavailable(format!(
                "{} is damaged. Do not remove it: numbers would be given twice. Find the highest token \
                 that is in use and call FileFence::repair with it, or with its epoch, which is that \
                 number divided by 2^32",
                self.last.display()
            ))
        })
    }

    /// Replaces the file in one step. A crash leaves the old line or the new one: the rename comes
    /// after the sync of the file, and the sync of the folder makes the rename last.
    fn write(&self, namespace: &Namespace, number: u64) -> Result<(), FenceError> {
        let replace = || {
            let mut next = File::create(&self.next)?;
            next.write_all(record::line(self.kind, namespace, number).as_bytes())?;
            next.sync_all()?;
            fs::rename(&self.next, &self.last)?;
            File::open(&self.folder)?.sync_all()
        };
        replace().map_err(|error| self.failed("write", &error))
    }

    fn failed(&self, what: &str, error: &io::Error) -> FenceError {
        let folder = self.folder.display();
        FenceError::Unavailable(format!(
            "cannot {what} the {} files in {folder}: {error}",
            form(self.kind).word
        ))
    }
}
