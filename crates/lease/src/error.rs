//! Outcomes that are not a lease. A time-out is never a refusal: it is `Unknown`.

use std::time::Duration;

use crate::{FencingToken, InvalidName, Name};

/// Why a fence source gave no number.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FenceError {
    /// The source did not answer, or could not store the number.
    #[error("the fence source failed: {0}")]
    Unavailable(String),
    /// All numbers are used: 2,097,151 epochs, or all tokens below 2^53.
    #[error("no number is left above {above}")]
    Exhausted {
        /// The highest number in use.
        above: u64,
    },
}

/// Why a call has no answer from the backend itself.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BackendError {
    /// The command was certainly not sent.
    #[error("the backend could not be reached: {0}")]
    NotSent(String),
    /// The command may have run.
    #[error("the backend did not answer, and the command may have run: {0}")]
    Unknown(String),
    /// The backend refused to run the command.
    #[error("the backend refused the command: {code} {message}")]
    Rejected {
        /// The error code of the server, such as `READONLY` or an SQLSTATE.
        code: String,
        /// The error message of the server.
        message: String,
    },
    /// The address or the settings cannot work.
    #[error("configuration: {0}")]
    Config(String),
}

impl BackendError {
    /// Tells whether the error stays until a person changes something. `lease.md` 6.4.
    pub(crate) fn is_lasting(&self) -> bool {
        match self {
            Self::Config(_) => true,
            // Of PostgreSQL: no privilege.
            Self::Rejected { code, .. } => {
                ["NOPERM", "NOREPLID", "WRONGTYPE", "42501"].contains(&code.as_str())
            }
            Self::NotSent(_) | Self::Unknown(_) => false,
        }
    }

    /// Builds the error of a call without an answer in this time.
    pub(crate) fn unanswered(within: Duration) -> Self {
        Self::Unknown(format!("no answer in {} ms", within.as_millis()))
    }

    /// Adds the address of the server to the text of the error.
    #[cfg(any(feature = "postgres", feature = "redis"))]
    pub(crate) fn at(self, address: &dyn std::fmt::Display) -> Self {
        match self {
            Self::NotSent(why) => Self::NotSent(format!("{address}: {why}")),
            Self::Unknown(why) => Self::Unknown(format!("{address}: {why}")),
            Self::Config(why) => Self::Config(format!("{address}: {why}")),
            Self::Rejected { code, message } => Self::Rejected {
                code,
                message: format!("{message} ({address})"),
            },
        }
    }
}

/// A name that another owner holds.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Conflict {
    /// The name.
    pub name: Name,
    /// How long that owner holds it if it does not renew.
    pub remaining: Duration,
    /// The token of that owner.
    pub token: FencingToken,
}

impl Conflict {
    /// Creates a conflict, for the [`Refusal`] of a backend.
    pub const fn new(name: Name, remaining: Duration, token: FencingToken) -> Self {
        Self {
            name,
            remaining,
            token,
        }
    }
}

/// Another owner holds the names, or some of them. A backend begins with the default, which has no conflict.
#[derive(Clone, Debug, PartialEq, Eq, Default, thiserror::Error)]
#[error("held by another owner; retry after {} ms", .retry_after.as_millis())]
#[non_exhaustive]
pub struct Refusal {
    /// Every conflicting name; empty when there are only earlier waiters.
    pub conflicts: Vec<Conflict>,
    /// When to ask again: once all that hold the names end without renewal, or the first of them
    /// where any of the names will do.
    pub retry_after: Duration,
    /// Whether the waiter of this request has a place in the fair queue.
    pub queued: bool,
}

