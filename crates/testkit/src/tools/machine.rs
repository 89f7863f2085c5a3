//! The machine on which programs are searched for: its environment, the folder for what is fetched,
//! and a function that runs a program and turns failure into an error with its standard error.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// Where programs are searched for and where fetched ones are put.
#[derive(Debug)]
pub struct Machine {
    environment: BTreeMap<OsString, OsString>,
    deps: PathBuf,
    report: fn(&str),
}

impl Machine {
    /// Creates a machine with these environment variables. Fetched things are put into `deps`;
    /// each step is reported to `report`.
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

    /// Reads the environment of this process. Fetched things are put into `test-deps` in cargo's
    /// target folder, or in the user's cache if the workspace of the build is not on this machine.
    pub fn here(report: fn(&str)) -> Result<Self> {
        let deps = deps(workspace().ok(), |name| {
            std::env::var_os(name).filter(|value| !value.is_empty())
        });
        Ok(Self::new(std::env::vars_os(), deps?, report))
    }

    /// Returns the value of an environment variable; `None` also if it is empty.
    pub fn variable(&self, name: &str) -> Option<&OsStr> {
        let value = self.environment.get(OsStr::new(name))?;
        (!value.is_empty()).then_some(value)
    }

    /// Returns the folder of the fetched programs, and of what else is made once and kept.
    pub(crate) fn deps(&self) -> &Path {
        &self.deps
    }

    pub(super) fn report(&self, line: &str) {
        (self.report)(line);
    }

    /// Finds the first file of this name in the folders of PATH.
    pub(super) fn on_path(&self, command: &str) -> Option<PathBuf> {
        let folders = std::env::split_paths(self.variable("PATH")?);
        folders
            .map(|folder| folder.join(command))
            .find(|path| path.is_file())
    }
}

/// Chooses the folder for what is fetched or made once.
fn deps(
    workspace: Option<PathBuf>,
    variable: impl Fn(&str) -> Option<OsString>,
) -> Result<PathBuf> {
    if let Some(workspace) = workspace {
        let target = variable("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
        return Ok(workspace.join(target).join("test-deps"));
    }
    let cache = variable("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(PathBuf::from(variable("HOME")?).join(".cache")));
    let cache =
        cache.context("neither XDG_CACHE_HOME nor HOME is set: private servers need a cache")?;
    Ok(cache.join("soldonce").join("test-deps"))
}

/// Finds the root of the workspace of the build. Fails if it is no longer there.
pub fn workspace() -> Result<PathBuf> {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
        .canonicalize()
        .context("the workspace is not where it was built")
}

/// Runs a command to its end and returns its standard output. Fails with its standard error.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_lies_in_the_workspace_or_in_the_cache() {
        let at = |workspace: Option<&str>, variables: &[(&str, &str)]| {
            let variable = |name: &str| {
                let mut set = variables.iter();
                set.find(|(set, _)| *set == name)
                    .map(|(_, value)| OsString::from(value))
            };
            let deps = deps(workspace.map(PathBuf::from), variable).ok()?;
            Some(deps.to_string_lossy().into_owned())
        };
        let expected = |path: &str| Some(path.to_owned());
        assert_eq!(at(Some("/w"), &[]), expected("/w/target/test-deps"));
        let target = [("CARGO_TARGET_DIR", "/t")];
        assert_eq!(at(Some("/w"), &target), expected("/t/test-deps"));
        let user = [("HOME", "/u")];
        assert_eq!(at(None, &user), expected("/u/.cache/soldonce/test-deps"));
        let cache = [("HOME", "/u"), ("XDG_CACHE_HOME", "/c")];
        assert_eq!(at(None, &cache), expected("/c/soldonce/test-deps"));
        assert_eq!(at(None, &[]), None);
    }
}
