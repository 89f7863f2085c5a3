//! Redlock on private servers that are killed, stopped and restarted empty.

pub(crate) mod conformance;
pub(crate) mod faults;
mod permits;
mod unknown;

use std::sync::Arc;
use std::time::Duration;

use soldonce_lease::backend::redis::{RedisConfig, Redlock, RedlockConfig};
use soldonce_lease::backend::{Acquire, BackendContext};
use soldonce_lease::{BootTime, Clock, Namespace, Owner, SleepFuture, SystemEntropy};
use soldonce_testkit::redis::Redis;

use crate::conformance::one;
use crate::{awake, requests};

pub(crate) use crate::requests::{granted, release, renew};

/// A backend whose nodes vote at once, however young they are.
pub(crate) async fn redlock(servers: &[Redis]) -> Redlock {
    let config = RedlockConfig::new(nodes(servers)).sit_out(Duration::ZERO);
    connect(config).await
}

pub(crate) fn nodes(servers: &[Redis]) -> Vec<RedisConfig> {
    let nodes = servers.iter().map(|server| RedisConfig::from(server.url()));
    nodes.collect()
}

pub(crate) async fn connect(config: RedlockConfig) -> Redlock {
    connect_with(config, Arc::new(Slow)).await
}

/// A slow clock, on which a busy machine loses no vote. Without the time of day: tokens are above what was met, and
/// say nothing else.
pub(crate) struct Slow;

impl Clock for Slow {
    fn wall_ms(&self) -> i64 {
        0
    }

    fn boot(&self) -> BootTime {
        awake::Slow.boot()
    }

    fn sleep_until(&self, until: BootTime) -> SleepFuture<'_> {
        awake::Slow.sleep_until(until)
    }
}

pub(crate) async fn connect_with(config: RedlockConfig, clock: Arc<dyn Clock>) -> Redlock {
    let mut settings = BackendContext::new(Namespace::new("app").unwrap());
    settings.clock = clock;
    #[cfg(all(feature = "test-kit", debug_assertions))]
    crate::planting::plant(&mut settings);
    Redlock::connect(config, settings).await.unwrap()
}

/// Twenty seconds for a new owner: nodes then have the longest time for their votes.
pub(crate) fn ask(name: &str) -> Acquire {
    Acquire {
        cap: Some(Duration::from_mins(10)),
        meta: "who=test".into(),
        ..requests::ask(
            one(name),
            Owner::draw(&SystemEntropy),
            Duration::from_secs(20),
        )
    }
}

/// How many servers have a lease key.
pub(crate) fn keys(servers: &[Redis]) -> usize {
    let has = |server: &&Redis| {
        let keys = server.cli(&["KEYS", "sl:*:l:*"]);
        keys.is_ok_and(|keys| !keys.trim().is_empty())
    };
    servers.iter().filter(has).count()
}
