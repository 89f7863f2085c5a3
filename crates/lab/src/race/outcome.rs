//! The answer to one buyer, and which errors of a server are ordinary answers.

use deadpool_postgres::tokio_postgres::Error;
use deadpool_postgres::tokio_postgres::error::SqlState;
use soldonce_core::OnHold;

/// The answer to one buyer.
#[derive(Clone, Debug)]
pub(super) enum Outcome {
    /// The buyer has the seats. The product gives a hold, which is confirmed afterwards; textbook
    /// strategies sell at once.
    Won(Option<OnHold>),
    /// Another buyer has a seat, or gets it: an ordinary answer.
    Refused(&'static str),
    /// Anything else.
    Failed(String),
}

impl From<Error> for Outcome {
    /// Maps an error of the database. That the guards refuse is an ordinary answer.
    fn from(error: Error) -> Self {
        let Some(state) = error.code() else {
            return Self::Failed("connection lost".to_owned());
        };
        let code = state.code();
        match state {
            state if *state == SqlState::UNIQUE_VIOLATION => Self::Refused("sold_already"),
            state if *state == SqlState::CHECK_VIOLATION => Self::Refused("stale_fence"),
            state if *state == SqlState::LOCK_NOT_AVAILABLE => Self::Refused("locked"),
            state if *state == SqlState::T_R_DEADLOCK_DETECTED => {
                Self::Failed(format!("deadlock {code}"))
            }
            state if *state == SqlState::QUERY_CANCELED => Self::Failed(format!("timeout {code}")),
            _ => Self::Failed(code.to_owned()),
        }
    }
}

impl From<redis::RedisError> for Outcome {
    fn from(error: redis::RedisError) -> Self {
        Self::Failed(format!("redis {:?}", error.kind()))
    }
}
