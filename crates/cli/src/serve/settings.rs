//! Settings of the server: from flags, environment, file and defaults, each with where it came from.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::ValueEnum;
use serde::Deserialize;

use super::ServeArgs;

/// Whether shoppers may come without a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Shoppers {
    /// They get sessions and see events and seats.
    Open,
    /// Every request needs an API key.
    Closed,
}

/// How log lines are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// A setting's value and where it came from.
#[derive(Clone, Debug)]
pub(crate) struct Sourced<T> {
    pub(crate) value: T,
    source: &'static str,
}

const FLAG: &str = "flag or environment";
const FILE: &str = "file";
const DEFAULT: &str = "default";

impl<T> Sourced<T> {
    /// The first that is given, else the default.
    fn first(flag: Option<T>, file: Option<T>, default: T) -> Self {
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

/// Everything `serve` needs to know.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) listen: Sourced<String>,
    pub(crate) admin_listen: Sourced<Option<String>>,
    pub(crate) data: Sourced<PathBuf>,
    pub(crate) admin_key: Sourced<Option<AdminKey>>,
    pub(crate) shoppers: Sourced<Shoppers>,
    pub(crate) origins: Sourced<Vec<String>>,
    pub(crate) log_format: Sourced<LogFormat>,
    pub(crate) accept_loss: bool,
}

/// An admin key as the operator gave it. Not shown in `Debug`.
#[derive(Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct AdminKey(pub(crate) String);

impl std::fmt::Debug for AdminKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AdminKey(..)")
    }
}

/// The settings file. An unknown key stops the start.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct SettingsFile {
    listen: Option<String>,
    admin_listen: Option<String>,
    data: Option<PathBuf>,
    admin_key: Option<AdminKey>,
    shoppers: Option<Shoppers>,
    origins: Option<Vec<String>>,
    log_format: Option<LogFormat>,
}

/// Shortest admin key an operator may choose: anything less can be guessed.
const ADMIN_KEY_BYTES_MIN: usize = 16;

impl Settings {
    /// Gathers every setting from its sources.
    ///
    /// # Errors
    /// Names the setting or the file, the value, and what would be right.
    pub(crate) fn gather(args: &ServeArgs) -> anyhow::Result<Self> {
        let file = match &args.config {
            Some(path) => read_file(path)?,
            None => SettingsFile::default(),
        };
        let origins = (!args.origins.is_empty()).then(|| args.origins.clone());
        let admin_key = args.admin_key.clone().map(AdminKey);
        let settings = Self {
            listen: Sourced::first(
                args.listen.clone(),
                file.listen,
                "127.0.0.1:8080".to_owned(),
            ),
            admin_listen: Sourced::first(
                args.admin_listen.clone().map(Some),
                file.admin_listen.map(Some),
                None,
            ),
            data: Sourced::first(args.data.clone(), file.data, PathBuf::from("./data")),
            admin_key: Sourced::first(admin_key.map(Some), file.admin_key.map(Some), None),
            shoppers: Sourced::first(args.shoppers, file.shoppers, Shoppers::Closed),
            origins: Sourced::first(origins, file.origins, Vec::new()),
            log_format: Sourced::first(args.log_format, file.log_format, LogFormat::Text),
            accept_loss: args.accept_loss,
        };
        settings.check()?;
        Ok(settings)
    }

    fn check(&self) -> anyhow::Result<()> {
        if let Some(AdminKey(key)) = &self.admin_key.value {
            let short = key.len() < ADMIN_KEY_BYTES_MIN;
            anyhow::ensure!(
                !short && key.bytes().all(|byte| byte.is_ascii_graphic()),
                "admin_key: use at least {ADMIN_KEY_BYTES_MIN} visible ASCII characters; \
                 leave it out and one is made for you"
            );
        }
        Ok(())
    }

    /// Every setting, its value and where it came from, a line each. Secrets are not shown.
    pub(crate) fn describe(&self) -> String {
        let key = self
            .admin_key
            .value
            .as_ref()
            .map_or("made at the first start", |_| "(hidden)");
        let admin = self
            .admin_listen
            .value
            .as_deref()
            .unwrap_or("with the rest");
        let data = self.data.value.display();
        [
            line("listen", &self.listen.value, self.listen.source),
            line("admin_listen", admin, self.admin_listen.source),
            line("data", data, self.data.source),
            line("admin_key", key, self.admin_key.source),
            line("shoppers", word(&self.shoppers.value), self.shoppers.source),
            line(
                "origins",
                self.origins.value.join(", "),
                self.origins.source,
            ),
            line(
                "log_format",
                word(&self.log_format.value),
                self.log_format.source,
            ),
        ]
        .concat()
    }
}

fn word(value: &impl ValueEnum) -> String {
    value
        .to_possible_value()
        .map(|value| value.get_name().to_owned())
        .unwrap_or_default()
}

fn line(name: &str, value: impl Display, source: &str) -> String {
    format!("{name:<14} {value}  ({source})\n")
}

fn read_file(path: &Path) -> anyhow::Result<SettingsFile> {
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("the settings file {} cannot be read", path.display()))?;
    toml::from_str(&text).with_context(|| format!("the settings file {} is wrong", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_wins_over_the_default_and_says_so() {
        let args = ServeArgs {
            listen: Some("127.0.0.1:1".to_owned()),
            ..ServeArgs::default()
        };
        let settings = Settings::gather(&args).unwrap();
        assert_eq!(settings.listen.value, "127.0.0.1:1");
        let text = settings.describe();
        assert!(
            text.contains("127.0.0.1:1  (flag or environment)"),
            "{text}"
        );
        assert!(text.contains("closed  (default)"), "{text}");
    }

    #[test]
    fn an_unknown_key_in_the_file_is_refused_by_name() {
        let error = toml::from_str::<SettingsFile>("lisen = \"x\"").unwrap_err();
        assert!(error.to_string().contains("lisen"), "{error}");
    }

    #[test]
    fn a_short_admin_key_is_refused_and_never_shown() {
        let args = ServeArgs {
            admin_key: Some("hunter2".to_owned()),
            ..ServeArgs::default()
        };
        let error = format!("{:#}", Settings::gather(&args).unwrap_err());
        assert!(
            error.contains("admin_key") && !error.contains("hunter2"),
            "{error}"
        );
        let key = AdminKey("0123456789abcdef".to_owned());
        assert!(!format!("{key:?}").contains("0123"));
    }
}
