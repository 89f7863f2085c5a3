//! Settings of the server: from flags, environment, file and defaults, each with where it came from.

mod file;
mod limits;
mod source;
mod stores;
#[cfg(test)]
mod tests;

use clap::ValueEnum;
use serde::Deserialize;
use soldonce_core::Span;
use soldonce_core::limits::DROP_AFTER_MS_MIN;
use soldonce_server::limits::{FEED_TICK_MS, FEED_TICK_MS_MAX, FEED_TICK_MS_MIN};
use soldonce_server::{FeedSettings, PageFeed};
use soldonce_tls::Listener;

pub(crate) use limits::{LimitArgs, LimitSettings};

use super::ServeArgs;
use super::leases::LeaseChoice;
use super::ledger::LedgerPlace;
use super::payments::{CaptureWord, PaymentArgs, PaymentPlace};
use super::shield::ShieldPlace;
use super::tls::TlsArgs;
use super::webhooks::WebhookWord;
use crate::clear_text::ClearLink;
use crate::lease::span;
use file::SettingsFile;
use source::{Report, first, given, hidden, list, path, word};
use stores::Stores;

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

/// How the page follows an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum FeedWord {
    /// By a stream for each page.
    Stream,
    /// By a request each second.
    Poll,
}

/// Everything `serve` needs to know.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) listen: String,
    pub(crate) admin_listen: Option<String>,
    /// The server's own certificate, if it speaks HTTPS.
    pub(crate) tls: Option<Listener>,
    pub(crate) ledger: LedgerPlace,
    pub(crate) shield: ShieldPlace,
    pub(crate) leases: LeaseChoice,
    pub(crate) payments: PaymentPlace,
    pub(crate) webhooks: WebhookWord,
    pub(crate) admin_key: Option<AdminKey>,
    pub(crate) shoppers: Shoppers,
    pub(crate) cookie: Option<CookieWord>,
    /// Nothing where it was not said.
    pub(crate) free_sales: Option<FreeSales>,
    pub(crate) origins: Vec<String>,
    pub(crate) feed: FeedSettings,
    pub(crate) keep_ended_events: Option<Span>,
    pub(crate) log_format: LogFormat,
    pub(crate) limits: LimitSettings,
    /// What leads to another machine without encryption.
    pub(crate) clear_links: Vec<ClearLink>,
    /// Every setting, its value and where it came from, a line each. Secrets are not shown.
    pub(crate) report: String,
}

/// An admin key as the operator gave it. Not shown in `Debug`.
#[derive(Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct AdminKey(pub(crate) String);

impl std::fmt::Debug for AdminKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AdminKey(..)")
    }
}

const DEFAULT_LISTEN: &str = "127.0.0.1:8080";

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
        let mut report = Report::default();
        report.option("config", (args.config.clone(), None), "none", path);
        let (listen, admin_listen) = addresses(args, &mut file, &mut report);
        let tls = tls(args, &mut file, &mut report)?;
        let stores = Stores::gather(args, &mut file, &mut report)?;
        let payments = payments(&args.payments, &mut file, &mut report)?;
        let webhooks = (args.webhook_destinations, file.webhook_destinations);
        let webhooks = report.value("webhook_destinations", webhooks, WebhookWord::Public, word);
        let admin_key = args.admin_key.clone().map(AdminKey);
        let admin_key = (admin_key, file.admin_key.take());
        let admin_key = report.option("admin_key", admin_key, "made at the first start", hidden);
        let shoppers = (args.shoppers, file.shoppers);
        let shoppers = report.value("shoppers", shoppers, Shoppers::Closed, word);
        let cookie = (args.cookie, file.cookie);
        let cookie = report.option("cookie", cookie, "secure unless on loopback", word);
        let free_sales = (args.free_sales, file.free_sales);
        let free_sales = report.option("free_sales", free_sales, "off", word);
        let origins = (given(&args.origins), file.origins.take());
        let origins = report.value("origins", origins, Vec::new(), list);
        let feed = feed(args, &file, &mut report)?;
        let keep_ended_events = keep(args, &mut file, &mut report)?;
        let log_format = (args.log_format, file.log_format);
        let log_format = report.value("log_format", log_format, LogFormat::Text, word);
        let limits = LimitSettings::gather(&args.limits, &mut file, &mut report)?;
        let accept_loss = args.accept_loss.then_some("yes");
        report.value("accept_loss", (accept_loss, None), "no", |&word| {
            word.into()
        });
        let settings = Self {
            listen,
            admin_listen,
            tls,
            ledger: stores.ledger,
            shield: stores.shield,
            leases: stores.leases,
            payments,
            webhooks,
            admin_key,
            shoppers,
            cookie,
            free_sales,
            origins,
            feed,
            keep_ended_events,
            log_format,
            limits,
            clear_links: stores.clear_links,
            report: report.text(),
        };
        settings.check()?;
        Ok(settings)
    }

    fn check(&self) -> anyhow::Result<()> {
        is_address("listen", &self.listen)?;
        if let Some(address) = &self.admin_listen {
            is_address("admin_listen", address)?;
        }
        if let Some(AdminKey(key)) = &self.admin_key {
            let short = key.len() < ADMIN_KEY_BYTES_MIN;
            anyhow::ensure!(
                !short && key.bytes().all(|byte| byte.is_ascii_graphic()),
                "admin_key: use at least {ADMIN_KEY_BYTES_MIN} visible ASCII characters; \
                 leave it out and one is made for you"
            );
        }
        let is_said = self.free_sales.is_some() || self.payments.is_some();
        anyhow::ensure!(
            is_said || self.shoppers == Shoppers::Closed,
            "free_sales: say `on` or `off`, because shoppers are open and there is no payment provider: with \
             --free-sales=on everybody who opens the page gets units that cost something for nothing, \
             with --free-sales=off only those that cost nothing. To take money set stripe_key"
        );
        for origin in &self.origins {
            anyhow::ensure!(
                is_origin(origin),
                "origins: `{origin}` is no origin; write https://HOST or http://HOST:PORT, without a \
                 path"
            );
        }
        Ok(())
    }

    /// How addresses of the server begin.
    pub(crate) const fn scheme(&self) -> &'static str {
        match self.tls {
            Some(_) => "https",
            None => "http",
        }
    }
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

