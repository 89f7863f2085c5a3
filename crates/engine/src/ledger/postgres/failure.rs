//! Classifies the driver's errors: by SQLSTATE, severity and the name of the constraint, never by
//! text.

use deadpool_postgres::{PoolError, TimeoutType};
use soldonce_core::Rejection;
use tokio_postgres::error::{Severity, SqlState};

use super::OpenError;
use crate::ledger::ReadError;
use crate::ledger::rows::Damaged;

const POOL_FIX: &str = "behind a pool in transaction mode set database_statements to unprepared, \
                         and give `migrate` and `doctor` the address of the server itself";

/// Why a statement gave no rows.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    /// It was not sent.
    #[error("the database cannot be reached: {0}")]
    Away(String),
    /// It was not sent: the address leads to a server that takes no writes.
    #[error(
        "the database takes no writes: it is a standby (give the address of the primary), or \
         `default_transaction_read_only` is on there, as providers set it when storage is full"
    )]
    Standby,
    /// It was not sent: no connection was free.
    #[error("no connection was free: {0}")]
    Full(String),
    /// The server refused it and wrote nothing.
    #[error("the database refused: {} {message}", state.code())]
    Refused {
        state: SqlState,
        /// The name of the constraint that refused it.
        constraint: Option<String>,
        message: String,
    },
    /// It was sent, and its outcome is unknown.
    #[error("the database did not answer: {0}")]
    Unknown(String),
    /// A row that was read is illegal.
    #[error(transparent)]
    Damaged(#[from] Damaged),
}

impl Failure {
    /// Classifies the error of a statement that was sent.
    pub(super) fn of_statement(error: &tokio_postgres::Error) -> Self {
        let Some(said) = error.as_db_error() else {
            // Also a value that the driver itself could not read: what was sent may be stored.
            return Self::Unknown(chain(error));
        };
        let code = said.code();
        // FATAL ends the connection, perhaps behind a commit. 08: the connection. 40003: the server
        // itself does not know.
        let is_certain = matches!(said.parsed_severity(), Some(Severity::Error))
            && !code.code().starts_with("08")
            && *code != SqlState::T_R_STATEMENT_COMPLETION_UNKNOWN;
        if !is_certain {
            return Self::Unknown(format!("{} {}", code.code(), said.message()));
        }
        Self::Refused {
            state: code.clone(),
            constraint: said.constraint().map(str::to_owned),
            message: said.message().to_owned(),
        }
    }

    pub(super) fn of_pool(error: &PoolError) -> Self {
        match error {
            PoolError::Backend(error) if error.code() == Some(&SqlState::TOO_MANY_CONNECTIONS) => {
                Self::Full(chain(error))
            }
            // What a pool in transaction mode says to the settings of a session.
            PoolError::Backend(error) if error.code() == Some(&SqlState::PROTOCOL_VIOLATION) => {
                Self::Away(format!("{}; {POOL_FIX}", chain(error)))
            }
            PoolError::Backend(error) if is_of_a_standby(error) => Self::Standby,
            PoolError::Backend(error) => Self::Away(chain(error)),
            PoolError::Timeout(TimeoutType::Wait) => Self::Full(error.to_string()),
            PoolError::Timeout(TimeoutType::Create | TimeoutType::Recycle) => {
                Self::Away("no connection was made in time".to_owned())
            }
            PoolError::Closed | PoolError::NoRuntimeSpecified | PoolError::PostCreateHook(_) => {
                Self::Away(error.to_string())
            }
        }
    }

    /// Tells whether others were in the way and a new decision may succeed: a version or a key that
    /// another server wrote first, a deadlock, a lock that was not free in time.
    pub(super) fn is_contention(&self) -> bool {
        let first = [
            "audit_pkey",
            "holders_pkey",
            "events_pkey",
            "events_id_key",
            "charts_pkey",
            "charts_sha256_key",
            "units_only_rise",
        ];
        let states = [
            SqlState::T_R_SERIALIZATION_FAILURE,
            SqlState::T_R_DEADLOCK_DETECTED,
            SqlState::LOCK_NOT_AVAILABLE,
        ];
        self.is_refused_by(&first)
            || matches!(self, Self::Refused { state, .. } if states.contains(state))
    }

