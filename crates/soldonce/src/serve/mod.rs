//! `soldonce serve`: the server on an embedded ledger, or on one that many servers share.

mod admin_key;
mod fault;
mod leases;
mod ledger;
mod logging;
mod payments;
mod settings;
mod shield;
mod signals;
mod start;
mod stop;
mod tls;
mod traces;

use std::path::{Path, PathBuf};

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Command, FromArgMatches};
use soldonce_engine::webhook::address::Destinations;
use soldonce_server::limits::FEED_TICK_MS;
use soldonce_server::{Access, CookieSecurity, PageFeed};

pub(crate) use admin_key::{NewAdminKey, private_file};
pub(crate) use leases::EPOCHS;
pub(crate) use ledger::{DatabaseArgs, LEDGER, LedgerArgs, LedgerPlace, in_use};
pub(crate) use logging::start_logging;
pub(crate) use payments::{PaymentArgs, capture, stripe};
pub(crate) use settings::{FreeSales, LimitArgs, LogFormat, Settings, Sources};
use shield::ShieldWord;
pub(crate) use shield::redis_shield;
use start::raise_descriptor_limit;
pub(crate) use start::{descriptors_for, start};
pub(crate) use stop::until_stopped;
use tls::TlsArgs;

use crate::env;
use crate::exit::{Exit, usage};
use crate::output::print;

/// Arguments of `soldonce serve`. Each can also stand in the settings file or the environment.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  soldonce serve
  soldonce serve --listen 0.0.0.0:8080 --data /var/lib/soldonce --shoppers open --free-sales=off
  soldonce serve --database-url postgres://soldonce@db/soldonce --redis-url redis://cache
  soldonce serve --listen 0.0.0.0:8443 --tls-cert /etc/soldonce/cert.pem --tls-key /etc/soldonce/key.pem
  SOLDONCE_LISTEN=127.0.0.1:9000 soldonce serve --config soldonce.toml
  SOLDONCE_STRIPE_KEY=sk_.. SOLDONCE_STRIPE_WEBHOOK_SECRET=whsec_.. soldonce serve
  soldonce serve --trusted-proxies 10.0.0.0/8 --limit-commands 60/1m --limit-reads off

