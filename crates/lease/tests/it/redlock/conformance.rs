//! The suite of all backends, over three private servers. Time passes by moving the end of every key
//! nearer, and with it the moments that the values hold.

use std::time::Duration;

use soldonce_lease::backend::redis::Redlock;
use soldonce_lease::backend::{Backend, Fut};
use soldonce_testkit::redis::Redis;

use super::redlock;
use crate::conformance::{Bench, conforms};

/// Moves `ARGV[1]` milliseconds of all leases into the past.
const PASS: &str = "local function back(digits) local at = tonumber(digits) \
    return at > 0 and string.format('%016.0f', at - ARGV[1]) or digits end \
    for _, key in ipairs(redis.call('KEYS', 'sl:*:l:*')) do \
    local left, v = redis.call('PTTL', key) - ARGV[1], redis.call('GET', key) \
    if left <= 0 then redis.call('DEL', key) else redis.call('SET', key, \
    string.sub(v, 1, 50) .. back(string.sub(v, 51, 66)) .. '|' .. back(string.sub(v, 68, 83)) .. \
    string.sub(v, 84), 'PX', left) end end";

struct Three {
    backend: Redlock,
    servers: Vec<Redis>,
}

impl Three {
    async fn start() -> Self {
        let servers = Redis::independent(3).unwrap();
        let backend = redlock(&servers).await;
        Self { backend, servers }
    }
}

impl Bench for Three {
    fn backend(&self) -> &dyn Backend {
        &self.backend
    }

    fn advance(&self, span: Duration) -> Fut<'_, ()> {
        let millis = span.as_millis().to_string();
        for server in &self.servers {
            server.cli(&["EVAL", PASS, "0", &millis]).unwrap();
        }
        Box::pin(std::future::ready(()))
    }

    fn ttl(&self) -> Duration {
        Duration::from_secs(20)
    }

    fn slack(&self) -> Duration {
        Duration::from_secs(2)
    }

    fn wakes(&self) -> bool {
        false
    }
}

conforms!(Three::start());