/// Why there is no lease, other than that another owner holds it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AcquireError {
    /// The command may have run, and we act as if not holding. The grant, if there is one, is
    /// released in the background.
    #[error("unknown whether it was granted; retry after {} ms", .retry_after.as_millis())]
    Unknown {
        /// The span after which the name is certainly free of this attempt.
        retry_after: Duration,
    },
    /// The backend cannot be used.
    #[error(transparent)]
    Unavailable(#[from] BackendError),
    /// The fence source gave no number for the token.
    #[error(transparent)]
    Fence(#[from] FenceError),
    /// Too many wait for this name already: 10,000 of this process, or 128 in the backend's fair queue.
    #[error("too many wait for this name already: try again later")]
    QueueFull,
    /// The [`crate::Leases`] were shut down.
    #[error("these leases are shut down")]
    Closed,
    /// The request can never be granted.
    #[error(transparent)]
    Invalid(#[from] InvalidRequest),
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum NotGranted {
    /// Another owner holds it, or held it for the whole wait.
    #[error(transparent)]
    Refused(Refusal),
    #[error(transparent)]
    Failed(#[from] AcquireError),
}

/// Why a request can never be granted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidRequest {
    /// A name is not valid.
    #[error(transparent)]
    Name(#[from] InvalidName),
    /// The ttl is outside the bounds of the backend.
    #[error("ttl {} ms is outside of {} ms to {} ms", .ttl.as_millis(), .least.as_millis(), .most.as_millis())]
    Ttl {
        /// The ttl that was asked for.
        ttl: Duration,
        /// The shortest ttl.
        least: Duration,
        /// The longest ttl: 24 hours, or the `ttl_longest` of a Redlock.
        most: Duration,
    },
    /// The longest life is shorter than the ttl, or longer than 30 days.
    #[error("max_lifetime {} ms must be between the ttl and 30 days", .0.as_millis())]
    MaxLifetime(Duration),
    /// The safety leaves less than half of the ttl, and no time for renewals.
    #[error("safety {} ms must be less than half of the ttl", .0.as_millis())]
    Safety(Duration),
    /// The wait for replicas is shorter than a millisecond or longer than nine seconds.
    #[error("a wait of {} us for replicas is outside of 1 ms to 9 s", .0.as_micros())]
    Replicas(Duration),
    /// The floor is above all tokens that can have been given by now, so that it is a mistake.
    #[error(
        "floor {0} is above all tokens that can have been given by now: give the highest that the target has stored, \
         correct that one if it is what is stored, and see that the clock here is right"
    )]
    Floor(FencingToken),
    /// No name, or more than the backend takes in one grant.
    #[error("{got} names in one grant; 1 to {most} are possible")]
    Names {
        /// How many names the request has.
        got: usize,
        /// The highest number of names.
        most: usize,
    },
    /// The meta text is too long, or has a key or a character that it may not have.
    #[error("meta: 256 bytes at most, no `;`, no control character, no empty key, no `=` in a key")]
    Meta,
    /// The backend cannot do what was asked.
    #[error("{backend} cannot {what}")]
    Unsupported {
        /// The backend.
        backend: &'static str,
        /// What it cannot do.
        what: &'static str,
    },
}

/// Why a lease is lost. A lost lease stays lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LostReason {
    /// The local deadline passed without a confirmed renewal.
    #[error("the deadline passed without a renewal")]
    Deadline,
    /// The backend has no such grant; or the thread of these [`crate::Leases`] has ended, so that
    /// nothing renews it any more.
    #[error("gone from the backend")]
    Gone,
    /// The backend has granted it to another owner.
    #[error("taken by token {by}")]
    Taken {
        /// The token of that owner.
        by: FencingToken,
    },
    /// It lived for its whole `max_lifetime`.
    #[error("its longest life is over")]
    CapReached,
    /// The target has seen a higher token.
    #[error("overtaken by token {by}")]
    Overtaken {
        /// The token that the target has seen.
        by: FencingToken,
    },
}

/// Why a lease was not renewed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RenewError {
    /// The lease is lost.
    #[error("lease lost: {0}")]
    Lost(LostReason),
    /// It may have been renewed; the deadline stays where it was.
    #[error("unknown whether it was renewed")]
    Unknown,
    /// The backend cannot be used; the deadline stays where it was.
    #[error(transparent)]
    Unavailable(BackendError),
}

/// Why there is no live token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TokenError {
    /// The lease is lost.
    #[error("lease lost: {0}")]
    Lost(LostReason),
    /// It was released.
    #[error("lease released")]
    Released,
    /// These leases were built with `no_fencing()`.
    #[error("these leases give no fencing tokens")]
    NoFencing,
}

/// How a release ended. None of them is an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReleaseOutcome {
    /// It was ours and is free.
    Released,
    /// It had ended before the release.
    AlreadyGone,
    /// It had ended before, and another owner, with this token, holds it.
    TakenBy(FencingToken),
}

/// The backend did not answer: the release is tried again until the ttl ends the lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("release not confirmed; it is tried again until the ttl ends")]
pub struct Unsettled;

/// Why `run` did not end with the output of its body alone.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RunError<T, E> {
    /// The lease was lost while the body ran.
    #[error("lease lost: {reason}")]
    Lost {
        /// Why it was lost.
        reason: LostReason,
        /// What the body returned, if it had finished.
        output: Option<Result<T, E>>,
    },
    /// The body failed, with the lease held.
    #[error("{0}")]
    Body(E),
}
