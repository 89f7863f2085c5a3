//! Classifies errors of the driver, by SQLSTATE and severity, never by text.
//!
//! A statement is its own transaction here, so an answer of severity ERROR means that nothing was
//! written. FATAL ends the connection, possibly while the commit was waiting for a standby: it is
//! `Unknown`, as is a connection that broke.

use tokio_postgres::error::{DbError, ErrorPosition, Severity, SqlState};

use crate::BackendError;

/// A lock was not free in time, or there was a deadlock: retry.
const CONTENTION: [SqlState; 3] = [
    SqlState::LOCK_NOT_AVAILABLE,
    SqlState::T_R_DEADLOCK_DETECTED,
    // Under an isolation level stricter than the default.
    SqlState::T_R_SERIALIZATION_FAILURE,
];

/// The objects of `migrate` are missing, or older than this client.
const NOT_INSTALLED: [SqlState; 3] = [
    SqlState::UNDEFINED_FUNCTION,
    SqlState::UNDEFINED_TABLE,
    SqlState::UNDEFINED_COLUMN,
];

/// Classifies an error of a connect. Nothing was sent.
pub(super) fn of_connect(error: &tokio_postgres::Error) -> BackendError {
    let Some(said) = error.as_db_error() else {
        #[cfg(feature = "tls")]
        if soldonce_tls::is_certificate_refusal(error) {
            return BackendError::Config(chain(error));
        }
        return BackendError::NotSent(chain(error));
    };
    let class = said.code().code().get(..2);
    // 28: the user is not let in. 3D: no such database.
    if matches!(class, Some("28" | "3D")) {
        BackendError::Config(words(said))
    } else {
        BackendError::NotSent(words(said))
    }
}

/// Classifies an error of a statement that was sent.
pub(super) fn of_statement(error: &tokio_postgres::Error) -> BackendError {
    let Some(said) = error.as_db_error() else {
        return BackendError::Unknown(chain(error));
    };
    let certain = matches!(said.parsed_severity(), Some(Severity::Error));
    let code = said.code();
    // 08: the connection. 40003: the server itself does not know the outcome.
    if !certain
        || code.code().starts_with("08")
        || *code == SqlState::T_R_STATEMENT_COMPLETION_UNKNOWN
    {
        BackendError::Unknown(words(said))
    } else if NOT_INSTALLED.contains(code) {
        BackendError::Config(format!(
            "{}. Install the lease tables: postgres::migrate",
            words(said)
        ))
    } else {
        BackendError::Rejected {
            code: code.code().to_owned(),
            message: said.message().to_owned(),
        }
    }
}

/// Tells whether the statement failed only by contention, and wrote nothing.
pub(super) fn is_contention(error: &BackendError) -> bool {
    let BackendError::Rejected { code, .. } = error else {
        return false;
    };
    CONTENTION.iter().any(|state| state.code() == code)
}

/// Tells whether the server is read-only: another may be the primary, so drop the connection.
pub(super) fn is_misplaced(error: &BackendError) -> bool {
    let read_only = SqlState::READ_ONLY_SQL_TRANSACTION;
    matches!(error, BackendError::Rejected { code, .. } if *code == read_only.code())
}

fn words(said: &DbError) -> String {
    let at = match said.position() {
        Some(ErrorPosition::Original(at) | ErrorPosition::Internal { position: at, .. }) => {
            format!(" (at {at})")
        }
        None => String::new(),
    };
    format!("{} {}{at}", said.code().code(), said.message())
}

/// Formats an error with its source, where the driver keeps the reason.
fn chain(error: &tokio_postgres::Error) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}
