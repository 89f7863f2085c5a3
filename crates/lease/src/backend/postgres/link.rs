//! One connection, opened when first needed and again after it broke. Every wait has a time-out.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Row};

use super::{PgConfig, failure};
use crate::{BackendError, BootTime, Clock};

/// A parameter and its type. Types are given, never asked for: a statement that is prepared to
/// learn them would need the same session again, which a pool in transaction mode does not give.
pub(crate) type Param<'a> = (&'a (dyn ToSql + Sync), Type);

/// A connection to the server of a [`PgConfig`]. Statements of several callers are pipelined in the
/// order of their calls, without waiting for each other's answers.
pub(crate) struct Link {
    config: PgConfig,
    clock: Arc<dyn Clock>,
    limit: Duration,
    // Held while connecting, so that callers that find a broken connection open one new, not many.
    live: Mutex<Option<Live>>,
}

struct Live {
    client: Arc<Client>,
    /// Moves bytes between client and socket; ends with this value, or when the connection ends.
    _driver: JoinSet<()>,
}

impl Link {
    /// Creates a link, which opens nothing yet. `limit` is the time-out of one answer or one
    /// connect.
    pub(crate) fn new(config: PgConfig, clock: Arc<dyn Clock>, limit: Duration) -> Self {
        Self {
            config,
            clock,
            limit,
            live: Mutex::new(None),
        }
    }

    /// Runs one statement, which is a transaction by itself, and returns its rows.
    ///
    /// # Errors
    /// `NotSent` and `Config` when no connection could be made; `Rejected` when the server refused
    /// the statement and so wrote nothing; `Unknown` in all other cases, the time-out included.
    ///
    /// # Cancel safety
    /// A dropped call may have run.
    pub(crate) async fn query(
        &self,
        sql: &'static str,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, BackendError> {
        self.query_within(self.limit, sql, params).await
    }

    /// Runs as [`Link::query`], with a shorter time-out for connection and answer together.
    ///
    /// # Errors
    /// As [`Link::query`].
    ///
    /// # Cancel safety
    /// As [`Link::query`].
    pub(crate) async fn query_within(
        &self,
        limit: Duration,
        sql: &'static str,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, BackendError> {
        let answered = self.ask(limit, sql, params).await;
        answered.map_err(|error| error.at(&self.config.address()))
    }

    async fn ask(
        &self,
        limit: Duration,
        sql: &'static str,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, BackendError> {
        let until = self.clock.boot().plus(limit);
        let connected = self.until(until, self.client()).await;
        let late_connection = || Err(BackendError::NotSent(late("the connection", limit)));
        let client = connected.unwrap_or_else(late_connection)?;
        let answered = self.until(until, client.query_typed(sql, params)).await;
        let error = match answered {
            Some(Ok(rows)) => return Ok(rows),
            Some(Err(error)) => failure::of_statement(&error),
            None => BackendError::Unknown(late("the answer", limit)),
        };
        // All later statements would wait behind one without an answer.
        if matches!(error, BackendError::Unknown(_)) || failure::is_misplaced(&error) {
            self.give_up(&client).await;
        }
        Err(error)
    }

    /// Runs statements without parameters, in one transaction unless they say otherwise.
    ///
    /// # Errors
    /// As [`Link::query`].
    pub(crate) async fn batch(&self, sql: &str) -> Result<(), BackendError> {
        let named = |error: BackendError| error.at(&self.config.address());
        let client = self.client().await.map_err(named)?;
        match self.within(client.batch_execute(sql)).await {
            Some(Ok(())) => Ok(()),
            Some(Err(error)) => Err(named(failure::of_statement(&error))),
            None => {
                self.give_up(&client).await;
                Err(named(BackendError::Unknown(late("the answer", self.limit))))
            }
        }
    }

    /// Returns the longest wait for one answer.
    pub(super) fn limit(&self) -> Duration {
        self.limit
    }

    async fn client(&self) -> Result<Arc<Client>, BackendError> {
        let mut live = self.live.lock().await;
        if let Some(live) = live.as_ref()
            && !live.client.is_closed()
        {
            return Ok(live.client.clone());
        }
        *live = None;
        // A handshake of TLS is large, and rare.
        let connected = self.within(Box::pin(self.config.connect())).await;
        let (client, connection) = connected
            .ok_or_else(|| BackendError::NotSent(late("the connection", self.limit)))?
            .map_err(|error| failure::of_connect(&error))?;
        let mut driver = JoinSet::new();
        driver.spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "PostgreSQL connection ended");
            }
        });
        let client = Arc::new(client);
        *live = Some(Live {
            client: client.clone(),
            _driver: driver,
        });
        Ok(client)
    }

    /// Closes the connection, unless it has been replaced already.
    async fn give_up(&self, client: &Arc<Client>) {
        let mut live = self.live.lock().await;
        if live
            .as_ref()
            .is_some_and(|live| Arc::ptr_eq(&live.client, client))
        {
            *live = None;
        }
    }

    /// Waits for the future's result; `None` after the time-out of this link.
    pub(super) async fn within<T>(&self, future: impl Future<Output = T>) -> Option<T> {
        self.until(self.clock.boot().plus(self.limit), future).await
    }

    async fn until<T>(&self, end: BootTime, future: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            result = future => Some(result),
            () = self.clock.sleep_until(end) => None,
        }
    }
}

fn late(what: &str, limit: Duration) -> String {
    format!("{what} took more than {} ms", limit.as_millis())
}
