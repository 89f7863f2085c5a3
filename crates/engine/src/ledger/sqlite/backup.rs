//! A copy of a ledger while its server works, and the way back. A copy is a whole data folder as of one
//! commit: it has a high-water file of its own, so it starts as it is.

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
pub struct Copied {
    /// How many commits are in the copy.
    pub commits: u64,
    /// When the last one was made.
    pub last_commit_at: Timestamp,
    /// How many later commits were made, as the high-water file says that was in the target before.
    pub lost_commits: Option<u64>,
}

/// Copies the ledger of `from`, live or stopped, into `to`, which has none. What its server commits meanwhile
/// is not in the copy and does not wait for it; the write-ahead log keeps it until the copy is done.
///
/// # Errors
/// [`OpenError`]: `Missing` or `Schema` for the source, `Taken` or `Locked` for the target, `Failed` when
/// the source cannot be read or the target cannot be written.
pub fn copy(from: &Path, to: &Path) -> Result<Copied, OpenError> {
    let mut source = connection::reader(&Folder::new(from))?;
    let to = Folder::new(to);
    let lock = to.take()?;
    if to.has_any_of_database()? {
        return Err(OpenError::Taken {
            folder: to.path().to_owned(),
        });
    }
    // What cannot be read says nothing, and is written anew.
    let mark = to.high_water().ok().flatten();
    // The first read of it decides which commit the copy ends with.
    let snapshot = source.transaction()?;
    let missing = || Fault::damaged("head", "it is missing");
    let head = Head::find(&snapshot)?.ok_or_else(missing)?;
    copy_pages(&snapshot, &to)?;
    if let Err(error) = to.open_high_water(&head) {
        // Without it the copy would not start, and another try would find it in its way.
        std::fs::remove_file(to.database()).ok();
        return Err(error.into());
    }
    to.sync()?;
    drop(lock);
    Ok(Copied {
        commits: head.commits,
        last_commit_at: head.clock,
        lost_commits: mark.map(|mark| mark.commits.saturating_sub(head.commits)),
    })
}

/// Copies the pages into a file of another name first: half a copy is no ledger.
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
