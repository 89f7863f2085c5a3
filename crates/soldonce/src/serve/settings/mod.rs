//! Settings of the server: from flags, environment, file and defaults, each with where it came from.

mod limits;
mod source;
mod stores;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use clap::ValueEnum;
use soldonce_core::Span;
use soldonce_core::limits::DROP_AFTER_MS_MIN;
use soldonce_engine::shield::RedisShield;
use soldonce_engine::webhook::address::Destinations;
use soldonce_server::limits::{FEED_TICK_MS_MAX, FEED_TICK_MS_MIN};
use soldonce_server::{Access, CookieSecurity, FeedSettings};
use soldonce_tls::Listener;

pub(crate) use limits::{LimitArgs, LimitSettings};
pub(crate) use source::{Notes, Sources};

use super::ServeArgs;
use super::leases::LeaseChoice;
use super::ledger::LedgerPlace;
use super::payments::PaymentPlace;
use crate::clear_text::ClearLink;
use crate::lease::span;
use stores::Stores;

/// Whether shoppers confirm units that cost something without a payment provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FreeSales {
    /// They do: nothing is charged.
    On,
    /// They confirm only what costs nothing.
    Off,
}

/// How log lines are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// Everything `serve` needs to know.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) listen: String,
    pub(crate) admin_listen: Option<String>,
    /// The server's own certificate, if it speaks HTTPS.
    pub(crate) tls: Option<Listener>,
    pub(crate) ledger: LedgerPlace,
    /// The shield that servers share, if there is one; not connected yet.
    pub(crate) shield: Option<Arc<RedisShield>>,
    pub(crate) leases: LeaseChoice,
    /// None without a payment provider.
    pub(crate) payments: Option<PaymentPlace>,
    pub(crate) webhooks: Destinations,
    pub(crate) admin_key: Option<AdminKey>,
    pub(crate) shoppers: Access,
    pub(crate) cookie: Option<CookieSecurity>,
    /// None if it was not given.
    pub(crate) free_sales: Option<FreeSales>,
    pub(crate) origins: Vec<String>,
    pub(crate) feed: FeedSettings,
    pub(crate) keep_ended_events: Option<Span>,
    pub(crate) log_format: LogFormat,
    /// The collector of spans, if there is one.
    pub(crate) otlp_endpoint: Option<String>,
    pub(crate) limits: LimitSettings,
    /// The links to other machines without verified encryption.
    pub(crate) clear_links: Vec<ClearLink>,
    /// What `--print-settings` shows in place of what was given.
    pub(crate) notes: Notes,
}

/// An admin key as the operator gave it. Not shown in `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct AdminKey(pub(crate) String);

impl std::fmt::Debug for AdminKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AdminKey(..)")
    }
}

/// Shortest admin key an operator may choose: anything less can be guessed.
const ADMIN_KEY_BYTES_MIN: usize = 16;

impl Settings {
    /// Builds the settings from the arguments, and checks them.
    ///
    /// # Errors
    /// Names the setting or the file, the value, and what would be right.
    pub(crate) fn gather(args: &ServeArgs) -> anyhow::Result<Self> {
        let mut notes = Notes::new();
        let stores = Stores::gather(args, &mut notes)?;
        let settings = Self {
            listen: args.listen.clone(),
            admin_listen: args.admin_listen.clone(),
            tls: args.tls.load()?,
            ledger: stores.ledger,
            shield: stores.shield,
            leases: stores.leases,
            payments: PaymentPlace::set_up(&args.payments)?,
            webhooks: args.webhook_destinations,
            admin_key: args.admin_key.clone().map(AdminKey),
            shoppers: args.shoppers,
            cookie: args.cookie,
            free_sales: args.free_sales,
            origins: args.origins.clone(),
            feed: FeedSettings {
                tick_ms: args.feed_tick_ms,
                page: args.feed,
            },
            keep_ended_events: keep(args, &mut notes)?,
            log_format: args.log_format,
            otlp_endpoint: args.otlp_endpoint.clone(),
            limits: LimitSettings::gather(&args.limits, &mut notes)?,
            clear_links: stores.clear_links,
            notes,
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
            is_said || self.shoppers == Access::Closed,
            "free_sales: say `on` or `off`, because shoppers are open and there is no payment provider: with \
             --free-sales=on everybody who opens the page gets units that cost something for nothing, \
             with --free-sales=off only those that cost nothing. To take money set stripe_key"
        );
        let tick_ms = self.feed.tick_ms;
        anyhow::ensure!(
            (FEED_TICK_MS_MIN..=FEED_TICK_MS_MAX).contains(&tick_ms),
            "feed_tick_ms: {tick_ms} is outside {FEED_TICK_MS_MIN} to {FEED_TICK_MS_MAX} milliseconds"
        );
        if let Some(url) = &self.otlp_endpoint {
            let (scheme, rest) = url.split_once("://").unwrap_or_default();
            anyhow::ensure!(
                ["http", "https"].contains(&scheme) && !rest.is_empty(),
                "otlp_endpoint: this is no address of a collector; write http://HOST:4318 or https://HOST"
            );
        }
        for origin in &self.origins {
            anyhow::ensure!(
                is_origin(origin),
                "origins: `{origin}` is no origin; write https://HOST or http://HOST:PORT, without a \
                 path"
            );
        }
        Ok(())
    }

    /// Returns the scheme of the server's addresses.
    pub(crate) const fn scheme(&self) -> &'static str {
        match self.tls {
            Some(_) => "https",
            None => "http",
        }
    }
}

/// Checks that an address is HOST:PORT. The host's name is resolved at the start.
fn is_address(name: &str, text: &str) -> anyhow::Result<()> {
    let port = text.rsplit_once(':').filter(|(host, _)| !host.is_empty());
    anyhow::ensure!(
        port.is_some_and(|(_, port)| port.parse::<u16>().is_ok()),
        "{name}: {text} is no address; write HOST:PORT, such as 127.0.0.1:8080"
    );
    Ok(())
}

/// Tells whether a browser could send this as the origin of a page.
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

/// Reads how long events are kept once they are over; None if it was not given.
fn keep(args: &ServeArgs, notes: &mut Notes) -> anyhow::Result<Option<Span>> {
    let Some(text) = &args.keep_ended_events else {
        return Ok(None);
    };
    let keep = span(text).map_err(|wrong| anyhow::anyhow!("keep_ended_events: {wrong}"))?;
    let keep = Span::from_ms(u64::try_from(keep.as_millis()).unwrap_or(u64::MAX));
    anyhow::ensure!(
        keep >= Span::from_ms(DROP_AFTER_MS_MIN),
        "keep_ended_events: {text} is shorter than 192h (8 days), for which idempotency keys and webhooks \
         need the event"
    );
    notes.insert("keep_ended_events", format!("{}h", keep.ms() / 3_600_000));
    Ok(Some(keep))
}
