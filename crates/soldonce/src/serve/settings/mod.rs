//! Settings of the server: from flags, environment, file and defaults, each with where it came from.

mod feed;
mod file;
mod limits;
mod shown_only;
mod source;
#[cfg(test)]
mod tests;
mod tls;

use std::path::PathBuf;

use clap::ValueEnum;
use serde::Deserialize;
use soldonce_core::Span;
use soldonce_core::limits::DROP_AFTER_MS_MIN;

pub(crate) use feed::{FeedChoice, FeedWord};
pub(crate) use limits::{LimitArgs, LimitSettings};
pub(crate) use source::Sourced;
pub(crate) use tls::TlsChoice;

use super::ServeArgs;
use super::leases::LeaseChoice;
use super::ledger::{DatabaseArgs, LedgerPlace};
use super::payments::{PaymentArgs, PaymentPlace};
use super::shield::{Shared, ShieldPlace, ShieldRedis};
use super::webhooks::WebhookWord;
use crate::clear_text::ClearLink;
use crate::lease::span;
use file::SettingsFile;
use shown_only::ShownOnly;
use source::line;

/// Whether shoppers may come without a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Shoppers {
    /// They get sessions and see events and seats.
    Open,
    /// Every request needs an API key.
    Closed,
}

/// Over what the session cookie may travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum CookieWord {
    /// HTTPS alone.
    Secure,
    /// HTTP too.
    Plain,
}

/// Whether shoppers confirm units that cost something without a payment provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum FreeSales {
    /// They do: nothing is charged.
    On,
    /// They confirm only what costs nothing.
    Off,
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

/// Everything `serve` needs to know.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// The settings file, as it was named.
    config: Sourced<String>,
    pub(crate) listen: Sourced<String>,
    pub(crate) admin_listen: Sourced<Option<String>>,
    pub(crate) tls: TlsChoice,
    data: Sourced<PathBuf>,
    /// Whether a database is in its place.
    database: Sourced<bool>,
    pub(crate) ledger: LedgerPlace,
    pub(crate) shield: Sourced<ShieldPlace>,
    /// Whether it has a Redis of its own.
    shield_url: Sourced<bool>,
    pub(crate) leases: Sourced<LeaseChoice>,
    lease_url: bool,
    pub(crate) payments: Sourced<PaymentPlace>,
    pub(crate) webhooks: Sourced<WebhookWord>,
    pub(crate) admin_key: Sourced<Option<AdminKey>>,
    pub(crate) shoppers: Sourced<Shoppers>,
    pub(crate) cookie: Sourced<Option<CookieWord>>,
    /// Nothing where it was not said.
    pub(crate) free_sales: Sourced<Option<FreeSales>>,
    pub(crate) origins: Sourced<Vec<String>>,
    pub(crate) feed: FeedChoice,
    pub(crate) keep_ended_events: Sourced<Option<Span>>,
    pub(crate) log_format: Sourced<LogFormat>,
    accept_loss: Sourced<&'static str>,
    pub(crate) limits: LimitSettings,
    /// What leads to another machine without encryption.
    pub(crate) clear_links: Vec<ClearLink>,
    shown_only: ShownOnly,
}

/// An admin key as the operator gave it. Not shown in `Debug`.
#[derive(Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct AdminKey(pub(crate) String);

impl std::fmt::Debug for AdminKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AdminKey(..)")
    }
}

/// Shortest admin key an operator may choose: anything less can be guessed.
const ADMIN_KEY_BYTES_MIN: usize = 16;

