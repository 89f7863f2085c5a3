//! A folder for one server, in the system's temporary folder: servers that must not run as root
//! can reach it there. It is removed with its value. One whose test process was killed is removed
//! by the next test: its owner holds a file lock until its end, so a free lock means that it ended.

use std::fs::{self, File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result};

const PREFIX: &str = "soldonce-test-";
const LOCK: &str = "test.lock";

#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    _lock: File,
}

impl Folder {
    /// Creates a folder that every user may enter. The first call removes those of killed tests.
    pub(crate) fn new(kind: &str) -> Result<Self> {
        static SWEPT: Once = Once::new();
        SWEPT.call_once(|| sweep(&std::env::temp_dir()));
        Self::within(&std::env::temp_dir(), kind)
    }

    fn within(parent: &Path, kind: &str) -> Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let path = parent.join(format!("{PREFIX}{kind}-{}-{number}", std::process::id()));
            match fs::create_dir(&path) {
                Ok(()) => return Self::lock(path),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error).context(path.display().to_string()),
            }
        }
    }

    /// Locks the folder before its lock file has the name that a sweep looks for.
    fn lock(path: PathBuf) -> Result<Self> {
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
        let unnamed = path.join("test.lock.new");
        let lock = File::create(&unnamed)?;
        lock.lock()?;
        fs::rename(unnamed, path.join(LOCK))?;
        Ok(Self { path, _lock: lock })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Reads the last 10 lines of a log file in it, for the report of a failure.
    pub(crate) fn tail(&self, name: &str) -> String {
        let text = fs::read_to_string(self.join(name)).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        let first = lines.len().saturating_sub(10);
        lines.get(first..).unwrap_or_default().join("\n")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        remove(&self.path);
    }
}

/// An empty folder for one test or one measurement, removed with its value.
#[derive(Debug)]
pub struct TempFolder {
    path: PathBuf,
    _within: Folder,
}

impl TempFolder {
    /// Creates it in the system's temporary folder.
    pub fn new() -> Result<Self> {
        Self::of(Folder::new("own")?)
    }

    /// Creates it in this folder, which is made if it is missing.
    pub fn within(parent: &Path) -> Result<Self> {
        fs::create_dir_all(parent)?;
        Self::of(Folder::within(parent, "own")?)
    }

    fn of(within: Folder) -> Result<Self> {
        let path = within.join("own");
        fs::create_dir(&path)?;
        Ok(Self {
            path,
            _within: within,
        })
    }

    /// Returns its path.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Removes the folders of test processes that were killed.
fn sweep(parent: &Path) {
    let Ok(entries) = parent.read_dir() else {
        return;
    };
    for entry in entries.flatten() {
        let ours = entry.file_name().to_string_lossy().starts_with(PREFIX);
        if ours && is_left(&entry.path().join(LOCK)) {
            remove(&entry.path());
        }
    }
}

/// Tells whether this lock is free. A file that cannot be opened belongs to another user.
fn is_left(lock: &Path) -> bool {
    let lock = OpenOptions::new().read(true).write(true).open(lock);
    lock.is_ok_and(|lock| lock.try_lock().is_ok())
}

/// Removes a folder, in up to 100 tries: a server that is ending may still write to it.
fn remove(path: &Path) {
    for _ in 0..100 {
        match fs::remove_dir_all(path) {
            Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => {}
            _ => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sweep_removes_what_the_dead_left_and_nothing_else() {
        let parent = Folder::new("sweep").unwrap();
        let living = Folder::within(parent.path(), "living").unwrap();
        let left = parent.join("soldonce-test-left");
        let foreign = parent.join("foreign");
        for folder in [&left, &foreign] {
            fs::create_dir(folder).unwrap();
            fs::write(folder.join(LOCK), "").unwrap();
        }
        sweep(parent.path());
        assert!(!left.exists() && foreign.exists() && living.path().exists());
        let gone = living.path().to_owned();
        drop(living);
        assert!(!gone.exists());
    }
}
