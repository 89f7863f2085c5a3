//! One connection, opened when first needed and again after it broke. Every wait has a time-out.

use std::sync::Arc;
use std::time::Duration;

use soldonce_clock::timeout_at;
use tokio::task::JoinSet;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Row};

use super::{PgConfig, failure};
use crate::backend::reconnecting::{Attempt, Reconnecting};
use crate::{BackendError, BootTime, Clock};

/// A parameter and its type. Types are given, never asked for: a statement that is prepared to
/// learn them would need the same session again, which a pool in transaction mode does not give.
pub(crate) type Param<'a> = (&'a (dyn ToSql + Sync), Type);

/// Least time-out of a connect. A server that is far away needs several round trips for TLS and
/// login, so a connect continues after the call that began it, and serves the next.
pub(super) const CONNECT_LEAST: Duration = Duration::from_secs(1);

/// A connection to the server of a [`PgConfig`]. Statements of several callers are pipelined in the
/// order of their calls, without waiting for each other's answers.
pub(crate) struct Link {
    config: PgConfig,
    clock: Arc<dyn Clock>,
    pub(super) limit: Duration,
    live: Reconnecting<Arc<Live>>,
}

struct Live {
    client: Client,
    /// Moves bytes between client and socket; ends with this value, or when the connection ends.
    _driver: JoinSet<()>,
}

impl Link {
    /// Creates a link, which opens nothing yet. `limit` is the time-out of one call, with the
    /// connect that it may need.
    pub(crate) fn new(config: PgConfig, clock: Arc<dyn Clock>, limit: Duration) -> Self {
        Self {
            config,
            clock,
            limit,
            live: Reconnecting::unmade(),
        }
    }

    /// Runs one statement, which is a transaction by itself, and returns its rows. `NotSent` and `Config`: there is no
    /// connection. `Rejected`: the server refused it and wrote nothing. `Unknown`: all else, the time-out included.
    pub(crate) async fn query(
        &self,
        sql: &'static str,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, BackendError> {
        self.query_within(self.limit, sql, params).await
    }

    /// Runs as [`Link::query`], with a shorter time-out for connection and answer together.
    pub(super) async fn query_within(
        &self,
        limit: Duration,
        sql: &'static str,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, BackendError> {
        let named = |error: BackendError| error.at(&self.config.address());
        let until = self.clock.boot().plus(limit);
        let connected = self.until(until, self.live()).await;
        let connected = connected.unwrap_or_else(|| Err(not_connected(limit)));
        let (attempt, live) = connected.map_err(named)?;
        let answer = live.client.query_typed(sql, params);
        let error = match self.until(until, answer).await {
            Some(Ok(rows)) => return Ok(rows),
            Some(Err(error)) => failure::of_statement(&error),
            None => BackendError::Unknown(late("the answer", limit)),
        };
        // All later statements would wait behind one without an answer.
        if matches!(error, BackendError::Unknown(_)) || failure::is_misplaced(&error) {
            self.live.give_up(&attempt);
        }
        Err(named(error))
    }

    /// Runs statements without parameters, in one transaction unless they say otherwise.
    pub(super) async fn batch(&self, sql: &str) -> Result<(), BackendError> {
        let named = |error: BackendError| error.at(&self.config.address());
        let connected = self.within(self.live()).await;
        let connected = connected.unwrap_or_else(|| Err(not_connected(self.limit)));
        let (attempt, live) = connected.map_err(named)?;
        match self.within(live.client.batch_execute(sql)).await {
            Some(Ok(())) => Ok(()),
            Some(Err(error)) => Err(named(failure::of_statement(&error))),
            None => {
                self.live.give_up(&attempt);
                Err(named(BackendError::Unknown(late("the answer", self.limit))))
            }
        }
    }

    /// Returns the connection, made anew if it has ended.
    async fn live(&self) -> Result<(Arc<Attempt<Arc<Live>>>, Arc<Live>), BackendError> {
        let attempt = self.live.current();
        let live = attempt.get(|| self.connect()).await?;
        if !live.client.is_closed() {
            return Ok((attempt, live));
        }
        self.live.give_up(&attempt);
        let attempt = self.live.current();
        let live = attempt.get(|| self.connect()).await?;
        Ok((attempt, live))
    }

    /// Connects, even after the end of the first call that needs it.
    fn connect(&self) -> impl Future<Output = Result<Arc<Live>, BackendError>> + Send + use<> {
        let (config, clock) = (self.config.clone(), Arc::clone(&self.clock));
        let limit = self.limit.max(CONNECT_LEAST);
        async move {
            let end = clock.boot().plus(limit);
            // A handshake of TLS is large, and rare.
            let connected = timeout_at(&*clock, end, Box::pin(config.connect())).await;
            let connected = connected.ok_or_else(|| not_connected(limit))?;
            let (client, connection) = connected.map_err(|error| failure::of_connect(&error))?;
            let mut driver = JoinSet::new();
            driver.spawn(drive(connection));
            Ok(Arc::new(Live {
                client,
                _driver: driver,
            }))
        }
    }

    /// Waits for the future's result; `None` after the time-out of this link.
    pub(super) async fn within<T>(&self, future: impl Future<Output = T>) -> Option<T> {
        self.until(self.clock.boot().plus(self.limit), future).await
    }

    async fn until<T>(&self, end: BootTime, future: impl Future<Output = T>) -> Option<T> {
        timeout_at(&*self.clock, end, future).await
    }
}

async fn drive(connection: super::tls::Connection) {
    if let Err(error) = connection.await {
        tracing::debug!(%error, "PostgreSQL connection ended");
    }
}

fn not_connected(limit: Duration) -> BackendError {
    BackendError::NotSent(late("the connection", limit))
}

fn late(what: &str, limit: Duration) -> String {
    format!("{what} took more than {} ms", limit.as_millis())
}
