//! Online backup of a ledger, and its restore. A copy is a whole data folder as of one commit: it
//! has a high-water file of its own, so a server can start on it as it is.

use std::fs::File;
use std::path::Path;

use rusqlite::Connection;
use rusqlite::backup::{Backup, StepResult};
use soldonce_core::Timestamp;

use super::fault::Fault;
use super::folder::Folder;
use super::tables::head::Head;
use super::{OpenError, connection};

/// What was copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyReport {
    /// How many commits are in the copy.
    pub commits: u64,
    /// The ledger's time of the last of them.
    pub last_commit_at: Timestamp,
    /// Later commits that the copy lacks, by the target's old high-water file; none without one.
    pub lost_commits: Option<u64>,
}

/// Copies the ledger of `from`, live or stopped, into `to`, which has none. Later commits of its
/// server are not in the copy and do not wait for it; the write-ahead log keeps them until it is
/// done. A folder that was made for a copy that failed is removed again.
///
/// # Errors
/// [`OpenError`]: `Missing` or `Schema` for the source, `Taken` or `Locked` for the target, `Failed` when
/// the source cannot be read or the target cannot be written.
pub fn copy(from: &Path, to: &Path) -> Result<CopyReport, OpenError> {
    let mut source = connection::reader(&Folder::new(from))?;
    let to = Folder::new(to);
    let is_new = !to.exists()?;
    let lock = to.take()?;
    let copied = copy_ledger(&mut source, &to);
    // Another process may have made a ledger there before the lock was taken.
    if is_new && copied.is_err() && to.has_any_of_database().is_ok_and(|any| !any) {
        to.remove();
    }
    drop(lock);
    copied
}

fn copy_ledger(source: &mut Connection, to: &Folder) -> Result<CopyReport, OpenError> {
    if to.has_any_of_database()? {
        return Err(OpenError::Taken {
            folder: to.path().to_owned(),
        });
    }
    // An unreadable mark counts as none, and is written again below.
    let mark = to.high_water().ok().flatten();
    // The first read of the snapshot decides with which commit the copy ends.
    let snapshot = source.transaction()?;
    let missing = || Fault::damaged("head", "it is missing");
    let head = Head::find(&snapshot)?.ok_or_else(missing)?;
    copy_pages(&snapshot, to)?;
    // Synced before the target's own mark is replaced, which tells the next copy what is lost.
    let is_marked_before = mark.is_some();
    let marked = to.sync().and_then(|()| Ok(to.open_high_water(&head)?));
    let synced = marked.and_then(|_| if is_marked_before { Ok(()) } else { to.sync() });
    if let Err(error) = synced {
        // Without the mark the copy would not start, and the database would block the next copy.
        std::fs::remove_file(to.database()).ok();
        return Err(error);
    }
    Ok(CopyReport {
        commits: head.commits,
        last_commit_at: head.clock,
        lost_commits: mark.map(|mark| mark.commits.saturating_sub(head.commits)),
    })
}

/// Copies the pages into a file of another name and renames it: half a copy is no ledger.
fn copy_pages(snapshot: &Connection, to: &Folder) -> Result<(), OpenError> {
    let part = to.make_part()?;
    copy_into(&part, snapshot, to).map_err(|error| {
        // A full disk is not filled further by copies that failed.
        std::fs::remove_file(&part).ok();
        OpenError::Failed(format!("the copy in `{}`: {error}", to.path().display()))
    })
}

fn copy_into(part: &Path, snapshot: &Connection, to: &Folder) -> Result<(), Fault> {
    let mut target = Connection::open(part)?;
    // The file is synced once, when it is whole.
    target.pragma_update(None, "journal_mode", "off")?;
    target.pragma_update(None, "synchronous", "off")?;
    let ended = Backup::new(snapshot, &mut target)?.step(-1)?;
    if ended != StepResult::Done {
        let ended = std::io::Error::other(format!("it ended as {ended:?}"));
        return Err(Fault::of_file("pages")(ended));
    }
    drop(target);
    let synced = File::open(part).and_then(|file| file.sync_all());
    let named = synced.and_then(|()| std::fs::rename(part, to.database()));
    named.map_err(Fault::of_file("ledger.sqlite"))
}
