//! Tells the program what it is built of, `1a2b3c4 2026-11-24`, where it is built for use and from its own
//! repository. `+` behind the commit: with changes that are in none. Builds for development are not told, or
//! each commit would build them anew.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-env-changed=SOLDONCE_BUILD");
    let is_for_use = env::var_os("PROFILE").is_some_and(|profile| profile == "release");
    if !is_for_use || env::var_os("SOLDONCE_BUILD").is_some() || !is_own_repository() {
        return;
    }
    // Not the index: `describe` writes it, which the next build would take for a change.
    for file in ["HEAD", "logs/HEAD"] {
        if let Some(file) = git(&["rev-parse", "--path-format=absolute", "--git-path", file]) {
            println!("cargo::rerun-if-changed={file}");
        }
    }
    let commit = git(&["describe", "--always", "--dirty=+", "--exclude=*"]);
    let date = git(&["log", "-1", "--format=%cs"]);
    if let (Some(commit), Some(date)) = (commit, date) {
        println!("cargo::rustc-env=SOLDONCE_BUILD={commit} {date}");
    }
}

/// An archive of the sources may lie in the repository of something else.
fn is_own_repository() -> bool {
    let manifest = env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let root = manifest.and_then(|manifest| manifest.parent()?.parent()?.canonicalize().ok());
    let top = git(&["rev-parse", "--show-toplevel"]);
    let top = top.and_then(|top| Path::new(&top).canonicalize().ok());
    root.is_some() && root == top
}

/// What git says; nothing where it fails or is not there.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let said = String::from_utf8(output.stdout).ok()?;
    let said = said.trim();
    (output.status.success() && !said.is_empty()).then(|| said.to_owned())
}
