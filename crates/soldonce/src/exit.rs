//! How a command ended, as its exit code (`docs`: 0 done, 1 refused or violated, 2 usage,
//! 3 unavailable, 4 to be started again). Most usage errors are clap's; [`usage`] marks the others.

use std::process::ExitCode;

/// The exit code of a server whose next start repairs what made it end.
const RESTART: u8 = 4;

/// How a subcommand ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    Done,
    /// A check failed, or what was asked for was refused.
    Refused,
    /// The server ended so that its supervisor starts it again.
    Restart,
    /// What `lease run` ends with: the code of the command it ran, or one of its own.
    Code(u8),
}

impl Exit {
    /// Returns [`Exit::Done`] if so, else [`Exit::Refused`].
    #[expect(clippy::fn_params_excessive_bools, reason = "what was found out")]
    pub(crate) const fn done_if(is_done: bool) -> Self {
        if is_done { Self::Done } else { Self::Refused }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        match exit {
            Exit::Done => ExitCode::SUCCESS,
            Exit::Refused => ExitCode::from(REFUSED),
            Exit::Restart => ExitCode::from(RESTART),
            Exit::Code(code) => ExitCode::from(code),
        }
    }
}

/// The exit code of invalid options or settings.
pub(crate) const USAGE: u8 = 2;

/// The exit code of an error: something needed was not available.
const UNAVAILABLE: u8 = 3;

/// The exit code of what was refused, or of a check that failed.
pub(crate) const REFUSED: u8 = 1;

/// An error with its exit code.
#[derive(Debug, thiserror::Error)]
#[error("{error:#}")]
struct CodedError {
    error: anyhow::Error,
    code: u8,
}

/// Marks an error with the exit code of wrong usage: options, settings or a settings file are
/// invalid, so that a retry changes nothing.
pub(crate) fn usage(error: anyhow::Error) -> anyhow::Error {
    let code = USAGE;
    CodedError { error, code }.into()
}

/// Marks an error with the exit code of a refusal.
pub(crate) fn refused(error: anyhow::Error) -> anyhow::Error {
    let code = REFUSED;
    CodedError { error, code }.into()
}

pub(crate) fn code_of(error: &anyhow::Error) -> u8 {
    let coded: Option<&CodedError> = error.downcast_ref();
    coded.map_or(UNAVAILABLE, |coded| coded.code)
}

#[cfg(test)]
mod tests {
    use anyhow::{Context, anyhow};

    use super::*;

    #[test]
    fn wrong_usage_keeps_its_words_and_its_code_in_any_context() {
        let wrong = usage(anyhow!("no number").context("listen"));
        let shown = format!("{wrong:#}");
        assert_eq!((shown.as_str(), code_of(&wrong)), ("listen: no number", 2));
        let deeper = Err::<(), _>(wrong).context("serve").unwrap_err();
        assert_eq!(code_of(&deeper), 2);
        assert_eq!(code_of(&refused(anyhow!("no such key"))), 1);
        assert_eq!(code_of(&anyhow!("no answer")), 3);
    }
}