A flag wins over the environment, the environment over the file, the file over the default. What may be given
several times is a list in the file; in a variable its values are separated by commas, those of SOLDONCE_LEASE_URL
by spaces. The variable SOLDONCE_LOG has the level of log lines (warn, debug), or that of some:
soldonce_server=debug logs each request.

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
    /// Where to listen
    #[arg(long, env = "SOLDONCE_LISTEN", value_name = "ADDRESS")]
    #[arg(default_value = "127.0.0.1:8080")]
    listen: String,
    /// Where metrics and the routes for admin keys answer, and there alone; all other routes answer
    /// there too [default: on the listener of the rest]
    #[arg(long, env = "SOLDONCE_ADMIN_LISTEN", value_name = "ADDRESS")]
    admin_listen: Option<String>,
    #[command(flatten)]
    tls: TlsArgs,
    /// The folder of the embedded ledger
    #[arg(long, env = "SOLDONCE_DATA", value_name = "FOLDER")]
    #[arg(default_value = "./data")]
    data: PathBuf,
    #[command(flatten)]
    database: DatabaseArgs,
    /// What turns losers away before they reach the ledger [default: redis with a --database-url and
    /// a --shield-url or --redis-url, else local]
    #[arg(long, env = "SOLDONCE_SHIELD")]
    shield: Option<ShieldWord>,
    /// The Redis, or redis+cluster://HOST:PORT,HOST:PORT, or rediss for TLS, of the shield alone [default: that of
    /// --redis-url]
    #[arg(long, env = "SOLDONCE_SHIELD_URL", hide_env_values = true)]
    #[arg(value_name = "URL")]
    shield_url: Option<String>,
    /// Where the leases of `/v1/leases` are: redis://, redis+cluster://, the same with
    /// rediss for TLS, or postgres://; given 3, 5 or 7 times, a
    /// Redlock [default: that of --database-url, else in memory]
    #[arg(long, env = "SOLDONCE_LEASE_URL", hide_env_values = true)]
    #[arg(value_name = "URL", value_delimiter = ' ')]
    lease_url: Vec<String>,
    #[command(flatten)]
    payments: PaymentArgs,
    /// Where webhook endpoints may be; `any`, for development, is also this machine and its network, and
    /// http
    #[arg(long, env = "SOLDONCE_WEBHOOK_DESTINATIONS", default_value = "public")]
    #[arg(value_parser = words([
        ("public", "Out in the internet, by https", Destinations::Public),
        ("any", "For development: also on this machine and in its network, and by http", Destinations::Any),
    ]))]
    webhook_destinations: Destinations,
    /// An admin key to accept; else one is made, shown once on a terminal, or kept in the file `admin-key` of the
    /// data folder [default: made at the first start]
    #[arg(long, env = "SOLDONCE_ADMIN_KEY", value_name = "KEY")]
    #[arg(hide_env_values = true)]
    admin_key: Option<String>,
    /// Whether shoppers may come without a key: they get sessions
    #[arg(long, env = "SOLDONCE_SHOPPERS", default_value = "closed")]
    #[arg(value_parser = words([
        ("open", "They get sessions and see events and seats", Access::Open),
        ("closed", "Every request needs an API key", Access::Closed),
    ]))]
    shoppers: Access,
    /// Whether the session cookie is for HTTPS alone; by default, where every address is of this machine's loopback,
    /// only if one of the trusted proxies says `X-Forwarded-Proto: https` [default: secure unless on loopback]
    #[arg(long, env = "SOLDONCE_COOKIE")]
    #[arg(value_parser = words([
        ("secure", "HTTPS alone", CookieSecurity::Secure),
        ("plain", "HTTP too", CookieSecurity::Plain),
    ]))]
    cookie: Option<CookieSecurity>,
    /// Whether shoppers confirm units that cost something without a payment provider: `on`, or `off` if they
    /// confirm only what costs nothing. Must be said where shoppers are open without a provider [default: off]
    #[arg(long, env = "SOLDONCE_FREE_SALES", num_args = 0..=1)]
    #[arg(default_missing_value = "on")]
    free_sales: Option<FreeSales>,
    /// Web origins besides the server's own whose pages may do for a shopper what the server's page does; may be
    /// given several times
    #[arg(long, env = "SOLDONCE_ORIGINS", value_name = "ORIGIN")]
    #[arg(value_delimiter = ',')]
    origins: Vec<String>,
    /// How the server's own page follows an event: `stream`, or `poll` where a cache in front of the server
    /// answers a request of each page and second
    #[arg(long, env = "SOLDONCE_FEED", default_value = "stream")]
    #[arg(value_parser = words([
        ("stream", "By a stream for each page", PageFeed::Stream),
        ("poll", "By a request each second", PageFeed::Poll),
    ]))]
    feed: PageFeed,
    /// Least time between two frames of an event's feed, milliseconds, 10 to 1000
    #[arg(long, env = "SOLDONCE_FEED_TICK_MS", value_name = "N")]
    #[arg(default_value_t = FEED_TICK_MS)]
    feed_tick_ms: u64,
    /// How long an event is kept once it is over and unchanged, at least 8 days (192h); then it is dropped with its
    /// holds, bookings and history [default: without end]
    #[arg(long, env = "SOLDONCE_KEEP_ENDED_EVENTS", value_name = "TIME")]
    keep_ended_events: Option<String>,
    /// How log lines are written
    #[arg(long, env = "SOLDONCE_LOG_FORMAT", default_value = "text")]
    log_format: LogFormat,
    /// The collector that gets spans of requests, by OTLP over HTTP: its address, such as `http://127.0.0.1:4318`
    /// [default: nowhere]
    #[arg(long, env = "SOLDONCE_OTLP_ENDPOINT", hide_env_values = true)]
    #[arg(value_name = "URL")]
    otlp_endpoint: Option<String>,
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

/// Builds a parser of one of two words, each with its help text and its value.
fn words<T: Copy + Send + Sync + 'static>(
    words: [(&'static str, &'static str, T); 2],
) -> impl TypedValueParser<Value = T> {
    let shown = words.map(|(word, help, _)| PossibleValue::new(word).help(help));
    let [(first, _, meaning), (_, _, other)] = words;
    PossibleValuesParser::new(shown).map(move |word| if word == first { meaning } else { other })
}

pub(crate) fn run(args: &ServeArgs) -> anyhow::Result<Exit> {
    let given = Sources::read(args.config.as_deref()).map_err(usage)?;
    let settings = Settings::gather(&given.args).map_err(usage)?;
    if args.print_settings {
        print(&given.report(&settings.notes))?;
        return Ok(Exit::Done);
    }
    let _traces = start_logging(&settings)?;
    env::warn_of_unknown();
    raise_descriptor_limit(&settings.limits);
    let runtime = tokio::runtime::Runtime::new()?;
    let exit = runtime.block_on(async {
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
    });
    // Not dropped: that would wait for a lookup of a name, which may take longer than the end may.
    runtime.shutdown_background();
    exit
}

impl Default for ServeArgs {
    /// Returns the defaults, without flags and environment.
    fn default() -> Self {
        let command = env::without(Self::augment_args(Command::new("serve")));
        let given = Self::from_arg_matches(&command.get_matches_from(["serve"]));
        given.unwrap_or_else(|error| error.exit())
    }
}

impl ServeArgs {
    /// Builds a demo's arguments: its own folder, open to shoppers, paid through its own provider.
    pub(crate) fn demo(
        (listen, data): (&str, &Path),
        payments: PaymentArgs,
        admin_key: Option<String>,
    ) -> Self {
        Self {
            listen: listen.to_owned(),
            data: data.to_owned(),
            payments,
            admin_key,
            shoppers: Access::Open,
            cookie: Some(CookieSecurity::Plain),
            ..Self::default()
        }
    }
}
