//! The suite of all backends, over three private servers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use soldonce_lease::backend::redis::{Redlock, RedlockConfig};
use soldonce_lease::backend::{Backend, Fut};
use soldonce_lease::{BootTime, Clock, SleepFuture, SystemClock};
use soldonce_testkit::redis::Redis;
use soldonce_testkit::until_some;

use super::{Slow, connect_with, nodes};
use crate::conformance::{Bench, conforms, pass_on_redis};

/// Every lease of a server: key, value and whole seconds left, in one text.
const LEASES: &str = "local all = redis.call('KEYS', 'sl:*:l:*') table.sort(all) \
    for at, key in ipairs(all) do all[at] = key .. ' ' .. (redis.call('GET', key) or '') .. ' ' .. \
    string.format('%.0f', (redis.call('PTTL', key) + 2000) / 4000) end \
    return table.concat(all, '\\n')";

struct Three {
    backend: Redlock,
    servers: Vec<Redis>,
    clock: Ahead,
}

/// A slow clock, ahead by what the servers were told to skip: an owner that asks again hears
/// the same token only as long as its grant can be alive, on this side's clock.
#[derive(Clone, Default)]
struct Ahead(Arc<AtomicU64>);

impl Ahead {
    fn by(&self) -> Duration {
        Duration::from_millis(self.0.load(Ordering::SeqCst))
    }
}

impl Clock for Ahead {
    fn wall_ms(&self) -> i64 {
        SystemClock.wall_ms()
    }

    fn boot(&self) -> BootTime {
        Slow.boot().plus(self.by())
    }

    fn sleep_until(&self, until: BootTime) -> SleepFuture<'_> {
        Slow.sleep_until(until.minus(self.by()))
    }
}

impl Three {
    async fn start() -> Self {
        let servers = Redis::independent(3).unwrap();
        let clock = Ahead::default();
        let config = RedlockConfig::new(nodes(&servers)).sit_out(Duration::ZERO);
        let backend = connect_with(config, Arc::new(clock.clone())).await;
        Self {
            backend,
            servers,
            clock,
        }
    }
}

/// Longest wait for the third node. Two of three decide, so some differ for good, and need none.
const THIRD: Duration = Duration::from_millis(250);

impl Three {
    /// Waits a little until all servers say the same: a call may have ended while the third has not
    /// heard of it, and what came to it behind a jump of time would not take part in the jump.
    fn settle(&self) {
        let leases = |server: &Redis| server.cli(&["EVAL", LEASES, "0"]);
        let agree = || {
            let all: Vec<String> = self.servers.iter().map(leases).collect::<Result<_, _>>()?;
            Ok(all.windows(2).all(|two| two[0] == two[1]).then_some(()))
        };
        until_some("all nodes say the same", THIRD, agree).unwrap_or_default();
    }
}

impl Bench for Three {
    fn backend(&self) -> &dyn Backend {
        &self.backend
    }

    fn advance(&self, span: Duration) -> Fut<'_, ()> {
        self.settle();
        pass_on_redis(&self.servers, span);
        let millis = u64::try_from(span.as_millis()).unwrap();
        self.clock.0.fetch_add(millis, Ordering::SeqCst);
        Box::pin(std::future::ready(()))
    }

    /// Random ones are up to a quarter longer, and a minute is the longest.
    fn ttl(&self) -> Duration {
        Duration::from_secs(40)
    }

    fn slack(&self) -> Duration {
        Duration::from_secs(9)
    }

    fn wakes(&self) -> bool {
        false
    }
}

conforms!(Three::start());
