//! The file of an account that outlives its process: a line of JSON for each change, written before
//! a request is answered. When most of its lines are out of date, the file is rewritten as one line.
//! It outlives the process, not a crash of the machine (no fsync): it is about no real money.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{ErrorKind, Result, Seek, SeekFrom, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::{Deserialize, Serialize};

use super::account::{Account, Changes};
use super::idempotency::{KeyRecord, Keys};
use super::limits::{JOURNAL_LINES_MIN, JOURNAL_LINES_PER_KEPT};

/// What one call changed, or all that is kept.
#[derive(Debug, Serialize, Deserialize)]
struct Line {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    changes: Option<Changes>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    keys: Vec<KeyRecord>,
}

/// The file that an account is stored in.
#[derive(Debug, Default)]
pub(super) struct Journal {
    path: PathBuf,
    /// `None` until the first change: until then another process may be using the file.
    file: Option<File>,
    /// Length of the whole lines that were read, bytes.
    length: u64,
    lines: usize,
}

impl Journal {
    /// Reads what an earlier process stored into `account` and `keys`; there may be no file yet.
    ///
    /// # Errors
    /// If it cannot be read, or a complete line is not one that this wrote.
    fn read(path: &Path, account: &mut Account, keys: &mut Keys) -> Result<Self> {
        let text = match std::fs::read(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            read => read?,
        };
        let mut journal = Self {
            path: path.to_owned(),
            ..Self::default()
        };
        for text in text.split_inclusive(|byte| *byte == b'\n') {
            // Torn by the end of its process: its request was not answered.
            if text.last() != Some(&b'\n') {
                break;
            }
            let line: Line = serde_json::from_slice(text)?;
            if let Some(changes) = line.changes {
                account.restore(changes);
            }
            line.keys.into_iter().for_each(|kept| keys.put(kept));
            journal.lines += 1;
            journal.length += text.len() as u64;
        }
        account.take_changes();
        Ok(journal)
    }

    /// Appends what changed since the last call; rewrites the file when it has become too long.
    ///
    /// # Errors
    /// If it cannot be written: then the file may have less than the account.
    pub(super) fn write(&mut self, account: &mut Account, keys: &mut Keys) -> Result<()> {
        let changes = Some(account.take_changes()).filter(|changes| !changes.is_empty());
        let keys_answered = keys.take_answered();
        if changes.is_none() && keys_answered.is_empty() {
            return Ok(());
        }
        let line = line_of(changes, keys_answered)?;
        let file = match &mut self.file {
            Some(file) => file,
            closed => closed.insert(open(&self.path, self.length)?),
        };
        file.write_all(&line)?;
        self.lines += 1;
        let kept = account.kept() + keys.kept();
        if self.lines >= JOURNAL_LINES_MIN.max(kept * JOURNAL_LINES_PER_KEPT) {
            self.write_anew(account, keys)?;
        }
        Ok(())
    }

    fn write_anew(&mut self, account: &Account, keys: &Keys) -> Result<()> {
        let anew = self.path.with_extension("new");
        let mut file = private().truncate(true).open(&anew)?;
        file.write_all(&line_of(Some(account.everything()), keys.all_answered())?)?;
        std::fs::rename(&anew, &self.path)?;
        self.file = Some(file);
        // As many as it has objects: the next time it is twice as large.
        self.lines = account.kept() + keys.kept();
        Ok(())
    }
}

/// Where changes are written to.
#[derive(Debug)]
pub(super) enum Keeping {
    /// Nowhere: the account ends with its process.
    None,
    Journal(Journal),
    /// In a file that could not be written: no request is answered any more.
    Broken,
}

/// An account, its keys, and where they are kept.
#[derive(Debug)]
pub(super) struct Holdings {
    pub(super) account: Account,
    pub(super) keys: Keys,
    pub(super) keeping: Keeping,
}

/// Restores the account and its keys from the file `path`, if one is given.
pub(super) fn holdings(mut account: Account, path: Option<&Path>) -> anyhow::Result<Holdings> {
    let mut keys = Keys::default();
    let keeping = match path {
        None => Keeping::None,
        Some(path) => {
            let read = Journal::read(path, &mut account, &mut keys);
            Keeping::Journal(read.with_context(|| format!("the account in {}", path.display()))?)
        }
    };
    Ok(Holdings {
        account,
        keys,
        keeping,
    })
}

fn line_of(changes: Option<Changes>, keys: Vec<KeyRecord>) -> Result<Vec<u8>> {
    let mut text = serde_json::to_vec(&Line { changes, keys })?;
    text.push(b'\n');
    Ok(text)
}

/// The mode of the file: it has the account's secrets.
const PRIVATE: u32 = 0o600;

/// Returns options that open a file for writing and create it unreadable for other users.
fn private() -> OpenOptions {
    let mut options = File::options();
    options.create(true).write(true).mode(PRIVATE);
    options
}

/// Opens the file for appending at `length`, which cuts off a torn last line.
fn open(path: &Path, length: u64) -> Result<File> {
    let mut file = private().truncate(false).open(path)?;
    // A file of an earlier version may be readable by others.
    file.set_permissions(Permissions::from_mode(PRIVATE))?;
    file.set_len(length)?;
    file.seek(SeekFrom::Start(length))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::super::account::ApiCall;
    use super::super::form::Form;
    use super::super::limits::OVER_MAX;
    use super::super::route::Route;
    use super::*;

    fn run(account: &mut Account, route: Route, id: &str) -> String {
        let asked = ApiCall {
            route,
            id,
            form: &Form::parse("amount=900&currency=eur").unwrap(),
            key: None,
            refund_fails: false,
        };
        let shown = account.run(0, &asked).unwrap();
        shown["id"].as_str().unwrap().to_owned()
    }

    /// Imitates a demo of days: file and account stay small, and intents that are open are kept.
    #[test]
    fn what_is_over_is_forgotten_and_the_file_is_written_anew() {
        let name = format!("soldonce-journal-{}.jsonl", std::process::id());
        let path = std::env::temp_dir().join(name);
        let fresh = || (Account::new(String::new(), 7), Keys::default());
        let (mut account, mut keys) = fresh();
        let mut journal = Journal::read(&path, &mut account, &mut keys).unwrap();
        let mode = || std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        let open = run(&mut account, Route::CreateIntent, "");
        journal.write(&mut account, &mut keys).unwrap();
        assert_eq!(mode(), PRIVATE, "as it is made");
        for _ in 0..JOURNAL_LINES_MIN {
            let id = run(&mut account, Route::CreateIntent, "");
            run(&mut account, Route::Cancel, &id);
            journal.write(&mut account, &mut keys).unwrap();
        }
        assert_eq!(account.kept(), OVER_MAX + 1);
        assert_eq!(mode(), PRIVATE, "as it is written anew");

        let (mut again, mut keys) = fresh();
        let journal = Journal::read(&path, &mut again, &mut keys).unwrap();
        assert!(journal.lines < JOURNAL_LINES_MIN, "{}", journal.lines);
        assert_eq!(again.intents(), account.intents());
        assert!(again.client_secret(&open).is_some());
        // A file of an earlier version, with secrets in it.
        std::fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        drop(super::open(&path, journal.length).unwrap());
        assert_eq!(mode(), PRIVATE, "as it is opened");
        std::fs::remove_file(&path).unwrap();
    }
}
