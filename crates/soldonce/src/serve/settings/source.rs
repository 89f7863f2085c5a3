//! Reads what a server is given: a flag wins over the environment, that over the settings file, that over the
//! default. What is declared as an argument is a key of the file and a line of `--print-settings`, too.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;

use anyhow::Context;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use toml::{Table, Value};

use crate::env;
use crate::serve::ServeArgs;

/// Width of the names: that of the longest, `stripe_webhook_secret`.
const NAME_COLUMNS: usize = 21;

/// Arguments that the file cannot hold.
const NOT_IN_FILE: [&str; 3] = ["config", "accept_loss", "print_settings"];

/// What is shown of settings in place of what was given.
pub(crate) type Notes = BTreeMap<&'static str, String>;

/// The arguments, and where each came from.
pub(crate) struct Sources {
    pub(crate) args: ServeArgs,
    command: Command,
    matches: ArgMatches,
    file: Table,
}

impl Sources {
    /// Reads flags, environment and the settings file, if there is one.
    ///
    /// # Errors
    /// When the file cannot be read, or a key or value in it is wrong; the error names it.
    pub(crate) fn read(config: Option<&Path>) -> anyhow::Result<Self> {
        let command = env::without_empty(ServeArgs::augment_args(Command::new("serve")));
        let line = std::env::args_os().skip(1);
        let Some(path) = config else {
            return Self::new(command, line, "");
        };
        let name = path.display();
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("the settings file {name} cannot be read"))?;
        // The program has taken flags and environment before: what is wrong now is in the file.
        Self::new(command, line, &text)
            .with_context(|| format!("the settings file {name} is wrong"))
    }

    /// Reads a command line, which begins with the command's name, and the text of a settings file.
    pub(super) fn new(
        command: Command,
        line: impl IntoIterator<Item = OsString>,
        file: &str,
    ) -> anyhow::Result<Self> {
        let file: Table = toml::from_str(file).map_err(|error| named(&error, file))?;
        let over = over(&file, command.clone())?;
        // A value in the file is right also where another wins over it.
        let alone = env::without(over.clone()).try_get_matches_from(["serve"]);
        alone.map_err(|error| brief(&error))?;
        let matches = over.try_get_matches_from(line)?;
        Ok(Self {
            args: ServeArgs::from_arg_matches(&matches)?,
            command,
            matches,
            file,
        })
    }

    /// Returns a line for each setting: name, value, source. No secret is in it.
    pub(crate) fn report(&self, notes: &Notes) -> String {
        let args = self.command.get_arguments();
        let lines = args.filter(|arg| arg.get_id() != "print_settings");
        let lines = lines.map(|arg| {
            let name = arg.get_id().as_str();
            let value = notes.get(name).cloned().unwrap_or_else(|| self.shown(arg));
            let source = match self.matches.value_source(name) {
                Some(source) if source != ValueSource::DefaultValue => "flag or environment",
                _ if self.file.contains_key(name) => "file",
                _ => "default",
            };
            format!("{name:<NAME_COLUMNS$} {value}  ({source})\n")
        });
        lines.collect::<Vec<_>>().concat()
    }

    /// Returns what was given, unless it is secret, else the default that help tells.
    fn shown(&self, arg: &Arg) -> String {
        let Some(given) = self.matches.get_raw(arg.get_id().as_str()) else {
            let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
            let default = help
                .split_once("[default: ")
                .and_then(|(_, rest)| rest.split_once(']'));
            return default.map_or("none", |(default, _)| default).to_owned();
        };
        if arg.is_hide_env_values_set() {
            return "(hidden)".to_owned();
        }
        let given: Vec<_> = given.map(OsStr::to_string_lossy).collect();
        given.join(", ")
    }
}

/// Tells which line is no TOML. The error's own text shows the line, and it may have a secret.
fn named(error: &toml::de::Error, file: &str) -> anyhow::Error {
    let before = error.span().and_then(|span| file.get(..span.start));
    let line = before.unwrap_or_default().matches('\n').count() + 1;
    anyhow::anyhow!("line {line}: {}", error.message())
}

/// Returns what clap says of a wrong value, without its hint at `--help`.
fn brief(error: &clap::Error) -> anyhow::Error {
    let text = error.to_string();
    let said = text.split_once("\n\n").map_or(&*text, |(said, _)| said);
    anyhow::anyhow!(said.trim_start_matches("error: ").to_owned())
}

/// Returns the command with what the file says in place of its defaults.
fn over(file: &Table, mut command: Command) -> anyhow::Result<Command> {
    for (name, value) in file {
        let is_key = |arg: &&Arg| arg.get_id() == name && !NOT_IN_FILE.contains(&name.as_str());
        let arg = command.get_arguments().find(is_key);
        let arg = arg.with_context(|| format!("{name} is no setting"))?;
        let is_list = matches!(arg.get_action(), ArgAction::Append);
        let values = value.as_array().filter(|_| is_list);
        let values = values.map_or(std::slice::from_ref(value), Vec::as_slice);
        let texts: Option<Vec<String>> = values.iter().map(text).collect();
        let texts = texts.with_context(|| {
            format!("{name}: write a text or a whole number; a list only where it may be given several times")
        })?;
        command = command.mut_arg(name, |arg| arg.default_values(texts));
    }
    Ok(command)
}

/// Formats a value as on the command line; None unless it is a text or a whole number.
fn text(value: &Value) -> Option<String> {
    let number = || value.as_integer().map(|number| number.to_string());
    value.as_str().map(str::to_owned).or_else(number)
}
