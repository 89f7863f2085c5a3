//! The machine as the search sees it: its environment, the folder for what is fetched, and a way to
//! run a program that turns failure into an error with the program's own words.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// Where to look for programs and where to put them.
#[derive(Debug)]
pub struct Machine {
    environment: BTreeMap<OsString, OsString>,
    deps: PathBuf,
    report: fn(&str),
}

impl Machine {
    /// A machine with these environment variables, where fetched things go to `deps` and what is
    /// being done is told to `report`.
    pub fn new(
        environment: impl IntoIterator<Item = (OsString, OsString)>,
        deps: PathBuf,
        report: fn(&str),
    ) -> Self {
        Self {
            environment: environment.into_iter().collect(),
            deps,
            report,
        }
    }

    /// This machine, as the process was started on it, with `test-deps` in cargo's target folder for
    /// what is fetched.
    ///
    /// # Errors
    /// If the workspace this was built in is gone.
    pub fn here(report: fn(&str)) -> Result<Self> {
        let named = std::env::var_os("CARGO_TARGET_DIR").filter(|folder| !folder.is_empty());
        let target = named.map_or_else(|| PathBuf::from("target"), PathBuf::from);
        let deps = workspace()?.join(target).join("test-deps");
        Ok(Self::new(std::env::vars_os(), deps, report))
    }

    /// The value of an environment variable; `None` also if it is empty.
    pub fn variable(&self, name: &str) -> Option<&OsStr> {
        let value = self.environment.get(OsStr::new(name))?;
        (!value.is_empty()).then_some(value)
    }

    pub(super) fn deps(&self) -> &Path {
        &self.deps
    }

    /// A folder beside the fetched programs, for what is made once and kept.
    pub(crate) fn folder(&self, name: &str) -> PathBuf {
        self.deps.join(name)
    }

    pub(super) fn report(&self, line: &str) {
        (self.report)(line);
    }

    /// The first file of this name in a folder of PATH.
    pub(super) fn on_path(&self, command: &str) -> Option<PathBuf> {
        let folders = std::env::split_paths(self.variable("PATH")?);
        folders
            .map(|folder| folder.join(command))
            .find(|path| path.is_file())
    }
}

/// The root of the workspace this was built in.
///
/// # Errors
/// If it is gone.
pub fn workspace() -> Result<PathBuf> {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
        .canonicalize()
        .context("the workspace is not where it was built")
}

/// Runs a command to its end and returns what it printed.
pub(crate) fn run(command: &mut Command) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command
        .output()
        .with_context(|| format!("cannot start {name}"))?;
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        bail!("{name} failed ({}): {}", output.status, complaint.trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
