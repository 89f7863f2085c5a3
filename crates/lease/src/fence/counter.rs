//! The files of a [`super::FileFence`]: for each namespace and kind of number a file with the last
//! number given, and a lock file that lets one process at a time take the next.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::record::{self, form};
use crate::{FenceError, FenceKind, Namespace};

pub(super) struct CounterFiles {
    kind: FenceKind,
    namespace: Namespace,
    folder: PathBuf,
    last: PathBuf,
    next: PathBuf,
    pub(super) lock: PathBuf,
}

impl CounterFiles {
    pub(super) fn new(kind: FenceKind, folder: &Path, namespace: &Namespace) -> Self {
        let (word, lock) = (form(kind).word, form(kind).lock);
        Self {
            kind,
            namespace: namespace.clone(),
            folder: folder.to_owned(),
            last: folder.join(format!("{namespace}.{word}")),
            next: folder.join(format!("{namespace}.{word}.new")),
            lock: folder.join(format!("{namespace}.{lock}")),
        }
    }

    /// Opens the lock file, in the folder that it makes if there is none.
    pub(super) fn open_lock(&self) -> Result<File, FenceError> {
        fs::create_dir_all(&self.folder).map_err(|error| self.failed("make", &error))?;
        let mut options = File::options();
        options.create(true).truncate(false).write(true);
        let opened = options.open(&self.lock);
        opened.map_err(|error| self.failed("open", &error))
    }

    /// Takes the next number above the last one and above `above`, and makes it durable; `None` while another
    /// process holds the lock file.
    pub(super) fn advance(&self, above: u64) -> Result<Option<u64>, FenceError> {
        let lock = self.open_lock()?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(self.failed("lock", &error)),
        }
        let last = self.last()?.max(above);
        if last >= self.kind.most() {
            return Err(FenceError::Exhausted { above: last });
        }
        self.write(last + 1)?;
        Ok(Some(last + 1))
    }

    /// Reads the last number given; without a file it is the one before the first.
    fn last(&self) -> Result<u64, FenceError> {
        let text = match fs::read(&self.last) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(form(self.kind).before_first);
            }
            Err(error) => return Err(self.failed("read", &error)),
        };
        record::number(self.kind, &self.namespace, &text).ok_or_else(|| {
            FenceError::Unavailable(format!(
                "{} is damaged. Do not remove it: numbers would be given twice. Find the highest token \
                 that is in use and call FileFence::repair with it, or with its epoch, which is that \
                 number divided by 2^32",
                self.last.display()
            ))
        })
    }

    /// Replaces the file atomically. After a crash it has the old line or the new one: the rename
    /// comes after the sync of the file, and the sync of the folder makes the rename durable.
    pub(super) fn write(&self, number: u64) -> Result<(), FenceError> {
        let replace = || {
            let mut next = File::create(&self.next)?;
            next.write_all(record::line(self.kind, &self.namespace, number).as_bytes())?;
            next.sync_all()?;
            if !self.last.try_exists()? {
                self.sync_above()?;
            }
            fs::rename(&self.next, &self.last)?;
            File::open(&self.folder)?.sync_all()
        };
        replace().map_err(|error| self.failed("write", &error))
    }

    /// Makes the names of a new folder, and of those that were made for it, durable. What was made here can be read
    /// and is on the file system of the folder.
    fn sync_above(&self) -> io::Result<()> {
        let folder = match self.folder.canonicalize() {
            // A relative folder below one that may not be searched: its path cannot be known.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Ok(()),
            found => found?,
        };
        let device = folder.metadata()?.dev();
        for above in folder.ancestors().skip(1) {
            if above.metadata()?.dev() != device {
                break;
            }
            match File::open(above) {
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => break,
                opened => opened?.sync_all()?,
            }
        }
        Ok(())
    }

    pub(super) fn failed(&self, what: &str, error: &io::Error) -> FenceError {
        let folder = self.folder.display();
        FenceError::Unavailable(format!(
            "cannot {what} the {} files in {folder}: {error}",
            form(self.kind).word
        ))
    }
}
