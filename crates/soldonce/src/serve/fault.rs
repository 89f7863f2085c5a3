//! When a server on a folder ends by itself: its ledger could not store a commit and takes no more. Memory
//! may then be ahead of the file, so writing goes on only in a process that reads the file anew.

use std::io::Write;
use std::path::{Path, PathBuf};

use soldonce_engine::Engine;

use super::admin_key::private_file;
use super::ledger::LEDGER;
use crate::limits::{FAULT_LOOK_MS, FAULT_PROBE_BYTES, FAULT_READ_ONLY_MS};

/// A file that is written and removed to see whether the disk takes any.
const PROBE: &str = "probe.tmp";

/// Waits until the ledger takes no more commands and a restart is likely to help: the disk takes files
/// again. Until then reads are answered, which a process that cannot start does not. Never ready on a
/// ledger without a folder, which takes commands again by itself.
///
/// # Cancel safety
/// When it is dropped, at most the probe's file stays; the next probe removes it.
pub(super) async fn until_a_restart_helps(engine: &Engine, folder: Option<PathBuf>) {
    let Some(folder) = folder else {
        return std::future::pending().await;
    };
    let clock = &engine.world().clock;
    let mut since = None;
    loop {
        let next = clock.boot().plus_ms(FAULT_LOOK_MS);
        clock.sleep_until(next).await;
        if engine.is_writable() {
            continue;
        }
        let since = *since.get_or_insert_with(|| clock.boot());
        // A disk that fails again at once costs one restart in so long.
        if clock.boot() < since.plus_ms(FAULT_READ_ONLY_MS) {
            continue;
        }
        let folder = folder.clone();
        match tokio::task::spawn_blocking(move || probe(&folder)).await {
            Ok(Ok(())) => return,
            Ok(Err(error)) => tracing::debug!(%error, "the data folder takes no file yet"),
            Err(error) => tracing::debug!(%error, "the data folder was not looked at"),
        }
    }
}

/// Writes a file as large as what a start needs, and removes it. Fails where the ledger's own file is gone: while this
/// process has it open, its content can be copied from `/proc`; a start would make an empty one.
fn probe(folder: &Path) -> std::io::Result<()> {
    std::fs::metadata(folder.join(LEDGER))?;
    let path = folder.join(PROBE);
    let written = private_file(&path).and_then(|mut file| {
        file.write_all(&vec![0; FAULT_PROBE_BYTES])?;
        file.sync_all()
    });
    let removed = std::fs::remove_file(&path);
    written.and(removed)
}
