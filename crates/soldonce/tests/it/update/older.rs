//! The program of an older commit of this repository, with an older schema on both ledgers.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use soldonce_testkit::workspace;

/// The last commit with schema 9 on PostgreSQL and 5 on SQLite. It does not know `policy.listed`.
const COMMIT: &str = "dab352c8d74f0a76b3c50ad2f75972ac824c5a8e";

/// Builds the program, or takes the one that an earlier run has built.
pub(super) fn program() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("older-build");
    std::fs::create_dir_all(&folder).unwrap();
    // Each test is a process: one of them builds.
    let lock = File::create(folder.join("lock")).unwrap();
    lock.lock().unwrap();
    let source = folder.join(COMMIT);
    if !source.join("Cargo.lock").exists() {
        unpack(&source);
    }
    let target = folder.join("target");
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .args([
            "build",
            "--locked",
            "--package",
            "soldonce",
            "--bin",
            "soldonce",
        ])
        // Compiled soon, not fast: it sells a few hundred seats.
        .args(["--config", "profile.dev.opt-level=0"])
        .args(["--config", "profile.dev.package.\"*\".opt-level=0"])
        .arg("--target-dir")
        .arg(&target)
        .current_dir(&source);
    let built = cargo.status().unwrap();
    assert!(built.success(), "{cargo:?}: {built}");
    target.join("debug/soldonce")
}

fn unpack(source: &Path) {
    let part = source.with_extension("part");
    std::fs::remove_dir_all(&part).ok();
    std::fs::create_dir_all(&part).unwrap();
    let mut archive = Command::new("git")
        .args(["archive", "--format=tar", COMMIT])
        .current_dir(workspace().unwrap())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let tar = Command::new("tar")
        .args(["--extract", "--directory"])
        .arg(&part)
        .stdin(archive.stdout.take().unwrap())
        .status()
        .unwrap();
    let archived = archive.wait().unwrap();
    assert!(
        archived.success() && tar.success(),
        "commit {COMMIT} is not in this clone: `git fetch --unshallow` brings it"
    );
    std::fs::rename(part, source).unwrap();
}
