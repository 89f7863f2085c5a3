//! Epochs and whole tokens for many hosts, in rows of PostgreSQL.

use std::sync::Arc;
use std::time::Duration;

use tokio_postgres::types::{FromSqlOwned, Type};

use crate::backend::Fut;
use crate::backend::postgres::{Link, Param, PgConfig};
use crate::{Clock, EpochError, EpochSource, SystemClock, TokenSource};

/// Longest wait for a number, connecting included. Shorter than a call may take, so that an acquire
/// hears why it has no number, and that nothing was granted (`docs/decisions/0017`).
const LIMIT: Duration = Duration::from_millis(400);

const NEXT_EPOCH: &str = "\
-- epoch_next
SELECT soldonce_lease_epoch_next($1, $2)";

const NEXT_TOKEN: &str = "\
-- token_next
SELECT soldonce_lease_token_next($1, $2)";

/// An [`EpochSource`] for all hosts: a row of PostgreSQL for each namespace. The database must have
/// been prepared with `postgres::migrate`. Connects when the first number is asked for.
///
/// ```no_run
/// # #[cfg(feature = "redis")]
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use soldonce_lease::{Locks, PgConfig, PgEpochs};
///
/// let database = PgConfig::url("postgres://app@10.0.0.6/app")?;
/// soldonce_lease::backend::postgres::migrate(&database).await?; // once, or at every start
/// let locks = Locks::redis("redis://10.0.0.5")
///     .namespace("app")
///     .epochs(PgEpochs::new(database))
///     .connect()
///     .await?;
/// # let _ = locks;
/// # Ok(())
/// # }
/// ```
pub struct PgEpochs(Source);

/// A [`TokenSource`] for all hosts: a row of PostgreSQL for each namespace, and one durable commit
/// for each token. The database must have been prepared with `postgres::migrate`. Connects when the
/// first number is asked for.
///
/// ```no_run
/// # #[cfg(feature = "redlock")]
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use soldonce_lease::backend::redis::{RedisConfig, RedlockConfig};
/// use soldonce_lease::{Locks, PgConfig, PgTokens};
///
/// let nodes = ["redis://10.0.0.1", "redis://10.0.0.2", "redis://10.0.0.3"];
/// let nodes = nodes.map(RedisConfig::from).to_vec();
/// let locks = Locks::redlock(RedlockConfig::new(nodes))
///     .namespace("app")
///     .tokens(PgTokens::new(PgConfig::url("postgres://app@10.0.0.6/app")?))
///     .connect()
///     .await?;
/// # let _ = locks;
/// # Ok(())
/// # }
/// ```
pub struct PgTokens(Source);

impl PgEpochs {
    /// Epochs of the database of `config`.
    pub fn new(config: PgConfig) -> Self {
        Self(Source::new(config, Arc::new(SystemClock)))
    }

    /// Ends waits by `clock`.
    #[must_use]
    pub fn clock(self, clock: Arc<dyn Clock>) -> Self {
        Self(Source::new(self.0.config, clock))
    }
}

impl PgTokens {
    /// Tokens of the database of `config`.
    pub fn new(config: PgConfig) -> Self {
        Self(Source::new(config, Arc::new(SystemClock)))
    }

    /// Ends waits by `clock`.
    #[must_use]
    pub fn clock(self, clock: Arc<dyn Clock>) -> Self {
        Self(Source::new(self.0.config, clock))
    }
}

struct Source {
    config: PgConfig,
    link: Link,
}

impl Source {
    fn new(config: PgConfig, clock: Arc<dyn Clock>) -> Self {
        let link = Link::new(config.clone(), clock, LIMIT);
        Self { config, link }
    }

    /// The one number that the statement answers; `None` when none is left.
    async fn number<T: FromSqlOwned>(
        &self,
        sql: &'static str,
        params: [Param<'_>; 2],
    ) -> Result<Option<T>, EpochError> {
        let unavailable = |why: String| EpochError::Unavailable(why);
        // After a lost answer the number may be used up, which costs nothing: ask again.
        let rows = self.link.query(sql, &params).await;
        let rows = rows.map_err(|error| unavailable(error.to_string()))?;
        let row = rows
            .first()
            .ok_or_else(|| unavailable("no row".to_owned()))?;
        row.try_get(0)
            .map_err(|error| unavailable(error.to_string()))
    }
}

impl EpochSource for PgEpochs {
    fn next<'a>(&'a self, namespace: &'a str, above: u32) -> Fut<'a, Result<u32, EpochError>> {
        Box::pin(async move {
            let none = EpochError::Exhausted { above };
            let least = i32::try_from(above).map_err(|_| none.clone())?;
            let params: [Param<'_>; 2] = [(&namespace, Type::TEXT), (&least, Type::INT4)];
            let given: Option<i32> = self.0.number(NEXT_EPOCH, params).await?;
            given
                .and_then(|given| u32::try_from(given).ok())
                .ok_or(none)
        })
    }
}

impl TokenSource for PgTokens {
    fn next<'a>(&'a self, namespace: &'a str, above: u64) -> Fut<'a, Result<u64, EpochError>> {
        Box::pin(async move {
            let none = EpochError::Exhausted {
                above: u32::try_from(above >> 32).unwrap_or(u32::MAX),
            };
            let least = i64::try_from(above).map_err(|_| none.clone())?;
            let params: [Param<'_>; 2] = [(&namespace, Type::TEXT), (&least, Type::INT8)];
            let given: Option<i64> = self.0.number(NEXT_TOKEN, params).await?;
            given
                .and_then(|given| u64::try_from(given).ok())
                .ok_or(none)
        })
    }
}
