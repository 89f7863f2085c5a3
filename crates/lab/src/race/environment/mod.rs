//! Where the race is held: a schema of its own in a database, and the servers that were not named.

mod schema;
mod servers;

use anyhow::Context;
use soldonce_engine::ledger::postgres::{self, PostgresOptions};

use self::schema::Schema;
use super::contender::Pool;
use super::textbook::{self, Guards};

pub(super) use self::servers::Servers;
pub(crate) use self::servers::private_database;

/// The schema, ready for every strategy.
pub(super) struct Environment {
    schema: Schema,
    connections: usize,
    servers: Servers,
    /// What the servers say of themselves.
    pub(super) described: Vec<String>,
}

impl Environment {
    /// Makes the schemas, with the ledger's tables and those of the textbook strategies in them.
    ///
    /// # Errors
    /// When the database cannot be reached, or does not let us make a schema.
    pub(super) async fn make(servers: Servers, connections: usize) -> anyhow::Result<Self> {
        let schema = Schema::make(&servers.database_url()).await?;
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

    /// A ledger in the schema.
    pub(super) fn options(&self) -> PostgresOptions {
        let mut options = PostgresOptions::new(self.schema.url());
        options.connections = self.connections;
        options
    }

    /// Connections to the schema of the ledger.
    ///
    /// # Errors
    /// When the address is none.
    pub(super) fn pool(&self) -> anyhow::Result<Pool> {
        Pool::new(self.schema.url(), self.connections)
    }

    /// Connections to the tables of the textbook strategies with these guards.
    ///
    /// # Errors
    /// When the address is none.
    pub(super) fn pool_of(&self, guards: Guards) -> anyhow::Result<Pool> {
        match guards {
            Guards::None => self.pool(),
            Guards::KeyAndFence => Pool::new(self.schema.guarded_url(), self.connections),
        }
    }

    /// The address of the one Redis.
    ///
    /// # Errors
    /// When nobody needed it when the servers were started.
    pub(super) fn redis_url(&self) -> anyhow::Result<String> {
        self.servers.redis_url().context("no Redis was started")
    }

    /// The addresses of the independent ones.
    pub(super) fn redlock_urls(&self) -> Vec<String> {
        self.servers.redlock_urls()
    }

    /// Removes the schema with all that is in it, and ends private servers.
    ///
    /// # Errors
    /// Names the schema that is left.
    pub(super) async fn clear(self) -> anyhow::Result<()> {
        self.schema.drop().await
    }
}