impl Settings {
    /// Gathers every setting from its sources.
    ///
    /// # Errors
    /// Names the setting or the file, the value, and what would be right.
    pub(crate) fn gather(args: &ServeArgs) -> anyhow::Result<Self> {
        let read = args.config.as_deref().map(file::read);
        let mut file = read.transpose()?.unwrap_or_default();
        let feed = FeedChoice::gather(args, &file);
        let shown_only = ShownOnly::gather(args, &file);
        let origins = (!args.origins.is_empty()).then(|| args.origins.clone());
        let (key, given) = (args.admin_key.clone(), args.database.clone());
        let redis = args.limits.redis_url.clone().or(file.redis_url.clone());
        let limits = LimitSettings::gather(&args.limits, &mut file)?;
        let is_database = is_given(given.url.as_ref(), file.database_url.as_ref());
        let database = DatabaseArgs {
            url: given.url.or(file.database_url.take()),
            connections: given.connections.or(file.database_connections),
            statements: given.statements.or(file.database_statements),
        };
        let clear_links = clear_links(args, &file, &database, redis.as_deref());
        let tls = TlsChoice::gather(args, &mut file)?;
        let shield = shield(args, &file, &database, redis.as_deref())?;
        let payments = payments(&args.payments, &mut file)?;
        let lease_urls = lease_urls(args, &mut file);
        let data = Sourced::first(args.data.clone(), file.data, PathBuf::from("./data"));
        let lease_url = !lease_urls.value.is_empty();
        let leases =
            lease_urls.try_map(|urls| LeaseChoice::new(urls, database.url.clone(), &data.value))?;
        let mut ledger = LedgerPlace::new(Some(data.value.clone()), &database)?;
        if args.accept_loss {
            ledger = ledger.accept_loss();
        }
        let config = args.config.as_ref().map(|path| path.display().to_string());
        let settings = Self {
            config: Sourced::first(config, None, "none".to_owned()),
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
            tls,
            data,
            database: is_database,
            ledger,
            shield,
            shield_url: is_given(args.shield.shield_url.as_ref(), file.shield_url.as_ref()),
            leases,
            lease_url,
            payments,
            webhooks: Sourced::first(
                args.webhook_destinations,
                file.webhook_destinations,
                WebhookWord::Public,
            ),
            admin_key: Sourced::first(key.map(AdminKey).map(Some), file.admin_key.map(Some), None),
            shoppers: Sourced::first(args.shoppers, file.shoppers, Shoppers::Closed),
            cookie: Sourced::first(args.cookie.map(Some), file.cookie.map(Some), None),
            free_sales: Sourced::first(args.free_sales.map(Some), file.free_sales.map(Some), None),
            origins: Sourced::first(origins, file.origins, Vec::new()),
            feed,
            keep_ended_events: keep(args, file.keep_ended_events)?,
            log_format: Sourced::first(args.log_format, file.log_format, LogFormat::Text),
            accept_loss: Sourced::first(args.accept_loss.then_some("yes"), None, "no"),
            limits,
            clear_links,
            shown_only,
        };
        settings.check()?;
        Ok(settings)
    }

    fn check(&self) -> anyhow::Result<()> {
        is_address("listen", &self.listen.value)?;
        if let Some(address) = &self.admin_listen.value {
            is_address("admin_listen", address)?;
        }
        if let Some(AdminKey(key)) = &self.admin_key.value {
            let short = key.len() < ADMIN_KEY_BYTES_MIN;
            anyhow::ensure!(
                !short && key.bytes().all(|byte| byte.is_ascii_graphic()),
                "admin_key: use at least {ADMIN_KEY_BYTES_MIN} visible ASCII characters; \
                 leave it out and one is made for you"
            );
        }
        self.feed.check()?;
        let is_said = self.free_sales.value.is_some() || self.payments.value.is_some();
        anyhow::ensure!(
            is_said || self.shoppers.value == Shoppers::Closed,
            "free_sales: say `on` or `off`, because shoppers are open and there is no payment provider: with \
             --free-sales=on everybody who opens the page gets units that cost something for nothing, \
             with --free-sales=off only those that cost nothing. To take money set stripe_key"
        );
        for origin in &self.origins.value {
            anyhow::ensure!(
                is_origin(origin),
                "origins: `{origin}` is no origin; write https://HOST or http://HOST:PORT, without a \
                 path"
            );
        }
        Ok(())
    }

