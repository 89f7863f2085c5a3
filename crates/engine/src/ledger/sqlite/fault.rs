//! What can go wrong between the ledger and its file. Every one of them stops the writer.

use crate::ledger::rows::Damaged;

/// The store failed, or does not hold what it should.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault {
    /// SQLite refused or failed.
    #[error("SQLite: {0}")]
    Sqlite(#[from] rusqlite::Error),
    /// Another file of the folder failed.
    #[error("{file}: {error}")]
    File { file: String, error: std::io::Error },
    /// A row has values that were never written.
    #[error(transparent)]
    Damaged(#[from] Damaged),
    /// A statement touched another number of rows than it must: memory and file differ.
    #[error("{statement} changed {rows} rows instead of 1: memory and file differ")]
    Rows {
        statement: &'static str,
        rows: usize,
    },
}

impl Fault {
    /// What an error of the system means for `file`.
    pub(crate) fn of_file(file: &'static str) -> impl FnOnce(std::io::Error) -> Self {
        move |error| Self::File {
            file: file.to_owned(),
            error,
        }
    }

    /// Whether the file refused what memory decided: one of the two is wrong, and nothing was stored.
    pub(crate) fn is_mismatch(&self) -> bool {
        match self {
            Self::Rows { .. } => true,
            Self::Sqlite(error) => {
                error.sqlite_error_code() == Some(rusqlite::ErrorCode::ConstraintViolation)
            }
            Self::File { .. } | Self::Damaged(_) => false,
        }
    }

    /// `table` holds something impossible.
    pub(crate) fn damaged(table: &'static str, what: impl Into<String>) -> Self {
        Self::Damaged(Damaged::new(table, what))
    }
}

/// Passes a statement that changed exactly one row.
pub(crate) fn one_row(statement: &'static str, rows: usize) -> Result<(), Fault> {
    match rows {
        1 => Ok(()),
        rows => Err(Fault::Rows { statement, rows }),
    }
}
