//! The suite of all backends, on a server and on a cluster.

use std::time::Duration;

use soldonce_lease::backend::redis::RedisBackend;
use soldonce_lease::backend::{Backend, Fencing, Fut};

use soldonce_testkit::redis::Redis;

use crate::conformance::{Bench, pass_on_redis};

use super::site::{Numbers, connect, settings};

/// A backend and its servers.
struct Real<S> {
    backend: RedisBackend,
    servers: S,
}

impl<S: AsRef<[Redis]> + Send + Sync> Bench for Real<S> {
    fn backend(&self) -> &dyn Backend {
        &self.backend
    }

    fn advance(&self, span: Duration) -> Fut<'_, ()> {
        pass_on_redis(self.servers.as_ref(), span);
        Box::pin(std::future::ready(()))
    }

    fn ttl(&self) -> Duration {
        Duration::from_mins(1)
    }

    fn slack(&self) -> Duration {
        Duration::from_secs(12)
    }

    fn wakes(&self) -> bool {
        true
    }
}

async fn server() -> Real<[Redis; 1]> {
    let server = Redis::start().unwrap();
    let mut settings = settings();
    settings.fencing = Fencing::Source(Numbers::from(1));
    Real {
        backend: connect(&server, settings).await,
        servers: [server],
    }
}

pub(super) mod server {
    use crate::conformance::conforms;

    conforms!(super::server());
}

#[cfg(feature = "cluster")]
mod cluster {
    use soldonce_lease::Namespace;
    use soldonce_lease::backend::redis::RedisBackend;
    use soldonce_lease::backend::{BackendContext, Fencing};
    use soldonce_testkit::PATIENCE;
    use soldonce_testkit::redis::{FullCoverage, RedisCluster};

    use super::super::site::{Numbers, on_cluster, seeds};
    use super::Real;
    use crate::conformance as suite;

    /// A backend in a namespace of its own, so that each law begins with nothing on one cluster.
    async fn fresh(cluster: &RedisCluster, namespace: &str) -> RedisBackend {
        let mut settings = BackendContext::new(Namespace::new(namespace).unwrap());
        settings.fencing = Fencing::Source(Numbers::from(1));
        settings.call_timeout = PATIENCE;
        on_cluster(&seeds(cluster), &settings).await
    }

    macro_rules! laws_hold {
        ($($law:ident)+) => {
            #[tokio::test]
            async fn every_law_holds_on_a_cluster() {
                let cluster = RedisCluster::start(FullCoverage::NotRequired).unwrap();
                $(
                    let namespace = stringify!($law).replace('_', "-");
                    let backend = fresh(&cluster, &namespace[..namespace.len().min(32)]).await;
                    suite::$law(&Real { backend, servers: cluster.nodes() }).await;
                )+
                let backend = fresh(&cluster, "oracle").await;
                suite::agrees_with_the_oracle(&Real { backend, servers: cluster.nodes() }).await;
            }
        };
    }

    suite::every_law! { laws_hold }
}
