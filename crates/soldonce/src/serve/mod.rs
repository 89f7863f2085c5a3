//! `soldonce serve`: the server on an embedded ledger, or on one that many servers share.

mod admin_key;
mod fault;
mod leases;
mod ledger;
mod logging;
mod payments;
mod settings;
mod shield;
mod start;
mod stop;
mod tls;
mod webhooks;

use std::path::{Path, PathBuf};

use clap::Args;

pub(crate) use admin_key::NewAdminKey;
use leases::LeaseUrlArgs;
pub(crate) use ledger::{DatabaseArgs, LedgerPlace, in_use};
pub(crate) use logging::start_logging;
pub(crate) use payments::{CaptureWord, PaymentArgs, stripe};
pub(crate) use settings::{
    CookieWord, FeedWord, FreeSales, LimitArgs, LogFormat, Settings, Shoppers,
};
use shield::ShieldArgs;
pub(crate) use shield::redis_shield;
use start::raise_descriptor_limit;
pub(crate) use start::start;
pub(crate) use stop::until_stopped;
use tls::TlsArgs;

use self::webhooks::WebhookWord;
use crate::env;
use crate::exit::{Exit, usage};
use crate::output::print;

/// Arguments of `soldonce serve`. Each can also stand in the settings file or the environment.
#[derive(Clone, Debug, Default, Args)]
#[command(after_help = "Examples:
  soldonce serve
  soldonce serve --listen 0.0.0.0:8080 --data /var/lib/soldonce --shoppers open --free-sales=off
  soldonce serve --database-url postgres://soldonce@db/soldonce --redis-url redis://cache
  soldonce serve --listen 0.0.0.0:8443 --tls-cert /etc/soldonce/cert.pem --tls-key /etc/soldonce/key.pem
  SOLDONCE_LISTEN=127.0.0.1:9000 soldonce serve --config soldonce.toml
  SOLDONCE_STRIPE_KEY=sk_.. SOLDONCE_STRIPE_WEBHOOK_SECRET=whsec_.. soldonce serve
  soldonce serve --trusted-proxies 10.0.0.0/8 --limit-commands 60/1m --limit-reads off

