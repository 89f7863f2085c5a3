//! Rates on Redis: one script per request, by the server's clock. Knows no HTTP; a request that
//! gets no answer in time is let in.

use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;
use std::time::Duration;

use soldonce_lease::backend::redis::RedisScript;

use super::{Fut, HeldSums, OwnHeld, Quota, RateKey, SharedRates, Taken, Unshared};
use crate::redis::{OptionalRedis, Words};

static TAKE: LazyLock<RedisScript> = LazyLock::new(|| RedisScript::new(include_str!("take.lua")));
static HELD: LazyLock<RedisScript> = LazyLock::new(|| RedisScript::new(include_str!("held.lua")));

/// Rates that all servers on one Redis, or one Redis Cluster, share.
#[derive(Debug)]
pub struct RedisRates {
    redis: OptionalRedis,
    /// A random number that tells this server from the others.
    server: u64,
}

impl RedisRates {
    /// Counts rates on this Redis. All servers of its namespace count together.
    pub fn new(redis: OptionalRedis) -> Self {
        let redis = redis.named(Words {
            away: "rate limits are not shared: each server counts for itself until Redis answers",
            back: "rate limits are shared again: Redis answers",
        });
        let server = RandomState::new().hash_one("server") >> 1;
        Self { redis, server }
    }

    /// Returns the Redis on which they are counted.
    pub fn redis(&self) -> &OptionalRedis {
        &self.redis
    }
}

impl SharedRates for RedisRates {
    fn take(&self, key: RateKey, quota: Quota) -> Fut<'_, Result<Taken, Unshared>> {
        Box::pin(async move {
            let tag = self.redis.tag(&key.id.to_be_bytes());
            let keys = [format!("sr:{}:{}:{:032x}", tag.as_str(), key.kind, key.id)];
            let args = [quota.interval_us(), quota.whole_us()];
            self.redis.ask(&TAKE, (&tag, &keys), &args, read).await
        })
    }

    fn tell_held(&self, own: OwnHeld) -> Fut<'_, Result<HeldSums, Unshared>> {
        Box::pin(async move {
            let tag = self.redis.tag(&own.address.to_be_bytes());
            let keys = [format!("sr:{}:held:{:032x}", tag.as_str(), own.address)];
            let [event, units, checkouts] = [own.event.0, own.units, own.checkouts].map(u64::from);
            let args = [self.server, event, units, checkouts, own.ends_in.ms()];
            self.redis.ask(&HELD, (&tag, &keys), &args, read_sums).await
        })
    }
}

fn read_sums(answer: &[i64]) -> Option<HeldSums> {
    let &[units, of_event, checkouts] = answer else {
        return None;
    };
    Some(HeldSums {
        units: u32::try_from(units).ok()?,
        of_event: u32::try_from(of_event).ok()?,
        checkouts: u32::try_from(checkouts).ok()?,
    })
}

fn read(answer: &[i64]) -> Option<Taken> {
    let &[passed, left, micros] = answer else {
        return None;
    };
    let span = Duration::from_micros(u64::try_from(micros).ok()?);
    match passed {
        1 => Some(Taken::Passed {
            left: u32::try_from(left).ok()?,
            whole_in: span,
        }),
        0 => Some(Taken::Refused { retry_in: span }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_answers_of_the_script_are_read() {
        let span = Duration::from_micros(7);
        let passed = Taken::Passed {
            left: 3,
            whole_in: span,
        };
        assert_eq!(read(&[1, 3, 7]), Some(passed));
        assert_eq!(read(&[0, 0, 7]), Some(Taken::Refused { retry_in: span }));
        for odd in [&[][..], &[1, 3], &[2, 0, 0], &[1, -1, 0], &[0, 0, -1]] {
            assert_eq!(read(odd), None, "{odd:?}");
        }
    }

    /// Checks the rules of lease.md 6.2 that a reader would otherwise have to trust.
    #[test]
    fn the_script_keeps_the_rules() {
        for (text, end) in [
            (include_str!("take.lua"), "'PX'"),
            (include_str!("held.lua"), "'PEXPIRE'"),
        ] {
            assert!(text.starts_with("#!lua\n"), "or it may touch other slots");
            assert_eq!(text.matches("redis.call('TIME')").count(), 1);
            assert!(!text.contains("tostring("), "it loses digits");
            assert!(text.contains(end), "what is not used ends by itself");
        }
    }
}