    /// Tells whether one of these constraints refused the statement.
    fn is_refused_by(&self, constraints: &[&str]) -> bool {
        matches!(self, Self::Refused { constraint: Some(by), .. } if constraints.contains(&&**by))
    }

    /// Tells whether the statement was not sent because no connection was free.
    pub(super) fn is_full(&self) -> bool {
        matches!(self, Self::Full(_))
    }

    /// Tells whether the database cannot do it now, for any of these reasons: it is away, takes no
    /// writes, is told to stop, or lacks memory or disk space.
    fn is_away(&self) -> bool {
        match self {
            Self::Away(_) | Self::Standby | Self::Unknown(_) => true,
            Self::Refused { state, .. } => {
                let is_of = |class| state.code().starts_with(class);
                *state == SqlState::READ_ONLY_SQL_TRANSACTION || is_of("53") || is_of("57")
            }
            Self::Full(_) | Self::Damaged(_) => false,
        }
    }

    /// Tells whether a row was not as the cache has it though its version was, or was not compared:
    /// a unit that another owns or has bought, a hold that is over.
    pub(super) fn contradicts_cache(&self) -> bool {
        self.is_refused_by(&[
            "rows_as_meant",
            "sold_unit_key",
            "units_sold_only_free",
            "units_owner",
            "lines_sold_stay",
            "audit_step",
        ])
    }

    /// Tells whether an idempotency key was used by another request meanwhile.
    pub(super) fn is_key_taken(&self) -> bool {
        self.is_refused_by(&["idempotency_pkey"])
    }

    /// Tells whether the database has the row of a holder that the cache does not have.
    pub(super) fn is_holder_known(&self) -> bool {
        self.is_refused_by(&["holders_pkey"])
    }

    /// Turns `Unknown` into `Away`, for a command that only read so far: it had no effect.
    pub(super) fn of_read(self) -> Self {
        if let Self::Unknown(why) = self {
            return Self::Away(why);
        }
        self
    }
}

impl From<Failure> for ReadError {
    fn from(failure: Failure) -> Self {
        let why = failure.to_string();
        if failure.is_full() || failure.is_contention() {
            Self::Full(why)
        } else if failure.is_away() {
            Self::Away(why)
        } else {
            Self::Failed(why)
        }
    }
}

impl From<Damaged> for ReadError {
    fn from(damage: Damaged) -> Self {
        Failure::from(damage).into()
    }
}

impl From<Failure> for Rejection {
    fn from(failure: Failure) -> Self {
        if failure.is_refused_by(&["event_dropped"]) {
            return Self::EventDropped;
        }
        if failure.is_contention() {
            return Self::Overloaded;
        }
        match failure {
            Failure::Full(_) => Self::Overloaded,
            Failure::Unknown(_) => Self::OutcomeUnknown,
            Failure::Away(_) | Failure::Standby | Failure::Refused { .. } | Failure::Damaged(_) => {
                Self::ReadOnly
            }
        }
    }
}

impl From<Failure> for OpenError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Away(why) => Self::Away(why),
            Failure::Standby => Self::Standby,
            Failure::Full(_)
            | Failure::Refused { .. }
            | Failure::Unknown(_)
            | Failure::Damaged(_) => Self::Failed(failure.to_string()),
        }
    }
}

impl From<Damaged> for OpenError {
    fn from(damage: Damaged) -> Self {
        Self::Failed(damage.to_string())
    }
}

/// Tells whether the driver refused a server that takes no writes. It has no error code for that:
/// it makes an I/O error of its own, not one of the operating system.
fn is_of_a_standby(error: &tokio_postgres::Error) -> bool {
    let source = std::error::Error::source(error);
    let source = source.and_then(|source| source.downcast_ref::<std::io::Error>());
    source.is_some_and(|error| {
        error.kind() == std::io::ErrorKind::PermissionDenied && error.raw_os_error().is_none()
    })
}

/// Formats an error with its sources: the driver keeps the reason there.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let sources = std::iter::successors(error.source(), |error| error.source());
    sources.fold(error.to_string(), |told, source| {
        format!("{told}: {source}")
    })
}
