//! Durable counters of one host in a folder: for every namespace a file with the last number given, and a lock
//! that lets one process at a time take the next.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::record::{self, Kind};
use crate::{Clock, EPOCH_MAX, EpochError, Namespace, SystemClock};

/// How long to wait for another process that takes a number.
const LOCK_WAIT: Duration = Duration::from_secs(2);

/// How often to look whether it is done.
const LOCK_POLL: Duration = Duration::from_millis(5);

/// The files of one kind of number, in a folder.
#[derive(Clone)]
pub(super) struct DurableCounter {
    kind: &'static Kind,
    folder: PathBuf,
    clock: Arc<dyn Clock>,
}

impl DurableCounter {
    pub(super) fn new(kind: &'static Kind, folder: PathBuf) -> Self {
        let clock = Arc::new(SystemClock);
        Self {
            kind,
            folder,
            clock,
        }
    }

    pub(super) fn clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock, ..self }
    }

    /// Writes that `given` was the last number given. Blocks.
    pub(super) fn repair(&self, namespace: &Namespace, given: u64) -> Result<(), EpochError> {
        if given > self.kind.most {
            return Err(exhausted(self.kind, given));
        }
        let files = CounterFiles::new(self, namespace);
        fs::create_dir_all(&self.folder).map_err(|error| files.failed("make", &error))?;
        let lock = files.open_lock()?;
        lock.lock().map_err(|error| files.failed("lock", &error))?;
        files.write(namespace, given)
    }

    /// The next number above `above`, durable.
    pub(super) async fn next(&self, namespace: &str, above: u64) -> Result<u64, EpochError> {
        let namespace = Namespace::new(namespace)
            .map_err(|error| EpochError::Unavailable(error.to_string()))?;
        let files = CounterFiles::new(self, &namespace);
        let lock = self.lock(&files).await?;
        let advance = move || {
            let given = files.advance(&namespace, above);
            drop(lock);
            given
        };
        tokio::task::spawn_blocking(advance)
            .await
            .unwrap_or_else(|error| Err(EpochError::Unavailable(error.to_string())))
    }

    /// Waits until no other process takes a number.
    async fn lock(&self, files: &CounterFiles) -> Result<File, EpochError> {
        fs::create_dir_all(&self.folder).map_err(|error| files.failed("make", &error))?;
        let lock = files.open_lock()?;
        let until = self.clock.boot().plus(LOCK_WAIT);
        loop {
            match lock.try_lock() {
                Ok(()) => return Ok(lock),
                Err(TryLockError::Error(error)) => return Err(files.failed("lock", &error)),
                Err(TryLockError::WouldBlock) if self.clock.boot() >= until => {
                    let busy = format!("another process holds {}", files.lock.display());
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

/// The files of one namespace.
struct CounterFiles {
    kind: &'static Kind,
    folder: PathBuf,
    last: PathBuf,
    next: PathBuf,
    lock: PathBuf,
}

impl CounterFiles {
    fn new(numbers: &DurableCounter, namespace: &Namespace) -> Self {
        let DurableCounter { kind, folder, .. } = numbers;
        let (folder, word): (&Path, _) = (folder, kind.word);
        Self {
            kind,
            folder: folder.to_owned(),
            last: folder.join(format!("{namespace}.{word}")),
            next: folder.join(format!("{namespace}.{word}.new")),
            lock: folder.join(format!("{namespace}.{}", kind.lock)),
        }
    }

    fn open_lock(&self) -> Result<File, EpochError> {
        let mut options = File::options();
        options.create(true).truncate(false).write(true);
        let opened = options.open(&self.lock);
        opened.map_err(|error| self.failed("open", &error))
    }

    /// Takes the next number and makes it durable.
    fn advance(&self, namespace: &Namespace, above: u64) -> Result<u64, EpochError> {
        let last = self.last(namespace)?.max(above);
        if last >= self.kind.most {
            return Err(exhausted(self.kind, last));
        }
        self.write(namespace, last + 1)?;
        Ok(last + 1)
    }

    /// The last number given; the one before the first when none was.
    fn last(&self, namespace: &Namespace) -> Result<u64, EpochError> {
        let text = match fs::read(&self.last) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(self.kind.before_first);
            }
            Err(error) => return Err(self.failed("read", &error)),
        };
        record::number(self.kind, namespace, &text).ok_or_else(|| {
            EpochError::Unavailable(format!(
                "{} is damaged. Do not remove it: numbers would be given twice. Find the highest \
                 {} in use{} and call {}::repair with it",
                self.last.display(),
                self.kind.word,
                self.kind.hint,
                self.kind.source
            ))
        })
    }

    /// Replaces the file in one step. A crash leaves the old line or the new one: the rename comes
    /// after the sync of the file, and the sync of the folder makes the rename last.
    fn write(&self, namespace: &Namespace, number: u64) -> Result<(), EpochError> {
        let replace = || {
            let mut next = File::create(&self.next)?;
            next.write_all(record::line(self.kind, namespace, number).as_bytes())?;
            next.sync_all()?;
            fs::rename(&self.next, &self.last)?;
            File::open(&self.folder)?.sync_all()
        };
        replace().map_err(|error| self.failed("write", &error))
    }

    fn failed(&self, what: &str, error: &io::Error) -> EpochError {
        let folder = self.folder.display();
        EpochError::Unavailable(format!(
            "cannot {what} the {} files in {folder}: {error}",
            self.kind.word
        ))
    }
}

/// None is left above `number`.
fn exhausted(kind: &Kind, number: u64) -> EpochError {
    EpochError::Exhausted {
        above: u32::try_from(number >> kind.epoch_at).unwrap_or(EPOCH_MAX),
    }
}
