//! How a run ended, and its exit code. They are other codes than those of the binary, because CMD owns
//! all small ones.

use std::time::Duration;

use soldonce_lease::{AcquireError, LostReason, Refusal};

use super::backend::BackendArgs;
use crate::exit::USAGE;

/// The exit code when another owner holds the lease, also after the whole wait.
const REFUSED: u8 = 110;
const UNKNOWN: u8 = 111;
const LOST: u8 = 112;
const UNAVAILABLE: u8 = 113;
const SIGNAL: u8 = 128;

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// CMD ended by itself, with this exit code.
    Done(u8),
    /// CMD was ended, because the lease was about to be lost or was lost.
    Lost(Option<LostReason>),
    /// Another held the lease.
    Refused(String),
    /// It is unknown whether it was granted; it is treated as not granted.
    Unknown(String),
    /// The backend did not answer, or its settings or this process failed.
    Unavailable(String),
    /// The request can never be granted.
    Usage(String),
    /// A signal ended the wait.
    Interrupted(u8),
}

impl Outcome {
    pub(crate) fn code(&self) -> u8 {
        match self {
            Self::Done(code) => *code,
            Self::Lost(_) => LOST,
            Self::Refused(_) => REFUSED,
            Self::Unknown(_) => UNKNOWN,
            Self::Unavailable(_) => UNAVAILABLE,
            Self::Usage(_) => USAGE,
            Self::Interrupted(signal) => SIGNAL.saturating_add(*signal),
        }
    }

    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::Done(_) => "done",
            Self::Lost(_) => "lost",
            Self::Refused(_) => "refused",
            Self::Unknown(_) => "unknown",
            Self::Unavailable(_) => "unavailable",
            Self::Usage(_) => "usage",
            Self::Interrupted(_) => "interrupted",
        }
    }

    /// Returns the message for people, if there is one.
    pub(crate) fn message(&self) -> Option<String> {
        match self {
            Self::Done(_) | Self::Interrupted(_) => None,
            Self::Lost(Some(reason)) => Some(format!("lease lost ({reason}): CMD was ended")),
            Self::Lost(None) => Some("lease not renewed in time: CMD was ended".to_owned()),
            Self::Refused(why) | Self::Unknown(why) | Self::Unavailable(why) | Self::Usage(why) => {
                Some(why.clone())
            }
        }
    }

    /// Builds the outcome of a lease that another owner held, for the whole wait if there was one.
    pub(crate) fn refused(refusal: &Refusal, wait: Duration) -> Self {
        Self::Refused(if wait.is_zero() {
            refusal.to_string()
        } else {
            let waited = wait.as_millis();
            format!("still held by another owner after {waited} ms")
        })
    }

    /// Maps a failed acquire to its outcome, in words for people who gave these options.
    pub(crate) fn of(error: &AcquireError, backend: &BackendArgs) -> Self {
        let why = error.to_string();
        match error {
            AcquireError::QueueFull => Self::Refused(why),
            AcquireError::Unknown { .. } => Self::Unknown(why),
            AcquireError::Invalid(_) => Self::Usage(why),
            AcquireError::Unavailable(error) => Self::Unavailable(backend.explain(error)),
            AcquireError::Fence(error) => Self::Unavailable(backend.explain_anchor(error)),
            AcquireError::Closed | _ => Self::Unavailable(why),
        }
    }
}

/// Returns the exit code of a process as a shell gives it: its own, or 128 + n after signal n.
pub(crate) fn exit_code(status: std::process::ExitStatus) -> u8 {
    use std::os::unix::process::ExitStatusExt;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    let signal = status.signal().and_then(|signal| u8::try_from(signal).ok());
    code.unwrap_or_else(|| SIGNAL.saturating_add(signal.unwrap_or_default()))
}
