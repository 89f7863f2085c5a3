//! Servers: those that were named, and private ones for those that were not. Private ones live in
//! temporary folders and end with the race.

use anyhow::Context;
use soldonce_testkit::postgres::Postgres;
use soldonce_testkit::redis::Redis;

use super::super::RaceArgs;
use super::super::strategies::{Needs, Strategy};

/// Independent servers of a private Redlock.
const REDLOCK_NODES: usize = 5;

/// Connections that a private PostgreSQL takes beyond those of one strategy and of the bare loads.
const CONNECTIONS_SPARE: usize = 20;

/// Every server of the race.
pub(in super::super) struct Servers {
    database: Database,
    redis: Option<OneRedis>,
    redlock: Vec<OneRedis>,
}

enum Database {
    Named(String),
    Private(Postgres),
}

enum OneRedis {
    Named(String),
    Private(Redis),
}

impl OneRedis {
    fn url(&self) -> String {
        match self {
            Self::Named(url) => url.clone(),
            Self::Private(redis) => redis.url(),
        }
    }

    fn describe(&self) -> String {
        match self {
            Self::Named(_) => "the Redis that was named".to_owned(),
            Self::Private(redis) => {
                let version = redis.info("redis_version").ok().flatten();
                format!("private Redis {}", version.unwrap_or_default())
            }
        }
    }

    fn private() -> anyhow::Result<Self> {
        let redis = Redis::start().context("no --redis-url, and no private Redis either")?;
        Ok(Self::Private(redis))
    }
}

impl Servers {
    /// Starts what was not named and is needed. Waits for it: not for a runtime's threads.
    ///
    /// # Errors
    /// When a program is not on this machine: says which line installs it.
    pub(in super::super) fn start(
        args: &RaceArgs,
        strategies: &[&'static Strategy],
    ) -> anyhow::Result<Self> {
        let database = match &args.database_url {
            Some(url) => Database::Named(url.clone()),
            None => Database::Private(private_database(args.connections)?),
        };
        let need = |needs| strategies.iter().any(|strategy| strategy.needs() == needs);
        let redis = match &args.redis_url {
            _ if !args.ceilings && !need(Needs::Redis) => None,
            Some(url) => Some(OneRedis::Named(url.clone())),
            None => Some(OneRedis::private()?),
        };
        let redlock: anyhow::Result<_> = match args.redlock_urls.as_slice() {
            _ if !need(Needs::Redlock) => Ok(Vec::new()),
            [] => (0..REDLOCK_NODES).map(|_| OneRedis::private()).collect(),
            urls => Ok(urls.iter().cloned().map(OneRedis::Named).collect()),
        };
        Ok(Self {
            database,
            redis,
            redlock: redlock?,
        })
    }

    pub(in super::super) fn database_url(&self) -> String {
        match &self.database {
            Database::Named(url) => url.clone(),
            Database::Private(postgres) => postgres.url(),
        }
    }

    /// The address of the one Redis, if a strategy needs it.
    pub(in super::super) fn redis_url(&self) -> Option<String> {
        self.redis.as_ref().map(OneRedis::url)
    }

    /// The addresses of the independent ones.
    pub(in super::super) fn redlock_urls(&self) -> Vec<String> {
        self.redlock.iter().map(OneRedis::url).collect()
    }

    /// What a report says of them, without addresses: those may hold passwords.
    pub(in super::super) fn describe(&self) -> Vec<String> {
        let mut said = vec![match self.database {
            Database::Named(_) => "the database is the one of --database-url".to_owned(),
            Database::Private(_) => {
                "the database is a private one in a temporary folder".to_owned()
            }
        }];
        said.extend(self.redis.as_ref().map(OneRedis::describe));
        if let Some(first) = self.redlock.first() {
            let (count, first) = (self.redlock.len(), first.describe());
            said.push(format!("Redlock over {count} servers: {first}"));
        }
        said
    }
}

/// A PostgreSQL that keeps what it acknowledges, as in production.
pub(crate) fn private_database(connections: usize) -> anyhow::Result<Postgres> {
    let most = 2 * connections + CONNECTIONS_SPARE;
    Postgres::options()
        .durable()
        .line("shared_buffers = 128MB")
        // A second for each deadlock would make a race of minutes.
        .line("deadlock_timeout = 100ms")
        .line(&format!("max_connections = {most}"))
        .start()
        .context("no --database-url, and no private PostgreSQL either")
}
