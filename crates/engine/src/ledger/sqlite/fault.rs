//! The errors between the ledger and its file. Each one stops the writer if the writer meets it.

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
