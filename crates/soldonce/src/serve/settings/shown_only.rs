//! Settings of the database and the provider, kept only for `--print-settings`.

use soldonce_engine::ledger::postgres::PostgresOptions;

use super::super::ServeArgs;
use super::super::ledger::StatementsWord;
use super::super::payments::CaptureWord;
use super::file::SettingsFile;
use super::source::{Sourced, line};
use super::word;

/// Holds no address and no secret.
#[derive(Clone, Debug)]
pub(super) struct ShownOnly {
    connections: Sourced<String>,
    statements: Sourced<StatementsWord>,
    stripe_key: Sourced<String>,
    stripe_webhook_secret: Sourced<String>,
    stripe_account: Sourced<String>,
    stripe_capture: Sourced<String>,
    stripe_url: Sourced<String>,
}

impl ShownOnly {
    /// As they are given by flags, environment and a file that nothing was taken from.
    pub(super) fn gather(args: &ServeArgs, file: &SettingsFile) -> Self {
        let (database, paid) = (&args.database, &args.payments);
        let text = |count: Option<usize>| count.map(|count| count.to_string());
        let secrets = file.stripe_webhook_secret.as_deref().unwrap_or_default();
        Self {
            connections: Sourced::first(
                text(database.connections),
                text(file.database_connections),
                PostgresOptions::new("").connections.to_string(),
            ),
            statements: Sourced::first(
                database.statements,
                file.database_statements,
                StatementsWord::Prepared,
            ),
            stripe_key: hidden(paid.stripe_key.as_ref(), file.stripe_key.as_ref()),
            stripe_webhook_secret: hidden(paid.stripe_webhook_secrets.first(), secrets.first()),
            stripe_account: Sourced::first(
                paid.stripe_account.clone(),
                file.stripe_account.clone(),
                "that of the key".to_owned(),
            ),
            stripe_capture: Sourced::first(
                paid.stripe_capture.as_ref().map(word),
                file.stripe_capture.as_ref().map(word),
                word(&CaptureWord::default()),
            ),
            stripe_url: Sourced::first(
                paid.stripe_url.clone(),
                file.stripe_url.clone(),
                "that of Stripe".to_owned(),
            ),
        }
    }

    /// A line for each that belongs to the database.
    pub(super) fn describe_database(&self) -> String {
        let (connections, statements) = (&self.connections, &self.statements);
        [
            line(
                "database_connections",
                &connections.value,
                connections.source,
            ),
            line(
                "database_statements",
                word(&statements.value),
                statements.source,
            ),
        ]
        .concat()
    }

    /// A line for each that belongs to the provider.
    pub(super) fn describe_payments(&self) -> String {
        let lines = [
            ("stripe_key", &self.stripe_key),
            ("stripe_webhook_secret", &self.stripe_webhook_secret),
            ("stripe_account", &self.stripe_account),
            ("stripe_capture", &self.stripe_capture),
            ("stripe_url", &self.stripe_url),
        ];
        lines
            .map(|(name, of)| line(name, &of.value, of.source))
            .concat()
    }
}

/// Whether one was given, and where; not what.
fn hidden(flag: Option<&String>, file: Option<&String>) -> Sourced<String> {
    let shown = |_: &String| "(hidden)".to_owned();
    Sourced::first(flag.map(shown), file.map(shown), "none".to_owned())
}
