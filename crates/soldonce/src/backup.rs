//! `soldonce backup` and `soldonce restore`: copies of the embedded ledger. Each is verified where it was put.

use std::os::unix::fs::{MetadataExt, lchown};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use clap::Args;
use serde_json::{Value, json};
use soldonce_engine::ledger::sqlite::{self, CopyReport, OpenError};
use soldonce_engine::ledger::verify::VerifyReport;
use soldonce_engine::reply::Rfc3339;

use crate::exit::{Exit, usage};
use crate::output;
use crate::serve::{EPOCHS, LEDGER, LedgerArgs, LedgerPlace};
use crate::verify::{describe, watched};

/// Arguments of `soldonce backup`.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  soldonce backup --data /var/lib/soldonce --to /backup/soldonce-$(date +%F)

The server goes on selling; the copy is as of the commit at which it begins. It is a data folder: `verify`, `why` and
`serve` read it as they read the original, and it has the same secrets, so keep it as safe. Exit code 1 when
the copy does not pass `verify`. A database is copied by PostgreSQL's own tools: docs/operations.md.")]
pub(crate) struct BackupArgs {
    #[command(flatten)]
    ledger: LedgerArgs,
    /// The folder of the copy; made if it is not there
    #[arg(long, value_name = "FOLDER")]
    to: PathBuf,
}

/// Arguments of `soldonce restore`.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  mv /var/lib/soldonce/ledger.sqlite* /var/lib/lost/
  soldonce restore --from /backup/soldonce-2026-11-24 --data /var/lib/soldonce

Stop the server first. A ledger is never overwritten: move its files away. Leave its file `high-water` where it is, and
the number of commits that are lost is told.")]
pub(crate) struct RestoreArgs {
    /// The folder of the copy
    #[arg(long, value_name = "FOLDER")]
    from: PathBuf,
    /// The folder of the embedded ledger, in which there is none now [default: ./data]
    #[arg(long, env = "SOLDONCE_DATA", value_name = "FOLDER")]
    data: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The files of a ledger that a server must be able to open.
pub(crate) const FILES: [&str; 3] = [LEDGER, "ledger.lock", "high-water"];

/// Tells the operator what to do after a restore.
const AFTER_RESTORE: &str = "What was done after that is gone: holds, bookings, their messages, and events and keys that were made. A key \
                             that was revoked later counts again. Before the server starts look at `soldonce keys list`, and run \
                             `soldonce reconcile` if a provider takes money: it settles payments that the copy knows. Look at the \
                             provider for payments that are later.\n";

/// Tells what to do where leases are anchored in the folder and its `lease-epochs` is missing.
const NO_EPOCHS: &str = "There is no folder `lease-epochs` here: if programs take leases of this server, copy the one of the lost folder, \
                         or fencing tokens begin anew, below those that were given.\n";

pub(crate) fn run(args: &BackupArgs) -> anyhow::Result<Exit> {
    let LedgerPlace::Folder(options) = args.ledger.place()? else {
        return Err(usage(anyhow!(
            "database_url: a database is copied by pg_dump or pg_basebackup; see docs/operations.md"
        )));
    };
    let (copied, report) = copy(&options.folder, &args.to, LedgerPlace::unread)?;
    let to = args.to.display();
    output::report(args.ledger.json, &told(copied, &report), || {
        format!("copied to {to}: {}{}", ends(copied), describe(&report))
    })?;
    Ok(Exit::done_if(report.is_clean()))
}

pub(crate) fn restore(args: &RestoreArgs) -> anyhow::Result<Exit> {
    let data = args.data.clone().unwrap_or_else(|| PathBuf::from("./data"));
    let (copied, report) = copy(&args.from, &data, no_copy)?;
    output::report(args.json, &told(copied, &report), || {
        let leases = if data.join(EPOCHS).exists() {
            ""
        } else {
            NO_EPOCHS
        };
        let (data, ends, lost) = (data.display(), ends(copied), lost(copied));
        let verified = describe(&report);
        format!("restored into {data}: {ends}{lost}{AFTER_RESTORE}{leases}{verified}")
    })?;
    Ok(Exit::done_if(report.is_clean()))
}

fn copy(
    from: &Path,
    to: &Path,
    unread: fn(OpenError) -> anyhow::Error,
) -> anyhow::Result<(CopyReport, VerifyReport)> {
    let copied = sqlite::copy(from, to).map_err(unread);
    let copied = copied.context("nothing was copied")?;
    // Before SQLite makes its other files: it gives them the owner of the database.
    hand_over(to).context("the copy still belongs to root")?;
    let report = watched(|show| sqlite::verify::verify(to, show))?;
    Ok((copied, report.context("the copy cannot be verified")?))
}

/// Adds `--from` to the error of a folder that has no copy.
fn no_copy(error: OpenError) -> anyhow::Error {
    if matches!(error, OpenError::Missing { .. }) {
        return anyhow!("{error}; name the folder of a copy with --from");
    }
    error.into()
}

/// Changes the owner of files that root made to that of the folder, whose server has to open them.
fn hand_over(folder: &Path) -> std::io::Result<()> {
    let owner = std::fs::metadata(folder)?;
    for file in FILES.map(|name| folder.join(name)) {
        if owner.uid() != 0 && std::fs::symlink_metadata(&file)?.uid() == 0 {
            lchown(&file, Some(owner.uid()), Some(owner.gid()))?;
        }
    }
    Ok(())
}

fn lost(copied: CopyReport) -> String {
    match copied.lost_commits {
        Some(lost) => {
            format!("{lost} later commits were made and are lost, as `high-water` says.\n")
        }
        None => "How many later commits are lost is not known: there was no file `high-water`.\n"
            .to_owned(),
    }
}

fn ends(copied: CopyReport) -> String {
    let made_at = Rfc3339(copied.last_commit_at);
    match copied.commits {
        0 => "no commit yet\n".to_owned(),
        last => format!("it ends with commit {last} of the ledger, made at {made_at}\n"),
    }
}

fn told(copied: CopyReport, report: &VerifyReport) -> Value {
    let is_made = copied.commits > 0;
    json!({
        "last_commit": copied.commits,
        "last_commit_at": is_made.then_some(Rfc3339(copied.last_commit_at)),
        "lost_commits": copied.lost_commits,
        "verified": report,
    })
}
