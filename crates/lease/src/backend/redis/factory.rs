//! Makes Redis the backend: `Leases::redis` and `Leases::cluster`.

use std::sync::Arc;

use super::{RedisBackend, RedisConfig};
use crate::backend::{Backend, BackendContext, BackendFactory, Fut, Kind};
use crate::{BackendError, Builder, Leases};

impl Leases {
    /// Starts a builder for leases on one Redis primary, version 7.0 or later, or Valkey. Needs a
    /// [`Builder::namespace`], and [`Builder::fence`] if tokens must rise through loss of its data
    /// even if its clock is wrong.
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// use soldonce_lease::{FileFence, Leases};
    ///
    /// let leases = Leases::redis("redis://127.0.0.1:6379")
    ///     .namespace("app")
    ///     .fence(FileFence::new("/var/lib/app"))
    ///     .connect()
    ///     .await?;
    /// let lease = leases.lease("report:2026").acquire().await?;
    /// # Ok(()) }
    /// ```
    pub fn redis(config: impl Into<RedisConfig>) -> Builder {
        Builder::of(config.into())
    }

    /// Starts a builder for leases on a Redis Cluster, reached through any of its nodes. Names of a
    /// group share one slot by their key form. Needs what [`Leases::redis`] needs.
    #[cfg(feature = "cluster")]
    pub fn cluster(seeds: impl IntoIterator<Item: Into<RedisConfig>>) -> Builder {
        Builder::of(Seeds(seeds.into_iter().map(Into::into).collect()))
    }
}

impl BackendFactory for RedisConfig {
    fn kind(&self) -> Kind {
        Kind::Redis
    }

    fn in_place(&self, with: &BackendContext) -> Result<Option<Arc<dyn Backend>>, BackendError> {
        let backend = RedisBackend::of_server(Kind::Redis, self, with.clone())?;
        Ok(Some(Arc::new(backend)))
    }

    fn connect(
        self: Box<Self>,
        with: BackendContext,
    ) -> Fut<'static, Result<Arc<dyn Backend>, BackendError>> {
        Box::pin(async move {
            let backend = RedisBackend::connect(&self, with).await?;
            Ok(Arc::new(backend) as Arc<dyn Backend>)
        })
    }
}

#[cfg(feature = "cluster")]
struct Seeds(Vec<RedisConfig>);

#[cfg(feature = "cluster")]
impl BackendFactory for Seeds {
    fn kind(&self) -> Kind {
        Kind::Cluster
    }

    fn in_place(&self, with: &BackendContext) -> Result<Option<Arc<dyn Backend>>, BackendError> {
        let backend = RedisBackend::of_cluster(&self.0, with.clone())?;
        Ok(Some(Arc::new(backend)))
    }

    fn connect(
        self: Box<Self>,
        with: BackendContext,
    ) -> Fut<'static, Result<Arc<dyn Backend>, BackendError>> {
        Box::pin(async move {
            let backend = RedisBackend::connect_cluster(&self.0, with).await?;
            Ok(Arc::new(backend) as Arc<dyn Backend>)
        })
    }
}