A flag wins over the environment, the environment over the file, the file over the default. The variable
SOLDONCE_LOG has the level of log lines (warn, debug), or that of some: soldonce_server=debug logs each request.
Exit code 0 when it was ended, 2 for settings that cannot be, 3 when something is not available, 4 when it
must be started again: its ledger failed to store, as on a full disk, or a part of it ended by itself. Let a
supervisor restart it.")]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag of the command line"
)]
pub(crate) struct ServeArgs {
    /// Settings file in TOML; its keys are the long names below, with `_` for `-`
    #[arg(long, env = "SOLDONCE_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    /// Where to listen [default: 127.0.0.1:8080]
    #[arg(long, env = "SOLDONCE_LISTEN", value_name = "ADDRESS")]
    listen: Option<String>,
    /// Where metrics and the routes for admin keys answer, and there alone; all other routes answer
    /// there too [default: on the listener of the rest]
    #[arg(long, env = "SOLDONCE_ADMIN_LISTEN", value_name = "ADDRESS")]
    admin_listen: Option<String>,
    #[command(flatten)]
    tls: TlsArgs,
    /// The folder of the embedded ledger [default: ./data]
    #[arg(long, env = "SOLDONCE_DATA", value_name = "FOLDER")]
    data: Option<PathBuf>,
    #[command(flatten)]
    database: DatabaseArgs,
    #[command(flatten)]
    shield: ShieldArgs,
    #[command(flatten)]
    leases: LeaseUrlArgs,
    #[command(flatten)]
    payments: PaymentArgs,
    /// Where webhook endpoints may be; `any`, for development, is also this machine and its network, and
    /// http [default: public]
    #[arg(long, env = "SOLDONCE_WEBHOOK_DESTINATIONS", value_enum)]
    webhook_destinations: Option<WebhookWord>,
    /// An admin key to accept; else one is made at the first start, shown once on a terminal, or kept in
    /// the file `admin-key` of the data folder
    #[arg(
        long,
        env = "SOLDONCE_ADMIN_KEY",
        value_name = "KEY",
        hide_env_values = true
    )]
    admin_key: Option<String>,
    /// Whether shoppers may come without a key: they get sessions [default: closed]
    #[arg(long, env = "SOLDONCE_SHOPPERS", value_enum)]
    shoppers: Option<Shoppers>,
    /// Whether the session cookie is for HTTPS alone [default: secure; where every address is of this
    /// machine's loopback only if one of the trusted proxies says `X-Forwarded-Proto: https`]
    #[arg(long, env = "SOLDONCE_COOKIE", value_enum)]
    cookie: Option<CookieWord>,
    /// Whether shoppers confirm units that cost something without a payment provider: `on`, or `off` if they
    /// confirm only what costs nothing. Must be said where shoppers are open without a provider
    #[arg(
        long,
        env = "SOLDONCE_FREE_SALES",
        value_enum,
        num_args = 0..=1,
        default_missing_value = "on"
    )]
    free_sales: Option<FreeSales>,
    /// Web origins besides the server's own that may read the feed; may be given several times
    #[arg(
        long,
        env = "SOLDONCE_ORIGINS",
        value_name = "ORIGIN",
        value_delimiter = ','
    )]
    origins: Vec<String>,
    /// How the server's own page follows an event: `stream`, or `poll` where a cache in front of the server
    /// answers a request of each page and second [default: stream]
    #[arg(long, env = "SOLDONCE_FEED", value_enum)]
    feed: Option<FeedWord>,
    /// Least time between two frames of an event's feed, milliseconds, 10 to 1000 [default: 100]
    #[arg(long, env = "SOLDONCE_FEED_TICK_MS", value_name = "N")]
    feed_tick_ms: Option<u64>,
    /// How long an event is kept once it is over and unchanged, at least 8 days (192h); then it is dropped with its
    /// holds, bookings and history [default: for ever]
    #[arg(long, env = "SOLDONCE_KEEP_ENDED_EVENTS", value_name = "TIME")]
    keep_ended_events: Option<String>,
    /// How log lines are written [default: text]
    #[arg(long, env = "SOLDONCE_LOG_FORMAT", value_enum)]
    log_format: Option<LogFormat>,
    #[command(flatten)]
    limits: LimitArgs,
    /// Start although the ledger is behind its high-water mark (the commits between are lost), or
    /// although the database may lose what it acknowledges
    #[arg(long, env = "SOLDONCE_ACCEPT_LOSS")]
    accept_loss: bool,
    /// Print every setting with its value and where it came from, and stop
    #[arg(long)]
    print_settings: bool,
}

/// Runs `soldonce serve`.
pub(crate) fn run(args: &ServeArgs) -> anyhow::Result<Exit> {
    let settings = Settings::gather(args).map_err(usage)?;
    if args.print_settings {
        print(&settings.report)?;
        return Ok(Exit::Done);
    }
    start_logging(settings.log_format)?;
    env::warn_of_unknown();
    raise_descriptor_limit(&settings.limits);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let started = start(&settings, None).await?;
        if let Some(key) = &started.new_admin_key {
            print(&format!("admin key: {key}\n"))?;
        }
        let scheme = settings.scheme();
        print(&format!(
            "soldonce serves on {scheme}://{}\n",
            started.address
        ))?;
        if let Some(address) = started.admin_address {
            print(&format!(
                "admin routes and metrics on {scheme}://{address}\n"
            ))?;
        }
        until_stopped(started).await
    })
}

impl ServeArgs {
    /// The arguments of a demo: its own folder, open to shoppers, paid through its own provider.
    pub(crate) fn demo(listen: &str, data: &Path, payments: PaymentArgs) -> Self {
        Self {
            listen: Some(listen.to_owned()),
            data: Some(data.to_owned()),
            payments,
            shoppers: Some(Shoppers::Open),
            cookie: Some(CookieWord::Plain),
            ..Self::default()
        }
    }

    /// The same with the operator's admin key, if there is one.
    #[must_use]
    pub(crate) fn with_admin_key(self, admin_key: Option<String>) -> Self {
        Self { admin_key, ..self }
    }
}
