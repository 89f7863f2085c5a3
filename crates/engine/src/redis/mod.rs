//! An optional Redis, which nothing depends on: asked with a short time-out, not asked for a while
//! after failures in a row, and connected to again by itself.

mod pause;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use soldonce_clock::Clock;
use soldonce_lease::backend::redis::{KeyTag, RedisConfig, RedisScript, RedisScripts};
use soldonce_lease::{BackendError, Namespace};
use tokio::task::JoinSet;

use self::pause::Pause;
use crate::limits::{REDIS_CONNECT_MS, REDIS_WAIT_MS};
use crate::locks::lock;

/// One Redis, or one Redis Cluster, that may be away.
pub struct OptionalRedis {
    scripts: Arc<RedisScripts>,
    wait: Duration,
    pause: Pause,
    clock: Arc<dyn Clock>,
    words: Words,
    /// At most one task, which connects: that may take longer than a caller waits.
    connecting: Mutex<JoinSet<()>>,
}

/// The log messages about it.
pub(crate) struct Words {
    /// Logged when it is not asked any more.
    pub(crate) away: &'static str,
    /// Logged when it answers again.
    pub(crate) back: &'static str,
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    /// None came in time, or it was an error or one that cannot be read. The script may have run.
    #[error("no answer")]
    NoAnswer,
    /// It was not asked: it did not answer several times in a row, a moment ago.
    #[error("not asked")]
    NotAsked,
}

impl OptionalRedis {
    /// Creates a client of the Redis at `url`, which is `redis://HOST:PORT` or
    /// `redis+cluster://HOST:PORT,HOST:PORT`; `rediss` is TLS. Connects when it is first asked, so
    /// a Redis that is away keeps no server from starting.
    ///
    /// # Errors
    /// `Config` when the address cannot work.
    pub fn at(
        url: &str,
        namespace: &Namespace,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, BackendError> {
        let scripts = match RedisConfig::seeds(url) {
            Some(seeds) => RedisScripts::cluster(&seeds, namespace, &clock)?,
            None => RedisScripts::server(&RedisConfig::from(url), namespace)?,
        };
        Ok(Self {
            scripts: Arc::new(scripts),
            wait: Duration::from_millis(REDIS_WAIT_MS),
            pause: Pause::default(),
            clock,
            words: Words {
                away: "a Redis does not answer",
                back: "a Redis answers again",
            },
            connecting: Mutex::default(),
        })
    }

    /// Sets the longest wait for an answer; default [`REDIS_WAIT_MS`].
    #[must_use]
    pub fn wait(self, wait: Duration) -> Self {
        Self { wait, ..self }
    }

    /// Sets the log messages, which say what is missing while it is away.
    pub(crate) fn named(self, words: Words) -> Self {
        Self { words, ..self }
    }

    /// Returns the hash tag of the keys about this subject.
    pub(crate) fn tag(&self, subject: &[u8]) -> KeyTag {
        self.scripts.tag(subject)
    }

    /// Connects, and checks that it answers, in a time that is enough for both: for people who look
    /// at it. A server does so by itself.
    ///
    /// # Errors
    /// Says why it does not.
    ///
    /// # Cancel safety
    /// Dropped, nothing of it stays.
    pub async fn ping(&self) -> Result<(), BackendError> {
        let within = Duration::from_millis(REDIS_CONNECT_MS);
        self.scripts.ping(within).await
    }

    /// Runs a script and reads its answer.
    ///
    /// # Errors
    /// [`AskError`], after the longest wait at most.
    ///
    /// # Cancel safety
    /// Dropped, the script may run all the same.
    pub(crate) async fn ask<T>(
        &self,
        script: &'static RedisScript,
        place: (&KeyTag, &[String]),
        args: &[u64],
        read: impl FnOnce(&[i64]) -> Option<T>,
    ) -> Result<T, AskError> {
        if !self.pause.may_ask(self.clock.boot()) {
            return Err(AskError::NotAsked);
        }
        let answer = self.scripts.run(script, place, args, self.wait).await;
        let odd = || BackendError::Unknown("an odd answer".to_owned());
        match answer.and_then(|answer| read(&answer).ok_or_else(odd)) {
            Ok(answer) => {
                if self.pause.answered() {
                    tracing::info!("{}", self.words.back);
                }
                Ok(answer)
            }
            Err(error) => {
                if let BackendError::NotSent(_) = error {
                    self.connect();
                }
                if self.pause.failed(self.clock.boot()) {
                    tracing::warn!(%error, "{}", self.words.away);
                }
                Err(AskError::NoAnswer)
            }
        }
    }

    /// Connects before the first caller comes. A failure is logged, and Redis is not asked for a
    /// while.
    ///
    /// # Cancel safety
    /// Dropped, the first caller connects.
    pub async fn greet(&self) {
        if let Err(error) = self.ping().await {
            self.pause.rests(self.clock.boot());
            tracing::warn!(%error, "{}", self.words.away);
        }
    }

    /// Connects in the background, unless that is under way.
    fn connect(&self) {
        let mut connecting = lock(&self.connecting);
        while connecting.try_join_next().is_some() {}
        if connecting.is_empty() {
            connecting.spawn(ping(Arc::clone(&self.scripts)));
        }
    }
}

async fn ping(scripts: Arc<RedisScripts>) {
    if let Err(error) = scripts.ping(Duration::from_millis(REDIS_CONNECT_MS)).await {
        tracing::debug!(%error, "no connection to Redis");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_cannot_work_is_refused_without_its_password() {
        let clock: Arc<dyn Clock> = Arc::new(soldonce_clock::SystemClock);
        let namespace = Namespace::new("test").unwrap();
        for wrong in ["http://h", "redis+cluster://:hidden@h/x", "hidden"] {
            let error = OptionalRedis::at(wrong, &namespace, Arc::clone(&clock)).unwrap_err();
            assert!(matches!(error, BackendError::Config(_)), "{error}");
            assert!(!error.to_string().contains("hidden"), "{error}");
        }
    }
}
