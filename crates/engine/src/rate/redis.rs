//! Rates on Redis: one script per request, by the server's clock. Knows no HTTP; whoever gets no
//! answer in time is let go on.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use soldonce_lease::backend::redis::RedisScript;
use soldonce_lease::{BackendError, Clock, Namespace};

use super::{Fut, Quota, RateKey, SharedRates, Taken, Unshared};
use crate::redis::{OptionalRedis, Unheard, Words};

static TAKE: LazyLock<RedisScript> = LazyLock::new(|| RedisScript::new(include_str!("take.lua")));

/// Rates that all servers on one Redis, or one Redis Cluster, share.
pub struct RedisRates(OptionalRedis);

impl std::fmt::Debug for RedisRates {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RedisRates").finish_non_exhaustive()
    }
}

impl RedisRates {
    /// Rates at `url`, which is `redis://HOST:PORT` or `redis+cluster://HOST:PORT,HOST:PORT`. All
    /// servers of a `namespace` count together. Connects when it is first asked, so a Redis that is
    /// away keeps no server from starting.
    ///
    /// # Errors
    /// `Config` when the address cannot work.
    pub fn at(
        url: &str,
        namespace: &Namespace,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, BackendError> {
        let words = Words {
            away: "rate limits are not shared: each server counts for itself until Redis answers",
            back: "rate limits are shared again: Redis answers",
        };
        Ok(Self(OptionalRedis::at(url, namespace, clock, words)?))
    }

    /// Waits so long for an answer; default [`REDIS_WAIT_MS`](crate::limits::REDIS_WAIT_MS).
    #[must_use]
    pub fn wait(self, wait: Duration) -> Self {
        Self(self.0.wait(wait))
    }

    /// Connects before the first caller comes, and tells the log when nobody answers.
    ///
    /// # Cancel safety
    /// Dropped, the first caller connects.
    pub async fn greet(&self) {
        self.0.greet().await;
    }

    async fn take(&self, key: RateKey, quota: Quota) -> Result<Taken, Unshared> {
        let tag = self.0.tag(&key.id.to_be_bytes());
        let keys = [format!("sr:{}:{}:{:032x}", tag.as_str(), key.kind, key.id)];
        let args = [quota.interval_us(), quota.whole_us()];
        let answer = self.0.ask(&TAKE, (&tag, &keys), &args, read).await;
        answer.map_err(|unheard| match unheard {
            Unheard::NoAnswer => Unshared::NoAnswer,
            Unheard::NotAsked => Unshared::NotAsked,
        })
    }
}

impl SharedRates for RedisRates {
    fn take(&self, key: RateKey, quota: Quota) -> Fut<'_, Result<Taken, Unshared>> {
        Box::pin(self.take(key, quota))
    }
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

    #[test]
    fn an_address_that_cannot_work_is_refused_without_its_password() {
        let clock: Arc<dyn Clock> = Arc::new(soldonce_lease::SystemClock);
        let namespace = Namespace::new("test").unwrap();
        for wrong in ["http://h", "redis+cluster://:hidden@h/x", "hidden"] {
            let error = RedisRates::at(wrong, &namespace, Arc::clone(&clock)).unwrap_err();
            assert!(matches!(error, BackendError::Config(_)), "{error}");
            assert!(!error.to_string().contains("hidden"), "{error}");
        }
    }

    /// The rules of lease.md 6.2 that a reader would otherwise have to trust.
    #[test]
    fn the_script_keeps_the_rules() {
        let text = include_str!("take.lua");
        assert!(text.starts_with("#!lua\n"), "or it may touch other slots");
        assert_eq!(text.matches("redis.call('TIME')").count(), 1);
        assert!(!text.contains("tostring("), "it loses digits");
        assert!(text.contains("'PX'"), "what is not used ends by itself");
    }
}
