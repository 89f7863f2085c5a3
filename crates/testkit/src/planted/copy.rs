//! A copy of the workspace in which bugs are planted, with a target folder of its own. A file that
//! did not change since the last copy keeps its modification time, so that cargo compiles little.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context, Result};

use super::Patch;

/// What is no source: by name in any folder, and by path.
const SKIPPED_NAMES: [&str; 2] = [".git", "node_modules"];
const SKIPPED_PATHS: [&str; 3] = ["target", "soldonce-demo", "data"];

/// A copy of the workspace.
#[derive(Debug)]
pub struct WorkspaceCopy {
    source: PathBuf,
    copy: PathBuf,
    target: PathBuf,
}

impl WorkspaceCopy {
    /// Makes the copy in `target/planted`, or updates it.
    ///
    /// # Errors
    /// If a file cannot be read or written.
    pub fn make(workspace: &Path) -> Result<Self> {
        let folder = workspace.join("target/planted");
        let made = Self {
            source: workspace.to_owned(),
            copy: folder.join("source"),
            target: folder.join("target"),
        };
        fs::create_dir_all(&made.copy)?;
        let mut kept = BTreeSet::new();
        made.mirror(Path::new(""), &mut kept)?;
        forget(&made.copy, Path::new(""), &kept)?;
        fs::create_dir_all(&made.target)?;
        // Programs that were fetched for the tests are fetched once.
        let tools = workspace.join("target/test-deps");
        let link = made.target.join("test-deps");
        if tools.exists() && !link.exists() {
            std::os::unix::fs::symlink(tools, link)?;
        }
        Ok(made)
    }

    /// Copies the files of one folder that differ, and adds the path of every file to `kept`.
    fn mirror(&self, folder: &Path, kept: &mut BTreeSet<PathBuf>) -> Result<()> {
        for entry in self.source.join(folder).read_dir()? {
            let entry = entry?;
            let path = folder.join(entry.file_name());
            let is_skipped = SKIPPED_NAMES.iter().any(|name| path.ends_with(name))
                || SKIPPED_PATHS
                    .iter()
                    .any(|skipped| path == Path::new(skipped));
            if is_skipped {
                continue;
            }
            let kind = entry.file_type()?;
            let to = self.copy.join(&path);
            if kind.is_dir() {
                fs::create_dir_all(&to)?;
                self.mirror(&path, kept)?;
            } else if kind.is_file() && fs::read(&to).ok() != Some(fs::read(entry.path())?) {
                fs::copy(entry.path(), to)?;
            }
            kept.insert(path);
        }
        Ok(())
    }

    /// Applies a patch to the copy, runs `work`, and restores the files of the copy.
    ///
    /// # Errors
    /// If the patch does not apply, a file cannot be written, or as `work`.
    pub fn with<T>(&self, patch: &Patch, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let read = |path: &str| fs::read_to_string(self.source.join(path)).ok();
        let changed = patch.apply(read)?;
        for (path, text) in &changed {
            fs::write(self.copy.join(path), text)?;
        }
        let done = work();
        for path in changed.keys() {
            fs::copy(self.source.join(path), self.copy.join(path))?;
        }
        done
    }

    /// Runs `cargo nextest run` for the integration tests of a package.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn nextest(&self, package: &str, arguments: &[&str]) -> Result<Output> {
        let mut command = Command::new("cargo");
        command
            .current_dir(&self.copy)
            .env("CARGO_TARGET_DIR", &self.target)
            .args([
                "nextest",
                "run",
                "--package",
                package,
                "--test",
                "it",
                "--profile",
                "planted",
                "--all-features",
            ])
            .args(arguments);
        command.output().context("cargo nextest cannot be started")
    }
}

/// Removes the files and folders of the copy that are not in `kept`.
fn forget(root: &Path, folder: &Path, kept: &BTreeSet<PathBuf>) -> Result<()> {
    for entry in root.join(folder).read_dir()? {
        let entry = entry?;
        let path = folder.join(entry.file_name());
        match (kept.contains(&path), entry.file_type()?.is_dir()) {
            (true, true) => forget(root, &path, kept)?,
            (true, false) => {}
            (false, true) => fs::remove_dir_all(entry.path())?,
            (false, false) => fs::remove_file(entry.path())?,
        }
    }
    Ok(())
}
