//! Runs scripts that are not of this crate on its connections: reconnection, time-outs, NOSCRIPT,
//! redirections and the cluster's watchdog are written once. Knows nothing of what the scripts do,
//! and shares no connection with leases. `lease.md` 6.5 and 8.

use std::sync::Arc;
use std::time::Duration;

use super::call::Call;
use super::config::RedisConfig;
use super::keys::{KeyScheme, Keyspace, Shard};
use super::link::Link;
use super::reply::integers;
use super::role::{ConnectionRole, Replaced};
use super::script::Script;
use super::server::ServerLink;
#[cfg(feature = "cluster")]
use crate::backend::BackendContext;
use crate::backend::Kind;
use crate::{BackendError, Namespace, Notices, SystemClock};

/// A Lua script that is not of this crate. Its rules are those of `lease.md` 6.2; its answer is an
/// array of integers.
pub struct RedisScript(Script);

impl RedisScript {
    /// Creates a script of this text.
    pub fn new(text: &'static str) -> Self {
        Self(Script::of(text))
    }
}

/// The hash tag of the keys of one call, which decides its slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyTag {
    shard: Shard,
    text: String,
}

impl KeyTag {
    /// Returns the tag with its braces, such as `{app.07}`: a part of every key of the call.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

/// Runs scripts on one Redis primary or on a Redis Cluster.
///
/// ```no_run
/// # async fn example() -> Result<(), soldonce_lease::BackendError> {
/// use std::sync::LazyLock;
/// use std::time::Duration;
/// use soldonce_lease::Namespace;
/// use soldonce_lease::backend::redis::{RedisConfig, RedisScript, RedisScripts};
///
/// static COUNT: LazyLock<RedisScript> =
///     LazyLock::new(|| RedisScript::new("#!lua\nreturn {redis.call('INCR', KEYS[1])}"));
///
/// let namespace = Namespace::new("app").map_err(|error| {
///     soldonce_lease::BackendError::Config(error.to_string())
/// })?;
/// let scripts = RedisScripts::server(&RedisConfig::from("redis://127.0.0.1"), &namespace)?;
/// let tag = scripts.tag(b"visitors");
/// let key = format!("count:{}:visitors", tag.as_str());
/// let answer = scripts.run(&COUNT, (&tag, &[key]), &[], Duration::from_millis(50)).await?;
/// # Ok(()) }
/// ```
pub struct RedisScripts {
    link: Link,
    keys: Arc<Keyspace>,
}

impl RedisScripts {
    /// Creates a runner on the primary at `config`, which connects when it is first used.
    ///
    /// # Errors
    /// `Config` when the address cannot work.
    pub fn server(config: &RedisConfig, namespace: &Namespace) -> Result<Self, BackendError> {
        let keys = Arc::new(Keyspace::new(namespace, KeyScheme::Slots));
        let unreported = Replaced::new(Kind::Redis, &Notices::default());
        let link = ServerLink::new(config, unreported, Arc::new(SystemClock))?;
        let link = Link::Server(Box::new(link));
        Ok(Self { link, keys })
    }

    /// Creates a runner on the cluster that any of `seeds` belongs to, which connects when it is
    /// first used; `clock` paces the replacement of silent connections.
    ///
    /// # Errors
    /// `Config` when an address cannot work.
    #[cfg(feature = "cluster")]
    pub fn cluster(
        seeds: &[RedisConfig],
        namespace: &Namespace,
        clock: &Arc<dyn crate::Clock>,
    ) -> Result<Self, BackendError> {
        let keys = Arc::new(Keyspace::new(namespace, KeyScheme::Slots));
        let mut with = BackendContext::new(namespace.clone());
        with.clock = Arc::clone(clock);
        let link = super::cluster::ClusterLink::new(seeds, Arc::clone(&keys), &with)?;
        let link = Link::Cluster(Box::new(link));
        Ok(Self { link, keys })
    }

    /// Returns the tag for keys about this subject. A namespace has 64 tags, spread over the slots.
    pub fn tag(&self, subject: &[u8]) -> KeyTag {
        let shard = self.keys.shard_of_bytes(subject);
        let text = self.keys.tag(shard);
        KeyTag { shard, text }
    }

    /// Connects if need be, and checks that the server answers. For callers of
    /// [`RedisScripts::run`] whose time-out may be too short for a first connection.
    ///
    /// # Errors
    /// As [`RedisScripts::run`]; `Config` when the server refuses the login.
    ///
    /// # Cancel safety
    /// Dropped, a connection may still be made, for the next call.
    pub async fn ping(&self, within: Duration) -> Result<(), BackendError> {
        self.link.ping(within).await
    }

    /// Runs a script by its hash, and by its text where a server does not know it. Every key must
    /// hold the tag. `within` covers connecting too.
    ///
    /// # Errors
    /// As every backend: `Unknown` if it may have run, else `NotSent` or `Rejected`.
    ///
    /// # Cancel safety
    /// Dropped, the script may run all the same.
    pub async fn run(
        &self,
        script: &'static RedisScript,
        (tag, keys): (&KeyTag, &[String]),
        args: &[u64],
        within: Duration,
    ) -> Result<Vec<i64>, BackendError> {
        let mut call = Call::new(tag.shard, &script.0, keys);
        call.command.arg(args);
        let answer = self.link.run(&call, ConnectionRole::Main, within).await;
        answer.and_then(integers)
    }
}

#[cfg(test)]
mod tests {
    use redis::Value;

    use super::*;

    #[test]
    fn only_an_array_of_integers_is_an_answer() {
        let array = |parts: &[Value]| integers(Value::Array(parts.to_vec())).ok();
        assert_eq!(array(&[Value::Int(1), Value::Int(-2)]), Some(vec![1, -2]));
        assert_eq!(array(&[Value::Int(1), Value::Nil]), None);
        assert!(integers(Value::Okay).is_err());
    }

    #[test]
    fn a_subject_has_one_tag_in_a_namespace() {
        let scripts = |namespace: &str| {
            let namespace = Namespace::new(namespace).expect("legal");
            RedisScripts::server(&RedisConfig::new("h", 1), &namespace).expect("legal")
        };
        let (one, same) = (scripts("app").tag(b"a"), scripts("app").tag(b"a"));
        assert_eq!(one, same);
        assert!(one.as_str().starts_with("{app.") && one.as_str().ends_with('}'));
        assert_ne!(one, scripts("other").tag(b"a"));
    }
}
