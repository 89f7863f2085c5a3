//! The fresh cluster that every private server is a copy of: `initdb` takes most of a second, a
//! copy some tens of milliseconds. It is made once and kept with the fetched programs.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use super::{DATA, USER};
use crate::program;
use crate::server::{Account, Folder};
use crate::tools::{Machine, run};

/// Copies the fresh cluster to `data`, as files of `account`.
pub(super) fn copy_to(data: &Path, account: Account) -> Result<()> {
    copy(&provide(account)?, data)
}

/// Copies a folder with the modes and the owners of its files.
pub(super) fn copy(from: &Path, to: &Path) -> Result<()> {
    let mut copy = Command::new("cp");
    copy.args(["--recursive", "--reflink=auto", "--preserve=mode,ownership"]);
    run(copy.arg("--").arg(from).arg(to)).map(drop)
}

/// Returns the folder of the cluster for this PostgreSQL version and account. Makes it once.
fn provide(account: Account) -> Result<PathBuf> {
    let kept = Machine::here(|_| {})?.deps().join("postgres");
    fs::create_dir_all(&kept)?;
    let version = Command::new(program("postgres")?)
        .arg("--version")
        .output()?;
    let version = String::from_utf8_lossy(&version.stdout);
    let version = version.split_whitespace().nth(2).unwrap_or("unknown");
    let owner = match account {
        Account::Own | Account::Nested => rustix::process::getuid().as_raw(),
        Account::Other { user, .. } => user,
    };
    let template = kept.join(format!("cluster-{version}-of-{owner}"));
    if template.is_dir() {
        return Ok(template);
    }
    // One test makes it, the others wait; it gets its name only when it is complete.
    let lock = File::create(kept.join("making.lock"))?;
    lock.lock()?;
    if !template.is_dir() {
        let made = kept.join(format!("half-made-{owner}"));
        make(&made, account)?;
        fs::rename(made, &template)?;
    }
    Ok(template)
}

/// Runs `initdb` where the account can write, and copies the cluster to `made`.
fn make(made: &Path, account: Account) -> Result<()> {
    let folder = Folder::new("initdb")?;
    account.owns(folder.path())?;
    let mut command = account.command(program("initdb")?.as_os_str(), None);
    command.args(["--auth=trust", "--no-sync", "--encoding=UTF8", "--locale=C"]);
    command.args(["--username", USER, "--pgdata"]);
    run(command.arg(folder.join(DATA)))?;
    if made.exists() {
        fs::remove_dir_all(made)?;
    }
    copy(&folder.join(DATA), made)
}
