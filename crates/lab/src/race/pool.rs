//! Connections of the textbook strategies: as many as the product gets, by the same pool.

use std::time::Duration;

use anyhow::Context;
use deadpool_postgres::tokio_postgres::{Config, NoTls};
use deadpool_postgres::{
    Manager, ManagerConfig, Object, Pool as Connections, PoolError, RecyclingMethod, Runtime,
};

use super::outcome::Outcome;
use crate::limits::RACE_ANSWER_MS;

/// Connections to the race's own schema.
#[derive(Clone)]
pub(super) struct Pool(Connections);

impl Pool {
    /// Creates a pool that has no connection open yet.
    pub(super) fn new(url: &str, connections: usize) -> anyhow::Result<Self> {
        let mut config: Config = url.parse().context("--database-url cannot be read")?;
        let given = config.get_options().unwrap_or_default();
        // A statement that hangs is an answer.
        config.options(format!("{given} -c statement_timeout={RACE_ANSWER_MS}"));
        let wait = Duration::from_millis(RACE_ANSWER_MS);
        config.application_name("soldonce-lab");
        config.connect_timeout(wait);
        let recycling_method = RecyclingMethod::Fast;
        let manager = Manager::from_config(config, NoTls, ManagerConfig { recycling_method });
        let pool = Connections::builder(manager)
            .max_size(connections)
            .wait_timeout(Some(wait))
            .create_timeout(Some(wait))
            .runtime(Runtime::Tokio1)
            .build()?;
        Ok(Self(pool))
    }

    pub(super) async fn get(&self) -> anyhow::Result<Object> {
        let object = self.0.get().await;
        object.context("the database cannot be reached; see --database-url")
    }

    /// Takes a connection for a buyer. The error is the answer to a buyer without one.
    pub(super) async fn connection(&self) -> Result<Object, Outcome> {
        self.0.get().await.map_err(|error| match error {
            PoolError::Timeout(_) => Outcome::Failed("no connection in time".to_owned()),
            PoolError::Backend(error) => error.into(),
            PoolError::Closed | PoolError::NoRuntimeSpecified | PoolError::PostCreateHook(_) => {
                Outcome::Failed("no connection".to_owned())
            }
        })
    }

    /// Opens every connection, so that no buyer waits for one to be made.
    pub(super) async fn warm(&self) -> anyhow::Result<()> {
        let mut open = Vec::new();
        for _ in 0..self.0.status().max_size {
            open.push(self.get().await?);
        }
        Ok(())
    }

    pub(super) fn close(&self) {
        self.0.close();
    }
}
