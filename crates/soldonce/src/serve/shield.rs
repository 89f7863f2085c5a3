//! Which shield stands in front of the ledger.

use std::sync::Arc;

use anyhow::Context;
use clap::{Args, ValueEnum};
use soldonce_clock::SystemClock;
use soldonce_engine::shield::RedisShield;
use soldonce_lease::Namespace;

/// Keeps what servers tell each other apart from other data on their Redis.
const NAMESPACE: &str = "soldonce";

/// Which shield stands in front of the ledger.
#[derive(Clone, Debug, Args)]
pub(crate) struct ShieldArgs {
    /// What turns losers away before they reach the ledger [default: redis with a --database-url and
    /// a --shield-url or --redis-url, else local]
    #[arg(long, env = "SOLDONCE_SHIELD")]
    pub(crate) shield: Option<ShieldWord>,
    /// The Redis, or redis+cluster://HOST:PORT,HOST:PORT, of the shield alone [default: that of
    /// --redis-url]
    #[arg(
        long,
        env = "SOLDONCE_SHIELD_URL",
        hide_env_values = true,
        value_name = "URL"
    )]
    pub(crate) shield_url: Option<String>,
}

/// A shield's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ShieldWord {
    /// What this server knows itself.
    Local,
    /// That, and what all servers told the Redis of `--shield-url`.
    Redis,
}

/// A shield that was chosen, not connected yet.
#[derive(Clone, Debug)]
pub(crate) struct ShieldPlace {
    pub(crate) word: ShieldWord,
    /// The one between servers.
    pub(crate) between: Option<Arc<RedisShield>>,
}

impl ShieldPlace {
    /// The shield of this name, or the best there is: `shared` says whether other servers may be on
    /// the ledger.
    ///
    /// # Errors
    /// Names the setting that is missing or wrong; never shows the address.
    pub(crate) fn new(
        word: Option<ShieldWord>,
        shared: Shared,
        redis: ShieldRedis<'_>,
    ) -> anyhow::Result<Self> {
        let is_own = matches!(redis, ShieldRedis::Own(_));
        anyhow::ensure!(
            !is_own || word != Some(ShieldWord::Local),
            "shield_url: shield local uses no Redis; leave one of them out"
        );
        let word = word.unwrap_or(match (shared, redis) {
            (Shared::Yes, ShieldRedis::Own(_) | ShieldRedis::Common(_))
            | (Shared::No, ShieldRedis::Own(_)) => ShieldWord::Redis,
            (Shared::Yes, ShieldRedis::Missing)
            | (Shared::No, ShieldRedis::Common(_) | ShieldRedis::Missing) => ShieldWord::Local,
        });
        let between = match word {
            ShieldWord::Local => None,
            ShieldWord::Redis => Some(between(shared, redis)?),
        };
        Ok(Self { word, between })
    }
}

/// The Redis that a shield may be on.
#[derive(Clone, Copy)]
pub(crate) enum ShieldRedis<'a> {
    /// Its own.
    Own(&'a str),
    /// The one of everything else.
    Common(&'a str),
    /// There is none.
    Missing,
}

impl<'a> ShieldRedis<'a> {
    /// Its own if one was given, else the common one.
    pub(crate) fn first(own: Option<&'a str>, common: Option<&'a str>) -> Self {
        match (own, common) {
            (Some(url), _) => Self::Own(url),
            (None, Some(url)) => Self::Common(url),
            (None, None) => Self::Missing,
        }
    }
}

/// Whether other servers may be on the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shared {
    /// They may.
    Yes,
    /// There are none.
    No,
}

fn between(shared: Shared, redis: ShieldRedis<'_>) -> anyhow::Result<Arc<RedisShield>> {
    anyhow::ensure!(
        shared == Shared::Yes,
        "shield: redis is for many servers, give --database-url; the embedded ledger has one server, \
         which knows everything itself"
    );
    let (setting, url) = match redis {
        ShieldRedis::Own(url) => ("shield_url", url),
        ShieldRedis::Common(url) => ("redis_url", url),
        ShieldRedis::Missing => anyhow::bail!(
            "shield: redis needs the Redis that servers share, --redis-url or --shield-url"
        ),
    };
    Ok(Arc::new(redis_shield(setting, url)?))
}

/// The shield at this address, which came from this setting; not connected yet.
///
/// # Errors
/// Names the setting; never shows the address.
pub(crate) fn redis_shield(setting: &str, url: &str) -> anyhow::Result<RedisShield> {
    let shield = RedisShield::at(url, &Namespace::new(NAMESPACE)?, Arc::new(SystemClock));
    shield.with_context(|| {
        format!("{setting}: write redis://HOST:PORT or redis+cluster://HOST:PORT,HOST:PORT, and rediss for TLS")
    })
}
