//! Where a setting's value came from: flag or environment, then file, then default.

use std::fmt::Display;

/// A setting's value and where it came from.
#[derive(Clone, Debug)]
pub(crate) struct Sourced<T> {
    pub(crate) value: T,
    pub(super) source: &'static str,
}

/// As wide as the longest name, `stripe_webhook_secret`.
const NAME_COLUMNS: usize = 21;

const FLAG: &str = "flag or environment";
const FILE: &str = "file";
const DEFAULT: &str = "default";

impl<T> Sourced<T> {
    /// The same setting in another form.
    ///
    /// # Errors
    /// As `change`.
    pub(super) fn try_map<U>(
        self,
        change: impl FnOnce(T) -> anyhow::Result<U>,
    ) -> anyhow::Result<Sourced<U>> {
        Ok(Sourced {
            value: change(self.value)?,
            source: self.source,
        })
    }

    /// The first that is given, else the default.
    pub(super) fn first(flag: Option<T>, file: Option<T>, default: T) -> Self {
        match (flag, file) {
            (Some(value), _) => Self {
                value,
                source: FLAG,
            },
            (None, Some(value)) => Self {
                value,
                source: FILE,
            },
            (None, None) => Self {
                value: default,
                source: DEFAULT,
            },
        }
    }
}

/// A line of a report: name, value, source.
pub(super) fn line(name: &str, value: impl Display, source: &str) -> String {
    format!("{name:<NAME_COLUMNS$} {value}  ({source})\n")
}
