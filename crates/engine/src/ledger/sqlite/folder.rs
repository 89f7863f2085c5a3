//! The data folder: its lock against a second process, its file modes, and the high-water file.

use std::fs::{DirBuilder, File, Metadata, OpenOptions, Permissions, TryLockError};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::OpenError;
use super::fault::Fault;
use super::tables::head::Head;
use crate::hex::{hex, unhex};
use crate::ledger::rows::checksum::Checksum;

const DATABASE: &str = "ledger.sqlite";
const LOG: &str = "ledger.sqlite-wal";
const SHARED_MEMORY: &str = "ledger.sqlite-shm";
/// A database that is being copied.
const PART: &str = "ledger.sqlite.part";
const LOCK: &str = "ledger.lock";
const HIGH_WATER: &str = "high-water";
/// Every file of a ledger.
const FILES: [&str; 5] = [DATABASE, LOG, SHARED_MEMORY, LOCK, HIGH_WATER];
/// The mode of each file.
const PRIVATE: u32 = 0o600;
/// The bits of a mode for group and others.
const OTHERS: u32 = 0o077;

#[derive(Clone, Debug)]
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(path: &Path) -> Self {
        Self(path.to_owned())
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.0.join(DATABASE)
    }

    pub(super) fn exists(&self) -> Result<bool, OpenError> {
        self.0.try_exists().map_err(self.failed())
    }

    /// Tells whether there is a database. A folder that may not be read is an error, not empty.
    pub(crate) fn has_database(&self) -> Result<bool, OpenError> {
        self.database().try_exists().map_err(self.failed())
    }

    /// Tells whether the database is missing or empty: SQLite would delete its leftover log.
    pub(super) fn is_without_database(&self) -> Result<bool, OpenError> {
        match std::fs::metadata(self.database()) {
            Ok(meta) => Ok(meta.len() == 0),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(true),
            Err(error) => Err(self.failed()(error)),
        }
    }

    /// Tells whether any file of a database exists: SQLite would apply a leftover log to a new one.
    pub(super) fn has_any_of_database(&self) -> Result<bool, OpenError> {
        for name in [DATABASE, LOG, SHARED_MEMORY] {
            if self.0.join(name).try_exists().map_err(self.failed())? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Wraps an I/O error of the folder.
    fn failed(&self) -> impl FnOnce(std::io::Error) -> OpenError {
        |error| OpenError::Folder {
            folder: self.0.clone(),
            error,
        }
    }

    /// Opens a file of the folder for writing, or creates it, readable by its owner only.
    fn open_private(&self, name: &str) -> std::io::Result<File> {
        let mut options = OpenOptions::new();
        options.create(true).truncate(false).write(true);
        options.mode(PRIVATE).open(self.0.join(name))
    }

    /// Creates the folder, readable by its owner only, and takes its lock, or fails with `Locked`.
    pub(super) fn take(&self) -> Result<FolderLock, OpenError> {
        let mut builder = DirBuilder::new();
        builder
            .recursive(true)
            .mode(0o700)
            .create(&self.0)
            .map_err(self.failed())?;
        let file = self.open_private(LOCK).map_err(self.failed())?;
        match file.try_lock() {
            Ok(()) if self.has_lock(&file) => Ok(FolderLock { _file: file }),
            Ok(()) | Err(TryLockError::WouldBlock) => Err(OpenError::Locked {
                folder: self.0.clone(),
            }),
            Err(TryLockError::Error(error)) => Err(self.failed()(error)),
        }
    }

    /// Tells whether `lock` still has its name: [`Folder::remove`] of another process may have taken it.
    fn has_lock(&self, lock: &File) -> bool {
        let identity = |meta: Metadata| (meta.dev(), meta.ino());
        let named = std::fs::metadata(self.0.join(LOCK)).map(identity);
        let locked = lock.metadata().map(identity);
        named.is_ok_and(|named| locked.is_ok_and(|locked| locked == named))
    }

    /// Removes the folder, which is locked and has no database; one with other files stays.
    pub(super) fn remove(&self) {
        for name in [HIGH_WATER, LOCK] {
            std::fs::remove_file(self.0.join(name)).ok();
        }
        std::fs::remove_dir(&self.0).ok();
    }

    /// Creates the database's file if it is missing, and sets every file of the ledger to mode
    /// 0600, in a folder of any mode: the database has the keys. A file whose mode cannot be set is
    /// only logged. SQLite gives its other files the mode of the database.
    pub(super) fn make_private(&self) -> Result<(), OpenError> {
        self.open_private(DATABASE).map_err(self.failed())?;
        for name in FILES {
            let path = self.0.join(name);
            let is_open = |meta: Metadata| meta.permissions().mode() & OTHERS != 0;
            if !std::fs::metadata(&path).is_ok_and(is_open) {
                continue;
            }
            match std::fs::set_permissions(&path, Permissions::from_mode(PRIVATE)) {
                Ok(()) => tracing::warn!(file = name, "other users could read it: mode 0600 now"),
                Err(error) => tracing::warn!(
                    file = name,
                    %error,
                    "other users can read it, and it has or leads to the ledger's keys: chmod 600"
                ),
            }
        }
        Ok(())
    }

    /// Tells whether a copy into the folder was interrupted.
    pub(super) fn has_part(&self) -> Result<bool, OpenError> {
        self.0.join(PART).try_exists().map_err(self.failed())
    }

    /// Creates an empty file for a copy of a database; replaces one that was left half copied.
    pub(super) fn make_part(&self) -> Result<PathBuf, OpenError> {
        let made = self.open_private(PART).and_then(|part| part.set_len(0));
        made.map_err(self.failed())?;
        Ok(self.0.join(PART))
    }

    /// Syncs the write-ahead log, if there is one.
    pub(super) fn sync_log(&self) -> Result<(), Fault> {
        match File::open(self.0.join(LOG)) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            log => log
                .and_then(|log| log.sync_all())
                .map_err(Fault::of_file(LOG)),
        }
    }

    /// Syncs the folder and its parent: makes the names of the files and of the folder durable.
    pub(super) fn sync(&self) -> Result<(), OpenError> {
        let sync = |path: &Path| File::open(path).and_then(|folder| folder.sync_all());
        sync(&self.0).map_err(self.failed())?;
        match self.0.canonicalize().map_err(self.failed())?.parent() {
            Some(parent) => sync(parent).map_err(self.failed()),
            None => Ok(()),
        }
    }

    /// Reads the high-water file; none without one, or if a start was killed before its first mark.
    pub(crate) fn high_water(&self) -> Result<Option<Mark>, Fault> {
        let mut text = String::new();
        match File::open(self.0.join(HIGH_WATER)) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(self.fault()(error)),
            Ok(file) => {
                let read = file.take(MARK_BYTES_MAX).read_to_string(&mut text);
                read.map_err(self.fault())?;
            }
        }
        match Mark::parse(&text) {
            Some(mark) => Ok(Some(mark)),
            None if text.is_empty() => Ok(None),
            None => Err(Fault::damaged(HIGH_WATER, "it is not what was written")),
        }
    }

    /// Reads the device and the inode number of the database's file.
    fn identity(&self) -> std::io::Result<(u64, u64)> {
        let found = std::fs::metadata(self.database())?;
        Ok((found.dev(), found.ino()))
    }

    /// Wraps an I/O error of the high-water file.
    fn fault(&self) -> impl FnOnce(std::io::Error) -> Fault {
        |error| Fault::File {
            file: self.0.join(HIGH_WATER).display().to_string(),
            error,
        }
    }

    /// Opens the high-water file, writes `head` to it and syncs it.
    pub(super) fn open_high_water(&self, head: &Head) -> Result<HighWater, Fault> {
        let file = self.open_private(HIGH_WATER).map_err(self.fault())?;
        let high_water = HighWater {
            file,
            folder: self.clone(),
            database: self.identity().map_err(Fault::of_file(DATABASE))?,
        };
        high_water.write(head)?;
        high_water.file.sync_all().map_err(self.fault())?;
        Ok(high_water)
    }
}

