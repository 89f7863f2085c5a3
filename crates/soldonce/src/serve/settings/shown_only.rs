//! Settings of the database and the provider, kept only for `--print-settings`.

use clap::ValueEnum;
use soldonce_engine::ledger::postgres::PostgresOptions;

use super::super::ServeArgs;
use super::super::ledger::{DatabaseArgs, StatementsWord};
use super::super::payments::{CaptureWord, PaymentArgs};
use super::file::SettingsFile;
use super::source::{Sourced, line};
use super::word;

/// A line for each of them. Holds no address of the database and no secret.
#[derive(Clone, Debug)]
pub(super) struct ShownOnly {
    pub(super) database: String,
    pub(super) payments: String,
}

impl ShownOnly {
    /// Writes them as they are given by flags, environment and a file that nothing was taken from.
    pub(super) fn gather(args: &ServeArgs, file: &SettingsFile) -> Self {
        Self {
            database: of_database(&args.database, file),
            payments: of_payments(&args.payments, file),
        }
    }
}

fn of_database(given: &DatabaseArgs, file: &SettingsFile) -> String {
    let text = |count: Option<usize>| count.map(|count| count.to_string());
    let connections = PostgresOptions::new("").connections.to_string();
    [
        shown(
            "database_connections",
            [text(given.connections), text(file.database_connections)],
            &connections,
        ),
        shown(
            "database_statements",
            [words(given.statements), words(file.database_statements)],
            &word(&StatementsWord::Prepared),
        ),
    ]
    .concat()
}

fn of_payments(given: &PaymentArgs, file: &SettingsFile) -> String {
    let hidden = |secret: Option<&String>| secret.map(|_| "(hidden)".to_owned());
    let keys = [&given.stripe_key, &file.stripe_key];
    let secrets = file.stripe_webhook_secret.as_deref().unwrap_or_default();
    let secrets = [given.stripe_webhook_secrets.first(), secrets.first()];
    let accounts = [&given.stripe_account, &file.stripe_account];
    let captures = [given.stripe_capture, file.stripe_capture];
    let urls = [&given.stripe_url, &file.stripe_url];
    [
        shown("stripe_key", keys.map(|key| hidden(key.as_ref())), "none"),
        shown("stripe_webhook_secret", secrets.map(hidden), "none"),
        shown(
            "stripe_account",
            accounts.map(Clone::clone),
            "that of the key",
        ),
        shown(
            "stripe_capture",
            captures.map(words),
            &word(&CaptureWord::default()),
        ),
        shown("stripe_url", urls.map(Clone::clone), "that of Stripe"),
    ]
    .concat()
}

/// Writes the line of a setting that flag and file give so.
fn shown(name: &str, [flag, file]: [Option<String>; 2], default: &str) -> String {
    let Sourced { value, source } = Sourced::first(flag, file, default.to_owned());
    line(name, value, source)
}

fn words(value: Option<impl ValueEnum>) -> Option<String> {
    value.map(|value| word(&value))
}
