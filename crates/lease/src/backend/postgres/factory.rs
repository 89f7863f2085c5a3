//! Makes PostgreSQL the backend of a [`Leases`].

use std::sync::Arc;

use super::{PgConfig, Postgres, schema};
use crate::backend::{Backend, BackendContext, BackendFactory, Fencing, Fut, Kind};
use crate::{BackendError, Builder, Leases};

impl Leases {
    /// Starts a builder for leases in a PostgreSQL database that `postgres::migrate` has prepared.
    /// Tokens need no source: their epochs are in the same database.
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// use soldonce_lease::backend::postgres::migrate;
    /// use soldonce_lease::{Leases, PgConfig};
    ///
    /// let database = PgConfig::url("postgres://app@10.0.0.6/app")?.notify();
    /// migrate(&database).await?; // once, or at every start
    /// let leases = Leases::postgres(database).namespace("app").connect().await?;
    /// let lease = leases.lease("report:2026").acquire().await?;
    /// # let _ = lease;
    /// # Ok(())
    /// # }
    /// ```
    pub fn postgres(config: PgConfig) -> Builder {
        Builder::of(config)
    }
}

impl BackendFactory for PgConfig {
    fn kind(&self) -> Kind {
        Kind::Postgres
    }

    fn connect(
        self: Box<Self>,
        with: BackendContext,
    ) -> Fut<'static, Result<Arc<dyn Backend>, BackendError>> {
        Box::pin(async move {
            if let Fencing::Source(_) = with.fencing {
                let why = "postgres keeps its own epochs: give it no other source";
                return Err(BackendError::Config(why.to_owned()));
            }
            let backend = Postgres::new(*self, with.namespace, with.clock, with.call_timeout);
            let why = match schema::installed(&backend.settling).await? {
                Some(schema::VERSION) => return Ok(Arc::new(backend) as Arc<dyn Backend>),
                Some(other) => format!(
                    "the lease tables have version {other}, this client knows {}",
                    schema::VERSION
                ),
                None => "the lease tables are not installed".to_owned(),
            };
            let why = format!("{why}. Call postgres::migrate");
            Err(BackendError::Config(why))
        })
    }
}
