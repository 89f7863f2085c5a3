//! A folder that goes away with its test.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

pub(crate) struct TempFolder(PathBuf);

impl TempFolder {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("soldonce-lease-{}-{n}", std::process::id());
        let path = std::env::temp_dir().join(name);
        // What a killed test of this number left, if anything.
        std::fs::remove_dir_all(&path).ok();
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TempFolder {
    fn drop(&mut self) {
        // A test may have removed it.
        std::fs::remove_dir_all(&self.0).unwrap_or_default();
    }
}
