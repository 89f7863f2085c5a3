//! PostgreSQL and Redis: those that were named, and private ones in temporary folders, which end with
//! their value.

use anyhow::Context;
use soldonce_clock::{Entropy, SystemEntropy};
use soldonce_testkit::postgres::Postgres;
use soldonce_testkit::redis::Redis;

pub(crate) struct Service<T> {
    pub(crate) url: String,
    /// None when it was named.
    pub(crate) private: Option<T>,
}

impl<T> Service<T> {
    pub(crate) fn named(url: &str) -> Self {
        Self {
            url: url.to_owned(),
            private: None,
        }
    }
}

/// Starts a PostgreSQL that flushes what it commits, as in production, with these lines of settings.
pub(crate) fn private_postgres(settings: &[String]) -> anyhow::Result<Service<Postgres>> {
    let options = Postgres::options().durable().line("shared_buffers = 128MB");
    let options = settings
        .iter()
        .fold(options, |options, line| options.line(line));
    let postgres = options.start().context("no private PostgreSQL")?;
    Ok(Service {
        url: postgres.url(),
        private: Some(postgres),
    })
}

pub(crate) fn private_redis() -> anyhow::Result<Service<Redis>> {
    let redis = Redis::start().context("no private Redis")?;
    Ok(Service {
        url: redis.url(),
        private: Some(redis),
    })
}

/// Describes a private Redis by its version.
pub(crate) fn redis_version(redis: &Redis) -> String {
    let version = redis.info("redis_version").ok().flatten();
    format!("private Redis {}", version.unwrap_or_default())
}

/// Draws 128 random bits, as letters and digits.
pub(crate) fn random_name() -> String {
    let mut bytes = [0; 16];
    SystemEntropy.fill(&mut bytes);
    soldonce_core::encode_128(u128::from_be_bytes(bytes))
}
