//! The servers of a race, the schemas of its tables, and the connections to them.

use anyhow::Context;
use soldonce_engine::ledger::postgres::{self, PostgresOptions};
use soldonce_testkit::postgres::Postgres;
use soldonce_testkit::redis::Redis;

use super::RaceArgs;
use super::pool::Pool;
use super::schema::Schema;
use super::strategies::Strategy;
use super::textbook::{self, Guards, Method};
use crate::kit::{Service, private_postgres, private_redis, redis_version};

/// Independent servers of a private Redlock.
const REDLOCK_NODES: usize = 5;

/// Connections that a private PostgreSQL takes beyond those of one strategy and of the bare loads.
const CONNECTIONS_SPARE: usize = 20;

/// The servers: those that were named, and private ones.
pub(super) struct Servers {
    database: Service<Postgres>,
    redis: Option<Service<Redis>>,
    redlock: Vec<Service<Redis>>,
}

impl Servers {
    /// Starts the servers that are needed and were not named.
    pub(super) fn start(args: &RaceArgs, strategies: &[&'static Strategy]) -> anyhow::Result<Self> {
        let database = if let Some(url) = &args.database_url {
            Service::named(url)
        } else {
            let most = 2 * args.connections + CONNECTIONS_SPARE;
            let most = format!("max_connections = {most}");
            // A second for each deadlock would make a race of minutes.
            let deadlocks = "deadlock_timeout = 100ms".to_owned();
            private_postgres(&[deadlocks, most]).context("no --database-url")?
        };
        let is_needed = |method| strategies.iter().any(|one| one.method == method);
        let private = || private_redis().context("no --redis-url");
        let redis = match &args.redis_url {
            _ if !args.ceilings && !is_needed(Method::Lease) => None,
            Some(url) => Some(Service::named(url)),
            None => Some(private()?),
        };
        let redlock: anyhow::Result<_> = match args.redlock_urls.as_slice() {
            _ if !is_needed(Method::Redlock) => Ok(Vec::new()),
            [] => (0..REDLOCK_NODES).map(|_| private()).collect(),
            urls => Ok(urls.iter().map(|url| Service::named(url)).collect()),
        };
        Ok(Self {
            database,
            redis,
            redlock: redlock?,
        })
    }

    /// Describes them without addresses: those may hold passwords.
    fn describe(&self) -> Vec<String> {
        let database = match self.database.private {
            None => "the database is the one of --database-url",
            Some(_) => "the database is a private one in a temporary folder",
        };
        let redis = |service: &Service<Redis>| match &service.private {
            None => "the Redis that was named".to_owned(),
            Some(private) => redis_version(private),
        };
        let mut described = vec![database.to_owned()];
        described.extend(self.redis.as_ref().map(redis));
        let count = self.redlock.len();
        let redlock = self.redlock.first().map(redis);
        described.extend(redlock.map(|first| format!("Redlock over {count} servers: {first}")));
        described
    }
}

/// The servers with the tables of every strategy.
pub(super) struct Environment {
    schema: Schema,
    connections: usize,
    servers: Servers,
    /// The versions and settings of the servers.
    pub(super) described: Vec<String>,
}

impl Environment {
    /// Makes the schemas, with the ledger's tables and those of the textbook strategies in them.
    pub(super) async fn make(servers: Servers, connections: usize) -> anyhow::Result<Self> {
        let schema = Schema::make(&servers.database.url).await?;
        let mut described = vec![schema.describe().await?];
        described.extend(servers.describe());
        let environment = Self {
            schema,
            connections,
            servers,
            described,
        };
        postgres::migrate(&environment.options()).await?;
        for guards in [Guards::None, Guards::KeyAndFence] {
            textbook::make(&environment.pool_of(guards)?, guards).await?;
        }
        Ok(environment)
    }

    /// Returns the options of a ledger in the schema.
    pub(super) fn options(&self) -> PostgresOptions {
        let mut options = PostgresOptions::new(self.schema.url.clone());
        options.connections = self.connections;
        options
    }

    /// Opens a pool on the schema with these guards; the ledger is in the one without.
    pub(super) fn pool_of(&self, guards: Guards) -> anyhow::Result<Pool> {
        let url = match guards {
            Guards::None => &self.schema.url,
            Guards::KeyAndFence => &self.schema.guarded_url,
        };
        Pool::new(url, self.connections)
    }

    pub(super) fn redis_url(&self) -> anyhow::Result<&str> {
        let redis = self.servers.redis.as_ref();
        Ok(&redis.context("no Redis was started")?.url)
    }

    /// Returns the addresses of the independent Redis servers.
    pub(super) fn redlock_urls(&self) -> Vec<String> {
        let all = self.servers.redlock.iter();
        all.map(|redis| redis.url.clone()).collect()
    }

    /// Drops the schemas, and ends private servers.
    pub(super) async fn clear(self) -> anyhow::Result<()> {
        self.schema.drop().await
    }
}
