//! Where the race is held: a schema of its own in a database, and the servers that were not named.

mod schema;
mod servers;

use std::time::Duration;

use anyhow::Context;
use soldonce_engine::ledger::postgres::{self, PostgresOptions};
use soldonce_lease::backend::redis::{RedisConfig, RedlockConfig};
use soldonce_lease::{Locks, Wait};

use self::schema::Schema;
use super::contender::Pool;

pub(super) use self::servers::Servers;
pub(crate) use self::servers::private_database;

/// Keeps the race's leases apart from others on the same servers.
const NAMESPACE: &str = "soldonce-lab";
/// The longest lease of a race. A Redlock server that started later than this ago has no vote.
const REDLOCK_TTL: Duration = Duration::from_secs(2);
/// So long is waited until they have.
const REDLOCK_WAIT: Duration = Duration::from_secs(10);

/// The schema, ready for every strategy.
pub(super) struct Ground {
    schema: Schema,
    connections: usize,
    servers: Servers,
    /// What the servers say of themselves.
    pub(super) described: Vec<String>,
}

impl Ground {
    /// Makes the schema and the ledger's tables in it.
    ///
    /// # Errors
    /// When the database cannot be reached, or does not let us make a schema.
    pub(super) async fn make(servers: Servers, connections: usize) -> anyhow::Result<Self> {
        let schema = Schema::make(&servers.database_url()).await?;
        let mut described = vec![schema.describe().await?];
        described.extend(servers.describe());
        let ground = Self {
            schema,
            connections,
            servers,
            described,
        };
        postgres::migrate(&ground.options()).await?;
        Ok(ground)
    }

    /// A ledger in the schema, with the default strategy.
    pub(super) fn options(&self) -> PostgresOptions {
        let mut options = PostgresOptions::new(self.schema.url());
        options.connections = self.connections;
        options
    }

    /// Connections for a strategy of the lab's own.
    ///
    /// # Errors
    /// When the address is none.
    pub(super) fn pool(&self) -> anyhow::Result<Pool> {
        Pool::new(self.schema.url(), self.connections)
    }

    /// The address of the one Redis.
    ///
    /// # Errors
    /// When nobody needed it when the servers were started.
    pub(super) fn redis_url(&self) -> anyhow::Result<String> {
        self.servers.redis_url().context("no Redis was started")
    }

    /// Leases on the one Redis.
    ///
    /// # Errors
    /// When it does not answer.
    pub(super) async fn redis(&self) -> anyhow::Result<Locks> {
        let url = self.redis_url()?;
        let locks = Locks::redis(url.as_str()).namespace(NAMESPACE);
        locks.connect().await.context("--redis-url")
    }

    /// Leases on a majority of the independent ones, which must be old enough to vote.
    ///
    /// # Errors
    /// When they do not answer, or grant nothing in time.
    pub(super) async fn redlock(&self) -> anyhow::Result<Locks> {
        let urls = self.servers.redlock_urls();
        let nodes = urls.iter().map(|url| RedisConfig::from(url.as_str()));
        let config = RedlockConfig::new(nodes.collect()).ttl_longest(REDLOCK_TTL);
        let locks = Locks::redlock(config).namespace(NAMESPACE);
        let locks = locks.connect().await.context("--redlock-urls")?;
        let first = locks.lease("race").ttl(REDLOCK_TTL);
        let first = first.acquire(Wait::UpTo(REDLOCK_WAIT)).await;
        let first = first.context("--redlock-urls: the servers grant nothing")?;
        first.release().await.context("--redlock-urls")?;
        Ok(locks)
    }

    /// Removes the schema with all that is in it, and ends private servers.
    ///
    /// # Errors
    /// Names the schema that is left.
    pub(super) async fn clear(self) -> anyhow::Result<()> {
        self.schema.drop().await
    }
}
