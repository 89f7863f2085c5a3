//! The data folder and its disk.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use soldonce_clock::{Clock, SystemClock};
use soldonce_core::Timestamp;
use soldonce_engine::ledger::sqlite::{OpenError, verify};

use super::{Finding, clock};
use crate::backup;
use crate::serve::private_file;

/// Free space below which the ledger will soon refuse to write.
const FREE_BYTES_WANTED: u64 = 1_024 * 1_024 * 1_024;
/// Number of syncs that are timed.
const SYNCS: usize = 25;
/// Slowest good sync: every commit waits for one, so a slower one makes every answer slow.
const SYNC_US_WANTED: u128 = 20_000;
/// A sync faster than this is not believed: no disk stores data durably in that time.
const SYNC_US_BELIEVED: u128 = 15;
/// `statfs` type of tmpfs: linux/magic.h.
const TMPFS_MAGIC: i64 = 0x0102_1994;

pub(super) fn look(data: &Path) -> Vec<Finding> {
    let shown = data.display().to_string();
    if !data.exists() {
        let found = format!("{shown} does not exist");
        let fix = "nothing to do: the first `soldonce serve` makes it";
        return vec![Finding::remark("data folder", found, fix)];
    }
    let mut findings = vec![permissions(data, &shown)];
    findings.extend(space(data));
    findings.push(sync_time(data));
    findings.extend(ledger(data));
    findings
}

/// Checks the files of the ledger and its clock. Finds nothing where there is no ledger yet: the
/// first `soldonce serve` makes it.
fn ledger(data: &Path) -> Vec<Finding> {
    for name in backup::FILES {
        if let Err(error) = File::open(data.join(name))
            && error.kind() == ErrorKind::PermissionDenied
        {
            let fix = "give it to the user of the server, and run this as that user";
            return vec![Finding::wrong("ledger", format!("{name}: {error}"), fix)];
        }
    }
    match verify::look(data) {
        Ok(last) => {
            let found = "can be read; `soldonce verify` checks what is in it, as after a log line that memory \
                         and file differ";
            let readable = Finding::good("ledger", found);
            std::iter::once(readable)
                .chain(last.map(ledger_clock))
                .collect()
        }
        Err(OpenError::Missing { .. }) => Vec::new(),
        Err(error) => vec![unreadable(&error)],
    }
}

fn unreadable(error: &OpenError) -> Finding {
    let (what, found) = ("ledger", error.to_string());
    match error {
        OpenError::Schema {
            found: schema,
            known,
        } if schema < known => Finding::remark(
            what,
            found,
            "nothing to do: the next `soldonce serve` does it",
        ),
        OpenError::Schema { .. } => Finding::wrong(what, found, "start a newer soldonce"),
        OpenError::Folder { .. } => Finding::wrong(what, found, "give this user access"),
        OpenError::Behind { .. } | OpenError::Unmarked { .. } => {
            Finding::wrong(what, found, "`soldonce serve` refuses it until then")
        }
        OpenError::Missing { .. }
        | OpenError::Taken { .. }
        | OpenError::Locked { .. }
        | OpenError::Failed(_) => {
            let fix =
                "ledger.sqlite is no ledger, or damaged: put the newest copy of the folder back";
            let found = found.replace(" (`soldonce doctor` says what to do)", "");
            Finding::wrong(what, found, fix)
        }
    }
}

/// Judges how far the last commit is ahead of this machine's clock.
fn ledger_clock(last: Timestamp) -> Finding {
    let ahead = last.ms().saturating_sub(SystemClock.wall_ms());
    clock::judge(ahead.max(0), "this machine's")
}

fn permissions(data: &Path, shown: &str) -> Finding {
    let what = "data folder";
    match std::fs::metadata(data) {
        Err(error) => Finding::wrong(what, format!("{shown}: {error}"), "give this user access"),
        Ok(meta) if !meta.is_dir() => {
            let found = format!("{shown} is not a folder");
            Finding::wrong(what, found, "choose another with --data")
        }
        Ok(meta) if meta.permissions().mode() & 0o077 != 0 => {
            let found = format!("{shown} can be read by others");
            Finding::remark(what, found, "`chmod 700` it: it holds the ledger's keys")
        }
        Ok(_) => Finding::good(what, shown),
    }
}

fn space(data: &Path) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Ok(disk) = rustix::fs::statvfs(data) {
        let free = disk.f_bavail.saturating_mul(disk.f_frsize);
        let shown = format!("{} MiB free", free / 1_024 / 1_024);
        let fix = "a full disk makes the ledger read-only";
        let fix = (free < FREE_BYTES_WANTED).then_some(fix);
        findings.push(Finding::remark_if("disk space", shown, fix));
    }
    if rustix::fs::statfs(data).is_ok_and(|disk| disk.f_type == TMPFS_MAGIC) {
        let fix = "put it on a disk: a restart loses everything";
        let found = "the folder is in memory (tmpfs)";
        findings.push(Finding::wrong("disk", found, fix));
    }
    findings
}

fn sync_time(data: &Path) -> Finding {
    let what = "sync";
    match time_syncs(data) {
        Err(error) => Finding::wrong(what, error.to_string(), "the ledger cannot write here"),
        Ok(median) if median > SYNC_US_WANTED => {
            let fix = "every commit waits for one sync: use a faster disk";
            Finding::remark(what, format!("{median} us, median of {SYNCS}"), fix)
        }
        Ok(median) if median < SYNC_US_BELIEVED => {
            let fix = "too fast for a disk: it may lose what it acknowledged in a power cut";
            Finding::remark(what, format!("{median} us, median of {SYNCS}"), fix)
        }
        Ok(median) => Finding::good(what, format!("{median} us, median of {SYNCS}")),
    }
}

/// Measures the median time to make 4 KiB durable, in microseconds.
fn time_syncs(data: &Path) -> std::io::Result<u128> {
    let path = data.join("doctor.tmp");
    let times = write_and_sync(&path);
    let removed = std::fs::remove_file(&path);
    let mut times = times?;
    removed?;
    times.sort_unstable();
    Ok(times.get(SYNCS / 2).copied().unwrap_or_default())
}

/// Writes 4 KiB and syncs, `SYNCS` times. Returns how long each took, microseconds.
fn write_and_sync(path: &Path) -> std::io::Result<Vec<u128>> {
    let mut file = private_file(path)?;
    let mut times = Vec::with_capacity(SYNCS);
    for _ in 0..SYNCS {
        let began = SystemClock.boot();
        file.write_all(&[0; 4_096])?;
        file.sync_data()?;
        times.push(SystemClock.boot().since(began).as_micros());
    }
    Ok(times)
}
