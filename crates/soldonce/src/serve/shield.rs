//! The shield in front of the ledger, which refuses losers before they reach it.

use std::sync::Arc;

use anyhow::Context;
use clap::ValueEnum;
use soldonce_clock::SystemClock;
use soldonce_engine::OptionalRedis;
use soldonce_engine::shield::RedisShield;
use soldonce_lease::Namespace;

use super::LedgerPlace;

/// The namespace of what servers tell each other, apart from other data on their Redis.
const NAMESPACE: &str = "soldonce";

/// A shield's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ShieldWord {
    /// What this server knows itself.
    Local,
    /// That, and what all servers told the Redis of `--shield-url`.
    Redis,
}

/// Creates the shield that servers share, if it was chosen or is the best possible: on its own Redis or else on the
/// common one, not connected yet. `None` is a local shield.
///
/// # Errors
/// Names the setting that is missing or wrong; never shows the address.
pub(crate) fn shield_between(
    word: Option<ShieldWord>,
    ledger: &LedgerPlace,
    (own, common): (Option<&String>, Option<&String>),
) -> anyhow::Result<Option<Arc<RedisShield>>> {
    anyhow::ensure!(
        own.is_none() || word != Some(ShieldWord::Local),
        "shield_url: shield local uses no Redis; leave one of them out"
    );
    let is_best = own.is_some() || (common.is_some() && ledger.is_shared());
    if !word.map_or(is_best, |word| word == ShieldWord::Redis) {
        return Ok(None);
    }
    anyhow::ensure!(
        ledger.is_shared(),
        "shield: redis is for many servers, give --database-url; the embedded ledger has one server, \
         which knows everything itself"
    );
    let redis = own.map(|url| ("shield_url", url));
    let redis = redis.or(common.map(|url| ("redis_url", url)));
    let (setting, url) = redis
        .context("shield: redis needs the Redis that servers share, --redis-url or --shield-url")?;
    Ok(Some(Arc::new(redis_shield(setting, url)?)))
}

/// Creates the client of a Redis that servers share, at the address of this setting; not connected yet.
///
/// # Errors
/// Names the setting; never shows the address.
pub(super) fn shared_redis(setting: &str, url: &str) -> anyhow::Result<OptionalRedis> {
    let redis = OptionalRedis::at(url, &Namespace::new(NAMESPACE)?, Arc::new(SystemClock));
    redis.with_context(|| {
        format!("{setting}: write redis://HOST:PORT or redis+cluster://HOST:PORT,HOST:PORT, and rediss for TLS")
    })
}

/// Creates the shield at this address, which came from this setting; not connected yet.
///
/// # Errors
/// Names the setting; never shows the address.
pub(crate) fn redis_shield(setting: &str, url: &str) -> anyhow::Result<RedisShield> {
    Ok(RedisShield::new(shared_redis(setting, url)?))
}
