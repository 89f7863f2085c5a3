//! The errors between the ledger and its file: faults, each of which stops the writer if the writer meets it, and
//! why a ledger does not start.

use std::path::PathBuf;

use crate::ledger::ReadError;
use crate::ledger::rows::Damaged;

/// The store failed, or its rows are not what they should be.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault {
    /// SQLite refused or failed.
    #[error("SQLite: {0}")]
    Sqlite(#[from] rusqlite::Error),
    /// Another file of the folder failed.
    #[error("{file}: {error}")]
    File { file: String, error: std::io::Error },
    /// A row has values that no build writes.
    #[error(transparent)]
    Damaged(#[from] Damaged),
    /// A statement changed more or fewer rows than one: memory and file differ.
    #[error("{statement} changed {rows} rows instead of 1: memory and file differ")]
    Rows {
        statement: &'static str,
        rows: usize,
    },
}

impl Fault {
    /// Wraps an I/O error of `file`.
    pub(crate) fn of_file(file: &'static str) -> impl FnOnce(std::io::Error) -> Self {
        move |error| Self::File {
            file: file.to_owned(),
            error,
        }
    }

    /// Tells whether the file refused what memory decided: one is wrong, and nothing was stored.
    pub(crate) fn is_mismatch(&self) -> bool {
        match self {
            Self::Rows { .. } => true,
            Self::Sqlite(error) => {
                error.sqlite_error_code() == Some(rusqlite::ErrorCode::ConstraintViolation)
            }
            Self::File { .. } | Self::Damaged(_) => false,
        }
    }

    /// Creates the fault of a row of `table` that has illegal values.
    pub(crate) fn damaged(table: &'static str, what: impl Into<String>) -> Self {
        Self::Damaged(Damaged::new(table, what))
    }
}

/// Fails with [`Fault::Rows`] unless a statement changed exactly one row.
pub(crate) fn one_row(statement: &'static str, rows: usize) -> Result<(), Fault> {
    match rows {
        1 => Ok(()),
        rows => Err(Fault::Rows { statement, rows }),
    }
}

/// Why the ledger does not start.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The folder cannot be made or used.
    #[error("the data folder `{}` cannot be used: {error}", folder.display())]
    Folder {
        folder: PathBuf,
        /// The error of the system.
        error: std::io::Error,
    },
    /// Another process has it open.
    #[error(
        "the data folder `{}` is in use by another process: stop that one, or choose another folder",
        folder.display()
    )]
    Locked { folder: PathBuf },
    /// A ledger exists where another one was to be written.
    #[error("there is a ledger in `{}` already: name an empty folder, or move its `ledger.sqlite*` away", folder.display())]
    Taken { folder: PathBuf },
    /// There is no ledger to read.
    #[error("there is no ledger in `{}`", folder.display())]
    Missing { folder: PathBuf },
    /// The file has another schema.
    #[error("the ledger has schema {found}, this program knows {known}: {}", fix(*found, *known))]
    Schema {
        found: i64,
        /// The newest schema of this program.
        known: i64,
    },
    /// Acknowledged commits are missing.
    #[error(
        "the ledger in `{}` has lost commits: {what}. Put the newest copy of the folder back, or start \
         it once with `--accept-loss` (holds and sales since then are gone)",
        folder.display()
    )]
    Behind {
        folder: PathBuf,
        /// What shows that they are missing.
        what: String,
    },
    /// It cannot be told whether commits are missing.
    #[error(
        "the ledger in `{}` has no file `high-water`, so commits may be missing at its end unseen. Put \
         the file back; or, if this is the newest copy there is, start it once with `--accept-loss`",
        folder.display()
    )]
    Unmarked { folder: PathBuf },
    /// The stored rows are illegal or cannot be read.
    #[error("the ledger cannot be opened: {0} (`soldonce doctor` says what to do)")]
    Failed(String),
}

fn fix(found: i64, known: i64) -> &'static str {
    if found > known {
        "this program is older than the ledger, start a newer soldonce"
    } else {
        "run `soldonce migrate`, or start its server once"
    }
}

impl From<Fault> for OpenError {
    fn from(fault: Fault) -> Self {
        Self::Failed(fault.to_string())
    }
}

impl From<rusqlite::Error> for OpenError {
    fn from(error: rusqlite::Error) -> Self {
        Fault::from(error).into()
    }
}

impl From<Fault> for ReadError {
    fn from(fault: Fault) -> Self {
        Self::Failed(fault.to_string())
    }
}