/// The lock of the folder, which keeps every other process out until it is dropped.
#[derive(Debug)]
pub(super) struct FolderLock {
    _file: File,
}

/// Bytes that are read of the high-water file: more than any mark has.
const MARK_BYTES_MAX: u64 = 256;

/// A point that the ledger has durably reached: a ledger that ends before it has lost commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    /// How many commits there were.
    pub(crate) commits: u64,
    /// The running hash of all of them.
    pub(crate) hash: [u8; 32],
}

impl Mark {
    fn checksum(&self) -> u64 {
        let commits = self.commits.cast_signed();
        Checksum::of(HIGH_WATER)
            .int(commits)
            .bytes(&self.hash)
            .to_i64()
            .cast_unsigned()
    }

    /// Formats commits, hash and checksum as one line of constant length: the next overwrites it.
    fn line(&self) -> String {
        let (commits, hash) = (self.commits, hex(&self.hash));
        format!("{commits:020} {hash} {:016x}\n", self.checksum())
    }

    fn parse(text: &str) -> Option<Self> {
        let mut words = text.split_whitespace();
        let commits = words.next()?.parse().ok()?;
        let hash = unhex(words.next()?)?;
        let mark = Self { commits, hash };
        (mark.line() == text).then_some(mark)
    }
}

/// The file that records how far the ledger was. It is written after each commit without a sync of
/// its own: it may be behind the ledger, never ahead of it.
#[derive(Debug)]
pub(super) struct HighWater {
    file: File,
    folder: Folder,
    /// The device and the inode number of the database's file when it was opened.
    database: (u64, u64),
}

impl HighWater {
    /// Writes the last commit of `head`. Fails when the database's file was moved, deleted or
    /// replaced: a commit in a deleted file must not be acknowledged.
    pub(super) fn write(&self, head: &Head) -> Result<(), Fault> {
        if !self.folder.identity().is_ok_and(|now| now == self.database) {
            let gone = "it was moved, deleted or replaced while the server had it open";
            return Err(Fault::of_file(DATABASE)(std::io::Error::other(gone)));
        }
        let line = Mark {
            commits: head.commits,
            hash: head.hash,
        }
        .line();
        self.file
            .write_all_at(line.as_bytes(), 0)
            .map_err(self.folder.fault())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_survives_and_no_flipped_bit_does() {
        let mark = Mark {
            commits: 1_234_567,
            hash: [0xa5; 32],
        };
        let line = mark.line();
        assert_eq!(Mark::parse(&line), Some(mark));
        for bit in 0..line.len() * 8 {
            let mut damaged = line.clone().into_bytes();
            damaged[bit / 8] ^= 1 << (bit % 8);
            let read = String::from_utf8(damaged)
                .ok()
                .and_then(|text| Mark::parse(&text));
            assert_eq!(read, None, "bit {bit}");
        }
        assert_eq!(Mark::parse(&line[..line.len() - 1]), None);
        assert_eq!(Mark::parse(""), None);
    }
}
