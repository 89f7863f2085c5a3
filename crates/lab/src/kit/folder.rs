//! Folders for the ledgers under test: made for one run, removed after it.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Context;

static NEXT: AtomicU64 = AtomicU64::new(0);

/// A folder that is removed, with all in it, when it is dropped.
#[derive(Debug)]
pub(crate) struct RunFolder(PathBuf);

impl RunFolder {
    /// Creates a folder in `parent`, or in the system's temporary folder.
    pub(crate) fn make(parent: Option<&Path>) -> anyhow::Result<Self> {
        let parent = parent.map_or_else(std::env::temp_dir, Path::to_owned);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = parent.join(format!("soldonce-bench-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder)
            .with_context(|| format!("--data: {} cannot be made", folder.display()))?;
        Ok(Self(folder))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn bytes(&self) -> u64 {
        let files = std::fs::read_dir(&self.0).into_iter().flatten().flatten();
        let lengths = files.filter_map(|file| Some(file.metadata().ok()?.len()));
        lengths.sum()
    }
}

impl Drop for RunFolder {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            eprintln!("soldonce: {} stays behind: {error}", self.0.display());
        }
    }
}