    fn describe_keep(&self) -> String {
        let Sourced { value, source } = &self.keep_ended_events;
        let hours = value.map(|keep| format!("{}h", keep.ms() / 3_600_000));
        line(
            "keep_ended_events",
            hours.as_deref().unwrap_or("for ever"),
            source,
        )
    }

    /// Where the shield and the leases are.
    fn describe_shield_and_leases(&self) -> String {
        let shield_url = if self.shield_url.value {
            "(hidden)"
        } else {
            "that of redis_url"
        };
        let leases = self.leases.value.shown(self.lease_url);
        [
            line("shield", word(&self.shield.value.word), self.shield.source),
            line("shield_url", shield_url, self.shield_url.source),
            line("lease_url", leases, self.leases.source),
        ]
        .concat()
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
        let cookie = self.cookie.value.as_ref().map(word);
        let cookie = cookie.as_deref().unwrap_or("secure unless on loopback");
        let data = self.data.value.display();
        let database = if self.database.value {
            "(hidden; in place of data)"
        } else {
            "none"
        };
        [
            line("config", &self.config.value, self.config.source),
            line("listen", &self.listen.value, self.listen.source),
            line("admin_listen", admin, self.admin_listen.source),
            self.tls.describe(),
            line("data", data, self.data.source),
            line("database_url", database, self.database.source),
            self.shown_only.database.clone(),
            self.describe_shield_and_leases(),
            self.shown_only.payments.clone(),
            line(
                "webhook_destinations",
                word(&self.webhooks.value),
                self.webhooks.source,
            ),
            line("admin_key", key, self.admin_key.source),
            line("shoppers", word(&self.shoppers.value), self.shoppers.source),
            line("cookie", cookie, self.cookie.source),
            line(
                "free_sales",
                self.free_sales
                    .value
                    .as_ref()
                    .map_or_else(|| "off".to_owned(), word),
                self.free_sales.source,
            ),
            line(
                "origins",
                self.origins.value.join(", "),
                self.origins.source,
            ),
            self.feed.describe(),
            self.describe_keep(),
            line(
                "log_format",
                word(&self.log_format.value),
                self.log_format.source,
            ),
            self.limits.describe(),
            line(
                "accept_loss",
                self.accept_loss.value,
                self.accept_loss.source,
            ),
        ]
        .concat()
    }
}

/// Whether a setting that is not shown was given.
fn is_given(flag: Option<&String>, file: Option<&String>) -> Sourced<bool> {
    Sourced::first(flag.map(|_| true), file.map(|_| true), false)
}

/// Whether a server could listen there. What the host's name leads to is found out at the start.
fn is_address(name: &str, text: &str) -> anyhow::Result<()> {
    let port = text.rsplit_once(':').filter(|(host, _)| !host.is_empty());
    anyhow::ensure!(
        port.is_some_and(|(_, port)| port.parse::<u16>().is_ok()),
        "{name}: {text} is no address; write HOST:PORT, such as 127.0.0.1:8080"
    );
    Ok(())
}

/// Whether a browser could say that a page is of this origin.
fn is_origin(text: &str) -> bool {
    let host = text
        .strip_prefix("https://")
        .or_else(|| text.strip_prefix("http://"));
    let is_host = |host: &str| {
        let stray = |byte: u8| !byte.is_ascii_graphic() || b"/?#@\\".contains(&byte);
        !host.is_empty() && !host.bytes().any(stray)
    };
    host.is_some_and(is_host)
}