/// Where to listen, and where for operators.
fn addresses(
    args: &ServeArgs,
    file: &mut SettingsFile,
    report: &mut Report,
) -> (String, Option<String>) {
    let listen = (args.listen.clone(), file.listen.take());
    let listen = report.value("listen", listen, DEFAULT_LISTEN.to_owned(), Clone::clone);
    let admin = (args.admin_listen.clone(), file.admin_listen.take());
    let admin = report.option("admin_listen", admin, "with the rest", Clone::clone);
    (listen, admin)
}

/// The certificate, if the server speaks HTTPS.
fn tls(
    args: &ServeArgs,
    file: &mut SettingsFile,
    report: &mut Report,
) -> anyhow::Result<Option<Listener>> {
    let certificate = (args.tls.tls_cert.clone(), file.tls_cert.take());
    let key = (args.tls.tls_key.clone(), file.tls_key.take());
    TlsArgs {
        tls_cert: report.option("tls_cert", certificate, "none", path),
        tls_key: report.option("tls_key", key, "none", path),
    }
    .load()
}

/// How feeds are sent.
fn feed(
    args: &ServeArgs,
    file: &SettingsFile,
    report: &mut Report,
) -> anyhow::Result<FeedSettings> {
    let page = report.value("feed", (args.feed, file.feed), FeedWord::Stream, word);
    let tick_ms = (args.feed_tick_ms, file.feed_tick_ms);
    let tick_ms = report.value("feed_tick_ms", tick_ms, FEED_TICK_MS, u64::to_string);
    anyhow::ensure!(
        (FEED_TICK_MS_MIN..=FEED_TICK_MS_MAX).contains(&tick_ms),
        "feed_tick_ms: {tick_ms} is outside {FEED_TICK_MS_MIN} to {FEED_TICK_MS_MAX} milliseconds"
    );
    let page = match page {
        FeedWord::Stream => PageFeed::Stream,
        FeedWord::Poll => PageFeed::Poll,
    };
    Ok(FeedSettings { tick_ms, page })
}

/// For how long events are kept once they are over.
fn keep(
    args: &ServeArgs,
    file: &mut SettingsFile,
    report: &mut Report,
) -> anyhow::Result<Option<Span>> {
    let (text, source) = first(
        args.keep_ended_events.clone(),
        file.keep_ended_events.take(),
    );
    let Some(text) = text else {
        report.note("keep_ended_events", "for ever", source);
        return Ok(None);
    };
    let keep = span(&text).map_err(|wrong| anyhow::anyhow!("keep_ended_events: {wrong}"))?;
    let keep = Span::from_ms(u64::try_from(keep.as_millis()).unwrap_or(u64::MAX));
    anyhow::ensure!(
        keep >= Span::from_ms(DROP_AFTER_MS_MIN),
        "keep_ended_events: {text} is shorter than 192h (8 days), for which idempotency keys and webhooks \
         need the event"
    );
    let hours = format!("{}h", keep.ms() / 3_600_000);
    report.note("keep_ended_events", &hours, source);
    Ok(Some(keep))
}

fn payments(
    args: &PaymentArgs,
    file: &mut SettingsFile,
    report: &mut Report,
) -> anyhow::Result<PaymentPlace> {
    let key = (args.stripe_key.clone(), file.stripe_key.take());
    let secrets = (
        given(&args.stripe_webhook_secrets),
        file.stripe_webhook_secret.take(),
    );
    let account = (args.stripe_account.clone(), file.stripe_account.take());
    let capture = (args.stripe_capture, file.stripe_capture);
    let default_capture = word(&CaptureWord::default());
    let url = (args.stripe_url.clone(), file.stripe_url.take());
    PaymentPlace::new(&PaymentArgs {
        stripe_key: report.option("stripe_key", key, "none", hidden),
        stripe_webhook_secrets: report
            .option("stripe_webhook_secret", secrets, "none", hidden)
            .unwrap_or_default(),
        stripe_account: report.option("stripe_account", account, "that of the key", Clone::clone),
        stripe_capture: report.option("stripe_capture", capture, &default_capture, word),
        stripe_url: report.option("stripe_url", url, "that of Stripe", Clone::clone),
    })
}
