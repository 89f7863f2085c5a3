//! Which shield stands in front of the ledger.

use std::sync::Arc;

use anyhow::Context;
use clap::{Args, ValueEnum};
use serde::Deserialize;
use soldonce_engine::shield::{RedisShield, Shield};
use soldonce_lease::{Namespace, SystemClock};

/// Keeps what servers tell each other apart from whatever else is on their Redis.
const NAMESPACE: &str = "soldonce";

/// Which shield stands in front of the ledger.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ShieldArgs {
    /// What turns losers away before they reach the ledger [default: redis with a --database-url and
    /// a --redis-url, else local]
    #[arg(long, env = "SOLDONCE_SHIELD", value_enum)]
    pub(crate) shield: Option<ShieldWord>,
}

/// A shield's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ShieldWord {
    /// What this server knows itself.
    Local,
    /// That, and what all servers told the Redis of `--redis-url`.
    Redis,
}

/// A shield that was chosen, not connected yet.
#[derive(Clone, Debug)]
pub(crate) struct ShieldPlace {
    pub(crate) word: ShieldWord,
    /// The one between servers.
    pub(crate) between: Option<Arc<dyn Shield>>,
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
        redis: Option<&str>,
    ) -> anyhow::Result<Self> {
        let word = word.unwrap_or(match (shared, redis) {
            (Shared::Yes, Some(_)) => ShieldWord::Redis,
            _ => ShieldWord::Local,
        });
        let between = match word {
            ShieldWord::Local => None,
            ShieldWord::Redis => Some(between(shared, redis)?),
        };
        Ok(Self { word, between })
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

fn between(shared: Shared, redis: Option<&str>) -> anyhow::Result<Arc<dyn Shield>> {
    anyhow::ensure!(
        shared == Shared::Yes,
        "shield: redis is for many servers, give --database-url; the embedded ledger has one server, \
         which knows everything itself"
    );
    let url = redis.context("shield: redis needs the Redis that servers share, --redis-url")?;
    let shield = RedisShield::at(url, &Namespace::new(NAMESPACE)?, Arc::new(SystemClock));
    let shield = shield
        .context("redis_url: write redis://HOST:PORT or redis+cluster://HOST:PORT,HOST:PORT")?;
    Ok(Arc::new(shield))
}