/// For how long events are kept once they are over.
fn keep(args: &ServeArgs, file: Option<String>) -> anyhow::Result<Sourced<Option<Span>>> {
    let given = Sourced::first(
        args.keep_ended_events.clone().map(Some),
        file.map(Some),
        None,
    );
    given.try_map(|text| {
        let Some(text) = text else { return Ok(None) };
        let keep = span(&text).map_err(|wrong| anyhow::anyhow!("keep_ended_events: {wrong}"))?;
        let keep = Span::from_ms(u64::try_from(keep.as_millis()).unwrap_or(u64::MAX));
        anyhow::ensure!(
            keep >= Span::from_ms(DROP_AFTER_MS_MIN),
            "keep_ended_events: {text} is shorter than 192h (8 days), for which idempotency keys and webhooks \
             need the event"
        );
        Ok(Some(keep))
    })
}

fn payments(given: &PaymentArgs, file: &mut SettingsFile) -> anyhow::Result<Sourced<PaymentPlace>> {
    let by_flag = given.stripe_key.is_some().then_some(());
    let by_file = file.stripe_key.is_some().then_some(());
    let secrets = &given.stripe_webhook_secrets;
    let secrets = (!secrets.is_empty()).then(|| secrets.clone());
    let all = PaymentArgs {
        stripe_key: given.stripe_key.clone().or(file.stripe_key.take()),
        stripe_webhook_secrets: secrets
            .or(file.stripe_webhook_secret.take())
            .unwrap_or_default(),
        stripe_account: given.stripe_account.clone().or(file.stripe_account.take()),
        stripe_capture: given.stripe_capture.or(file.stripe_capture.take()),
        stripe_url: given.stripe_url.clone().or(file.stripe_url.take()),
    };
    Sourced::first(by_flag, by_file, ()).try_map(|()| PaymentPlace::new(&all))
}

fn lease_urls(args: &ServeArgs, file: &mut SettingsFile) -> Sourced<Vec<String>> {
    let given = args.leases.lease_url.clone();
    let given = (!given.is_empty()).then_some(given);
    Sourced::first(given, file.lease_url.take(), Vec::new())
}

fn shield(
    args: &ServeArgs,
    file: &SettingsFile,
    database: &DatabaseArgs,
    redis: Option<&str>,
) -> anyhow::Result<Sourced<ShieldPlace>> {
    let shared = match database.url {
        Some(_) => Shared::Yes,
        None => Shared::No,
    };
    let name = Sourced::first(args.shield.shield.map(Some), file.shield.map(Some), None);
    let own = args.shield.shield_url.as_ref().or(file.shield_url.as_ref());
    let redis = ShieldRedis::first(own.map(String::as_str), redis);
    name.try_map(|word| ShieldPlace::new(word, shared, redis))
}

/// The links to other machines that are not encrypted.
fn clear_links(
    args: &ServeArgs,
    file: &SettingsFile,
    database: &DatabaseArgs,
    redis: Option<&str>,
) -> Vec<ClearLink> {
    let database = database.url.as_deref();
    let database = database.and_then(|url| ClearLink::to_database("database_url", url));
    let shield = args.shield.shield_url.as_ref().or(file.shield_url.as_ref());
    let redis = [
        ("redis_url", redis),
        ("shield_url", shield.map(String::as_str)),
    ];
    let redis = redis
        .into_iter()
        .filter_map(|(name, url)| Some((name, url?)));
    let redis = redis.filter_map(|(name, url)| ClearLink::to_redis(name, url));
    let leases = match args.leases.lease_url.as_slice() {
        [] => file.lease_url.as_deref().unwrap_or_default(),
        given => given,
    };
    let leases = leases.iter().filter_map(|url| {
        let setting = "lease_url";
        if url.starts_with("postgres") {
            ClearLink::to_database(setting, url)
        } else {
            ClearLink::to_redis(setting, url)
        }
    });
    database.into_iter().chain(redis).chain(leases).collect()
}

fn word(value: &impl ValueEnum) -> String {
    value
        .to_possible_value()
        .map(|value| value.get_name().to_owned())
        .unwrap_or_default()
}
