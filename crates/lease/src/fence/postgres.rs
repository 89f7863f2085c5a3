//! A fence source for many hosts: numbers in rows of PostgreSQL.

use std::sync::Arc;
use std::time::Duration;

use tokio_postgres::types::{FromSqlOwned, Type};

use crate::backend::Fut;
use crate::backend::postgres::{Link, Param, PgConfig};
use crate::{Clock, FenceError, FenceKind, FenceSource, SystemClock};

/// Longest wait for a number, connecting included. Shorter than a call may take, so that an acquire
/// learns why it has no number, and that nothing was granted (`docs/decisions/0017`).
const LIMIT: Duration = Duration::from_millis(400);

const NEXT_EPOCH: &str = "\
-- epoch_next
SELECT soldonce_lease_epoch_next($1, $2)";

const NEXT_TOKEN: &str = "\
-- token_next
SELECT soldonce_lease_token_next($1, $2)";

/// A [`FenceSource`] for all hosts: a row of PostgreSQL for each namespace and kind of number, and one durable
/// commit for each number. The database must have been prepared with `postgres::migrate`. Connects when the
/// first number is asked for.
///
/// ```no_run
/// # #[cfg(feature = "redis")]
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use soldonce_lease::{Leases, PgConfig, PgFence};
///
/// let database = PgConfig::url("postgres://app@10.0.0.6/app")?;
/// soldonce_lease::backend::postgres::migrate(&database).await?; // once, or at every start
/// let leases = Leases::redis("redis://10.0.0.5")
///     .namespace("app")
///     .fence(PgFence::new(database))
///     .connect()
///     .await?;
/// # let _ = leases;
/// # Ok(())
/// # }
/// ```
pub struct PgFence {
    config: PgConfig,
    link: Link,
}

impl PgFence {
    /// Creates a source on the database of `config`, without connecting.
    pub fn new(config: PgConfig) -> Self {
        Self::on(config, Arc::new(SystemClock))
    }

    /// Uses `clock` for the time-outs.
    #[must_use]
    pub fn clock(self, clock: Arc<dyn Clock>) -> Self {
        Self::on(self.config, clock)
    }

    fn on(config: PgConfig, clock: Arc<dyn Clock>) -> Self {
        let link = Link::new(config.clone(), clock, LIMIT);
        Self { config, link }
    }

    /// Runs a statement that returns one number; `None` when no number is left.
    async fn number<T: FromSqlOwned>(
        &self,
        sql: &'static str,
        params: [Param<'_>; 2],
    ) -> Result<Option<T>, FenceError> {
        let unavailable = |why: String| FenceError::Unavailable(why);
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

impl FenceSource for PgFence {
    fn next<'a>(
        &'a self,
        kind: FenceKind,
        namespace: &'a str,
        above: u64,
    ) -> Fut<'a, Result<u64, FenceError>> {
        Box::pin(async move {
            let none = FenceError::Exhausted { above };
            let given = match kind {
                FenceKind::Epoch => {
                    let least = i32::try_from(above).map_err(|_| none.clone())?;
                    let params: [Param<'_>; 2] = [(&namespace, Type::TEXT), (&least, Type::INT4)];
                    let given: Option<i32> = self.number(NEXT_EPOCH, params).await?;
                    given.map(i64::from)
                }
                FenceKind::Token => {
                    let least = i64::try_from(above).map_err(|_| none.clone())?;
                    let params: [Param<'_>; 2] = [(&namespace, Type::TEXT), (&least, Type::INT8)];
                    self.number(NEXT_TOKEN, params).await?
                }
            };
            let given = given.and_then(|given| u64::try_from(given).ok());
            given.ok_or(none)
        })
    }
}
