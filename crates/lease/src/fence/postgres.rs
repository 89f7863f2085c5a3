//! A fence source for many hosts: numbers in rows of PostgreSQL.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::runtime::{Handle, Id};
use tokio_postgres::types::Type;

use crate::backend::Fut;
use crate::backend::postgres::{Link, Param, PgConfig};
use crate::locks::lock;
use crate::{Clock, FenceError, FenceKind, FenceSource, SystemClock};

/// Longest wait for a number, connecting included. Shorter than a call may take, so that an acquire
/// learns why it has no number, and that nothing was granted (`docs/decisions/0017`).
const LIMIT: Duration = Duration::from_millis(400);

/// Most runtimes with a connection; one more ends the oldest. Leases ask from two, the caller's and the lease thread's.
const RUNTIMES_MAX: usize = 4;

/// What is above the highest epoch is cut to it: above both there is none.
const NEXT_EPOCH: &str = "\
-- epoch_next
SELECT soldonce_lease_epoch_next($1, least($2, 2097151)::integer)::bigint";

const NEXT_TOKEN: &str = "\
-- token_next
SELECT soldonce_lease_token_next($1, $2)";

/// A [`FenceSource`] for all hosts: a row of PostgreSQL for each namespace and kind of number, and one durable
/// commit for each number. The database must have been prepared with `postgres::migrate`. Connects when the
/// first number is asked for, once for each runtime that asks.
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
    clock: Arc<dyn Clock>,
    /// By runtime, because a connection makes no progress without the one that made it.
    links: Mutex<Vec<(Id, Arc<Link>)>>,
}

impl std::fmt::Debug for PgFence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PgFence")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

impl PgFence {
    /// Creates a source on the database of `config`, without connecting.
    pub fn new(config: PgConfig) -> Self {
        Self {
            config,
            clock: Arc::new(SystemClock),
            links: Mutex::default(),
        }
    }

    /// Uses `clock` for the time-outs.
    #[must_use]
    pub fn clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock, ..self }
    }

    /// Returns the connection of this runtime.
    fn link(&self) -> Arc<Link> {
        let here = Handle::current().id();
        let mut links = lock(&self.links);
        if let Some((_, link)) = links.iter().find(|(of, _)| *of == here) {
            return Arc::clone(link);
        }
        let link = Link::new(self.config.clone(), Arc::clone(&self.clock), LIMIT);
        let link = Arc::new(link);
        links.insert(0, (here, Arc::clone(&link)));
        links.truncate(RUNTIMES_MAX);
        link
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
            let unavailable =
                |why: &dyn std::fmt::Display| FenceError::Unavailable(why.to_string());
            let sql = match kind {
                FenceKind::Epoch => NEXT_EPOCH,
                FenceKind::Token => NEXT_TOKEN,
            };
            let least = i64::try_from(above).map_err(|_| none.clone())?;
            let params: [Param<'_>; 2] = [(&namespace, Type::TEXT), (&least, Type::INT8)];
            // After a lost answer the number may be used up, which costs nothing: ask again.
            let rows = self.link().query(sql, &params).await;
            let rows = rows.map_err(|error| unavailable(&error))?;
            let row = rows.first().ok_or_else(|| unavailable(&"no row"))?;
            let given: Option<i64> = row.try_get(0).map_err(|error| unavailable(&error))?;
            let given = given.and_then(|given| u64::try_from(given).ok());
            given.ok_or(none)
        })
    }
}
