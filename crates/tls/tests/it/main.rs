//! Tests of TLS with real servers and certificates of a test's own authority.

#![expect(clippy::unwrap_used, reason = "helpers outside #[test] functions")]

mod listener;
mod postgres;

use std::path::{Path, PathBuf};

/// A folder of this test's own.
fn folder(name: &str) -> PathBuf {
    let own = format!("{name}-{}", std::process::id());
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(own);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}
