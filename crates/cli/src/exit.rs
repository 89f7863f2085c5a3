//! How a command ended, as its exit code (`docs`: 0 done, 1 refused or violated, 2 usage,
//! 3 unavailable). Usage errors are clap's.

use std::process::ExitCode;

/// What a subcommand answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The work is done.
    Done,
    /// A check failed, or what was asked for was refused.
    Refused,
    /// What `lease run` ends with: the code of the command it ran, or one of its own.
    Code(u8),
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        match exit {
            Exit::Done => ExitCode::SUCCESS,
            Exit::Refused => ExitCode::from(1),
            Exit::Code(code) => ExitCode::from(code),
        }
    }
}

/// The exit code of options that contradict each other.
pub(crate) const USAGE: u8 = 2;

/// The exit code of an error: something needed was not available.
pub(crate) const UNAVAILABLE: u8 = 3;
