//! Gathers settings: the flag or environment wins over the file, the file over the default. Each is noted for
//! `--print-settings` where it is gathered.

use std::path::PathBuf;

use clap::ValueEnum;

/// As wide as the longest name, `stripe_webhook_secret`.
const NAME_COLUMNS: usize = 21;

const FLAG: &str = "flag or environment";
const FILE: &str = "file";
const DEFAULT: &str = "default";

/// What was given, if anything was, and where it came from.
pub(super) fn first<T>(flag: Option<T>, file: Option<T>) -> (Option<T>, &'static str) {
    match (flag, file) {
        (Some(value), _) => (Some(value), FLAG),
        (None, Some(value)) => (Some(value), FILE),
        (None, None) => (None, DEFAULT),
    }
}

/// The settings that were gathered, a line for each: name, value, source. No secret is in it.
#[derive(Debug, Default)]
pub(super) struct Report(String);

impl Report {
    pub(super) fn note(&mut self, name: &str, value: &str, source: &str) {
        let line = format!("{name:<NAME_COLUMNS$} {value}  ({source})\n");
        self.0.push_str(&line);
    }

    /// What flag or file gave, else the default; noted as `show` writes it.
    pub(super) fn value<T>(
        &mut self,
        name: &str,
        (flag, file): (Option<T>, Option<T>),
        default: T,
        show: impl FnOnce(&T) -> String,
    ) -> T {
        let (value, source) = first(flag, file);
        let value = value.unwrap_or(default);
        self.note(name, &show(&value), source);
        value
    }

    /// What flag or file gave, if one did; noted as `show` writes it, or as `none`.
    pub(super) fn option<T>(
        &mut self,
        name: &str,
        (flag, file): (Option<T>, Option<T>),
        none: &str,
        show: impl FnOnce(&T) -> String,
    ) -> Option<T> {
        let (value, source) = first(flag, file);
        let shown = value.as_ref().map_or_else(|| none.to_owned(), show);
        self.note(name, &shown, source);
        value
    }

    /// The lines.
    pub(super) fn text(self) -> String {
        self.0
    }
}

/// Shows the word of a value.
pub(super) fn word(value: &impl ValueEnum) -> String {
    let value = value.to_possible_value();
    value.map_or_else(String::new, |value| value.get_name().to_owned())
}

/// Shows a file or folder.
#[expect(clippy::ptr_arg, reason = "settings own their paths")]
pub(super) fn path(path: &PathBuf) -> String {
    path.display().to_string()
}

/// Shows that there is a value.
pub(super) fn hidden<T>(_: &T) -> String {
    "(hidden)".to_owned()
}

/// Shows a list.
#[expect(clippy::ptr_arg, reason = "settings own their lists")]
pub(super) fn list(values: &Vec<String>) -> String {
    if values.is_empty() {
        return "none".to_owned();
    }
    values.join(", ")
}

/// The values of a flag, if there are any.
pub(super) fn given<T: Clone>(values: &[T]) -> Option<Vec<T>> {
    (!values.is_empty()).then(|| values.to_vec())
}
