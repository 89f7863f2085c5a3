//! Node.js and the packages its tests pin: which Node.js suits, and `npm ci` when the lock file is
//! not the one last installed.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::Machine;
use super::machine::run;

/// The folder of the browser tests, with their `package.json`, relative to the workspace.
pub const BROWSER_TESTS: &str = "crates/server/tests/browser";

/// The folder of the server that the storm is compared with, relative to the workspace.
pub const PEER: &str = "deploy/peer";

/// The folder of the scripts that use the provider's official SDKs, relative to the workspace.
pub const STRIPE_SDK: &str = "crates/fake-stripe/tests/sdk";

/// Oldest major version that runs the browser driver and the peer.
const MAJOR_MIN: u32 = 20;

/// Tells whether this Node.js is new enough and has an npm.
pub(super) fn suits(node: &Path) -> bool {
    let version = run(Command::new(node).arg("--version")).unwrap_or_default();
    major(&version).is_some_and(|major| major >= MAJOR_MIN) && npm(node).is_some()
}

/// Parses the major version: 24 of `v24.19.0`.
pub(super) fn major(version: &str) -> Option<u32> {
    version
        .trim()
        .strip_prefix('v')?
        .split('.')
        .next()?
        .parse()
        .ok()
}

/// Finds the script of npm that came with `node`, in one of the two folders of distributions.
fn npm(node: &Path) -> Option<PathBuf> {
    let prefix = node.canonicalize().ok()?.parent()?.parent()?.to_owned();
    ["lib/node_modules", "share/nodejs"]
        .iter()
        .map(|modules| prefix.join(modules).join("npm/bin/npm-cli.js"))
        .find(|script| script.is_file())
}

/// Installs the packages that `folder/package-lock.json` pins, unless it did so before.
pub fn install_node_packages(machine: &Machine, node: &Path, folder: &Path) -> Result<()> {
    let lock = std::fs::read(folder.join("package-lock.json"))?;
    let installed = folder.join("node_modules/.installed-lock.json");
    if std::fs::read(&installed).is_ok_and(|last| last == lock) {
        return Ok(());
    }
    machine.report(&format!("fetching node packages into {}", folder.display()));
    let npm = npm(node).with_context(|| format!("{} has no npm", node.display()))?;
    run(Command::new(node)
        .arg(npm)
        .args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"])
        .current_dir(folder))?;
    std::fs::write(installed, lock)?;
    Ok(())
}
