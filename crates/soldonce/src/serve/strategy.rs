//! How commands reach PostgreSQL, and the lease servers that some ways need.

use std::time::Duration;

use anyhow::Context;
use clap::{Args, ValueEnum};
use serde::Deserialize;
use soldonce_engine::ledger::postgres::Strategy;
use soldonce_lease::backend::postgres::{PgConfig, migrate};
use soldonce_lease::{Builder, Locks, PgEpochs, PgTokens};

use crate::lease::backend;

/// Keeps these leases apart from whatever else is on the same servers.
const NAMESPACE: &str = "soldonce";
/// The longest ttl that any process asks of the Redlock: nodes that are younger do not vote.
const TTL_LONGEST: Duration = Duration::from_mins(1);

/// How commands reach PostgreSQL.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct StrategyArgs {
    /// How commands reach PostgreSQL [default: queue]
    #[arg(long, env = "SOLDONCE_STRATEGY", value_enum)]
    pub(crate) strategy: Option<StrategyWord>,
    /// The independent Redis servers of strategy redlock: 3, 5 or 7, with commas
    #[arg(
        long,
        env = "SOLDONCE_REDLOCK_URLS",
        hide_env_values = true,
        value_name = "URLS",
        value_delimiter = ','
    )]
    pub(crate) redlock_urls: Vec<String>,
}

/// A strategy's name (model.md 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum StrategyWord {
    /// The commands of an event gather, and one commit acknowledges many.
    #[default]
    Queue,
    /// One statement, sent without asking first: the database's keys decide.
    Constraint,
    /// Read versions, write where they are the same, try again.
    Optimistic,
    /// Lock the rows, waiting for whoever has them.
    Pessimistic,
    /// Lock the rows, or look again.
    Nowait,
    /// A lease in the Redis of `--redis-url`, then a fenced write.
    Lease,
    /// The same over the servers of `--redlock-urls`.
    Redlock,
}

/// What a strategy needs beside its name.
#[derive(Clone)]
pub(crate) struct StrategyPlace {
    pub(crate) word: StrategyWord,
    database: Option<String>,
    redis: Option<String>,
    redlock: Vec<String>,
}

impl std::fmt::Debug for StrategyPlace {
    /// Without the addresses, which may hold passwords.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StrategyPlace")
            .field("word", &self.word)
            .finish_non_exhaustive()
    }
}

impl StrategyPlace {
    /// A strategy on this database, with the servers that were given.
    ///
    /// # Errors
    /// Names the setting that is missing or wrong.
    pub(crate) fn new(
        word: StrategyWord,
        database: Option<String>,
        redis: Option<String>,
        redlock: Vec<String>,
    ) -> anyhow::Result<Self> {
        let name = word.to_possible_value();
        let name = name.as_ref().map_or("", |name| name.get_name());
        anyhow::ensure!(
            word == StrategyWord::Queue || database.is_some(),
            "strategy: {name} is for PostgreSQL, give --database-url; the embedded ledger has one \
             writer and always uses queue"
        );
        anyhow::ensure!(
            word != StrategyWord::Lease || redis.is_some(),
            "strategy: lease needs the Redis that gives the leases, --redis-url"
        );
        anyhow::ensure!(
            word != StrategyWord::Redlock || [3, 5, 7].contains(&redlock.len()),
            "redlock_urls: strategy redlock needs 3, 5 or 7 independent servers, not {}",
            redlock.len()
        );
        anyhow::ensure!(
            word == StrategyWord::Redlock || redlock.is_empty(),
            "redlock_urls: only strategy redlock uses them, this is {name}"
        );
        Ok(Self {
            word,
            database,
            redis,
            redlock,
        })
    }

    /// Connects to the lease servers, if the strategy needs them.
    ///
    /// # Errors
    /// When they, or the database that anchors the tokens, cannot be reached.
    pub(crate) async fn connect(&self) -> anyhow::Result<Strategy> {
        Ok(match self.word {
            StrategyWord::Queue => Strategy::Queue,
            StrategyWord::Constraint => Strategy::Constraint,
            StrategyWord::Optimistic => Strategy::Optimistic,
            StrategyWord::Pessimistic => Strategy::Pessimistic,
            StrategyWord::Nowait => Strategy::NoWait,
            StrategyWord::Lease => {
                let url = self.redis.as_deref().unwrap_or_default();
                let anchored = backend::redis(url).epochs(PgEpochs::new(self.anchor().await?));
                Strategy::Lease(connect(anchored, "redis_url").await?)
            }
            StrategyWord::Redlock => {
                let redlock = backend::redlock(&self.redlock, TTL_LONGEST);
                let anchored = redlock.tokens(PgTokens::new(self.anchor().await?));
                Strategy::Redlock(connect(anchored, "redlock_urls").await?)
            }
        })
    }

    /// The database, with the tables that keep tokens rising.
    async fn anchor(&self) -> anyhow::Result<PgConfig> {
        let config = PgConfig::url(self.database.as_deref().unwrap_or_default())?;
        let made = migrate(&config).await;
        made.context("database_url: the tables for lease tokens cannot be made")?;
        Ok(config)
    }
}

async fn connect(builder: Builder, setting: &str) -> anyhow::Result<Locks> {
    let connected = builder.namespace(NAMESPACE).connect().await;
    connected.with_context(|| {
        format!("{setting}: no leases can be had there; strategy queue needs none")
    })
}
