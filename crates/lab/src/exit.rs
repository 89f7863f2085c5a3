//! How a command ended, as its exit code: 0 done, 1 refused or violated, 2 usage, 3 unavailable. Most
//! usage errors are clap's; [`usage`] marks the others.

use std::process::ExitCode;

/// The outcome of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    Done,
    /// A check failed. A missed goal alone is no failure.
    Refused,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        match exit {
            Exit::Done => ExitCode::SUCCESS,
            Exit::Refused => ExitCode::from(1),
        }
    }
}

/// An error of wrong usage: options are invalid, so that a retry changes nothing.
#[derive(Debug, thiserror::Error)]
#[error("{0:#}")]
struct Usage(anyhow::Error);

/// Marks an error with the exit code of wrong usage.
pub(crate) fn usage(error: anyhow::Error) -> anyhow::Error {
    Usage(error).into()
}

pub(crate) fn code_of(error: &anyhow::Error) -> ExitCode {
    ExitCode::from(if error.is::<Usage>() { 2 } else { 3 })
}
