//! Leases on Redis: one primary, or the slots of a cluster. Every decision is one script on one
//! slot, by the server's clock; this side sends, reads the answer, and installs epochs. Holds no
//! timer, no retry of a refused name and no deadline: those are the facade's. `lease.md` 5.3, 6.
//!
//! Connections belong to the runtime that first used them, so one backend is used from one runtime.

mod call;
#[cfg(feature = "cluster")]
mod cluster;
mod config;
mod connect;
mod courier;
mod doctor;
mod epochs;
mod facts;
mod failure;
mod foreign;
mod join;
mod keys;
mod link;
mod listener;
mod reconnecting;
#[cfg(feature = "redlock")]
mod redlock;
mod reply;
mod script;
mod server;
mod settings;
mod topics;
#[cfg(feature = "cluster")]
mod watchdog;

use std::sync::Arc;
use std::time::Duration;

use crate::backend::{
    Acquire, AcquireReply, Backend, Durability, Facts, Finding, Fut, Holder, Kind, Names, Release,
    ReleaseReply, Renew, RenewReply, Tokens, WakeStream,
};
use crate::{BackendError, Clock, EpochError, Name, Notice, Notices, What};

pub use config::RedisConfig;
pub use foreign::{KeyTag, RedisScript, RedisScripts};
#[cfg(feature = "redlock")]
pub use redlock::{Redlock, RedlockConfig};
pub use settings::RedisSettings;

use call::Calls;
use courier::Courier;
use epochs::Epochs;
use keys::{Keyspace, Shard};
use link::{Lane, Link};
use listener::Listener;
use reply::Answer;
use server::ServerLink;

/// How often one acquire installs an epoch and asks again. More than one is needed only when
/// another process installs at the same moment, or the server is flushed once more.
const EPOCH_ROUNDS: usize = 4;

/// Calls that the first connection is allowed to take.
const CONNECT_CALLS: u32 = 4;

/// Longest wait for one renewal (lease.md LT6).
const RENEW_TIMEOUT_MAX: Duration = Duration::from_secs(2);

/// A backend on one Redis primary, or on a Redis Cluster.
pub struct RedisBackend {
    facts: Facts,
    keys: Arc<Keyspace>,
    link: Arc<Link>,
    listener: Listener,
    acquires: Courier<Acquire>,
    releases: Courier<Release>,
    epochs: Epochs,
    call_timeout: Duration,
    clock: Arc<dyn Clock>,
    notices: Notices,
}

impl RedisBackend {
    /// A backend on the primary at `config`, reached once to see that it answers.
    ///
    /// # Errors
    /// `Config` when the address or the settings cannot work or the server refuses the password;
    /// `NotSent` when it cannot be reached.
    ///
    /// # Cancel safety
    /// Dropping the future closes the connection.
    pub async fn connect(
        config: &RedisConfig,
        settings: RedisSettings,
    ) -> Result<Self, BackendError> {
        let link = Link::Server(Box::new(ServerLink::new(config)?));
        let keys = Arc::new(Keyspace::new(&settings.namespace, settings.shards)?);
        Self::on(Kind::Redis, link, keys, settings).await
    }

    /// A backend on the cluster that any of `seeds` belongs to, reached once.
    ///
    /// # Errors
    /// As [`RedisBackend::connect`].
    ///
    /// # Cancel safety
    /// Dropping the future closes the connections.
    #[cfg(feature = "cluster")]
    pub async fn connect_cluster(
        seeds: &[RedisConfig],
        settings: RedisSettings,
    ) -> Result<Self, BackendError> {
        let keys = Arc::new(Keyspace::new(&settings.namespace, settings.shards)?);
        let (shared, limit) = (Arc::clone(&keys), settings.call_timeout);
        let link = cluster::ClusterLink::new(seeds, shared, &settings.clock, limit)?;
        Self::on(Kind::Cluster, Link::Cluster(Box::new(link)), keys, settings).await
    }

    async fn on(
        kind: Kind,
        link: Link,
        keys: Arc<Keyspace>,
        settings: RedisSettings,
    ) -> Result<Self, BackendError> {
        // A connection to a cluster is made of many.
        let limit = settings.call_timeout.saturating_mul(CONNECT_CALLS);
        link.ping(Shard::default(), limit).await?;
        Ok(Self::unreached(kind, link, keys, settings))
    }

    /// A backend that connects when it is used first.
    fn unreached(kind: Kind, link: Link, keys: Arc<Keyspace>, settings: RedisSettings) -> Self {
        let link = Arc::new(link);
        let mut facts = Facts::of(kind);
        facts.fair = true;
        if settings.epochs.is_some() {
            facts.tokens = Tokens::Anchored;
        }
        Self {
            facts,
            listener: Listener::new(
                Arc::clone(&link),
                Arc::clone(&keys),
                Arc::clone(&settings.clock),
            ),
            acquires: Courier::new(&link, &keys, settings.call_timeout),
            releases: Courier::new(&link, &keys, settings.call_timeout),
            epochs: Epochs::new(settings.epochs, settings.namespace),
            call_timeout: settings.call_timeout,
            clock: settings.clock,
            notices: settings.notices,
            keys,
            link,
        }
    }

    fn calls(&self) -> Calls<'_> {
        Calls::new(&self.keys)
    }

    async fn grant(&self, command: &Acquire) -> AcquireReply {
        let mut command = command.clone();
        command.floor = command.floor.max(self.epochs.floor());
        let shard = self.keys.shard_of_names(&command.names);
        for _ in 0..EPOCH_ROUNDS {
            let answer = match command.durability {
                Durability::Primary => self.acquires.send(command.clone()).await,
                // `WAIT` looks at the writes of its own connection, so these travel alone.
                Durability::Replicas { .. } => self.acquires.alone(&command, Lane::Durable).await,
            };
            let installed = match answer {
                Ok(Answer::Reply(reply)) => return self.replicated(reply, &command).await,
                Ok(Answer::Epoch { above, ask }) => self.install(shard, above, &ask).await,
                Err(error) => Err(AcquireReply::Failed(error)),
            };
            if let Err(reply) = installed {
                return reply;
            }
        }
        let why = "the fence record changed while each epoch was on its way";
        AcquireReply::Epoch(EpochError::Unavailable(why.to_owned()))
    }

    /// Draws an epoch and installs it. An answer of any kind, also a lost one, means: ask again.
    async fn install(&self, shard: Shard, above: u32, ask: &str) -> Result<(), AcquireReply> {
        let epoch = self
            .epochs
            .above(above)
            .await
            .map_err(AcquireReply::Epoch)?;
        let call = self.calls().install(shard, epoch, ask);
        let answer = self.link.run(&call, Lane::Main, self.call_timeout).await;
        match answer.and_then(reply::install) {
            Ok(installed) => {
                let current = installed.unwrap_or(epoch);
                if installed.is_none() {
                    self.tell_installed(shard, epoch);
                }
                self.epochs.accepts(current).map_err(AcquireReply::Epoch)
            }
            Err(BackendError::Unknown(_)) => Ok(()),
            Err(error) => Err(AcquireReply::Failed(error)),
        }
    }

    fn tell_installed(&self, shard: Shard, epoch: u32) {
        tracing::info!(shard = shard.index(), epoch, "epoch installed");
        let reason = || format!("epoch {epoch} begins on shard {}", shard.index());
        let kind = self.facts.kind;
        self.notices
            .tell(|| Notice::of(What::EpochInstalled, kind).because(reason()));
    }

    /// Adds how many replicas have a grant, when that was asked for. Too few never undo it.
    async fn replicated(&self, reply: AcquireReply, command: &Acquire) -> AcquireReply {
        match (reply, command.durability) {
            (
                AcquireReply::Granted {
                    token,
                    granted,
                    again,
                    ..
                },
                Durability::Replicas { n, within },
            ) => {
                let wait = call::wait(n, within);
                let shard = self.keys.shard_of_names(&command.names);
                let limit = within.saturating_add(self.call_timeout);
                let answer = self.link.plain((shard, &wait), Lane::Durable, limit).await;
                let replicas = answer
                    .ok()
                    .and_then(|value| reply::count(&value))
                    .unwrap_or(0);
                AcquireReply::Granted {
                    token,
                    granted,
                    again,
                    replicas: Some(replicas),
                }
            }
            (reply, _) => reply,
        }
    }

    async fn renew_all(&self, batch: &[Renew]) -> Vec<RenewReply> {
        let ttls = batch
            .iter()
            .map(|renew| renew.ttl)
            .filter(|ttl| !ttl.is_zero());
        let within = ttls
            .min()
            .map_or(self.call_timeout, |ttl| (ttl / 6).min(RENEW_TIMEOUT_MAX));
        let parts = self.calls().renew(batch);
        let sent = parts
            .iter()
            .map(|part| self.link.run(&part.call, Lane::Renew, within));
        let answers = join::all(sent).await;
        reply::renewals(batch, &parts, answers)
    }

    async fn release_all(&self, batch: &[Release]) -> Vec<ReleaseReply> {
        let sent = batch
            .iter()
            .map(|release| self.releases.send(release.clone()));
        let answers = join::all(sent).await.into_iter();
        answers
            .map(|answer| answer.unwrap_or_else(ReleaseReply::Failed))
            .collect()
    }
}

impl Backend for RedisBackend {
    fn facts(&self) -> Facts {
        self.facts
    }

    fn acquire<'a>(&'a self, command: &'a Acquire) -> Fut<'a, AcquireReply> {
        Box::pin(self.grant(command))
    }

    fn renew<'a>(&'a self, batch: &'a [Renew]) -> Fut<'a, Vec<RenewReply>> {
        Box::pin(self.renew_all(batch))
    }

    fn release<'a>(&'a self, batch: &'a [Release]) -> Fut<'a, Vec<ReleaseReply>> {
        Box::pin(self.release_all(batch))
    }

    fn inspect<'a>(
        &'a self,
        group: Option<&'a Name>,
        name: &'a Name,
    ) -> Fut<'a, Result<Option<Holder>, BackendError>> {
        Box::pin(async move {
            let call = self.calls().inspect(group, name);
            let value = self.link.run(&call, Lane::Main, self.call_timeout).await?;
            reply::inspect(value)
        })
    }

    fn wake<'a>(&'a self, names: &'a Names) -> Fut<'a, WakeStream> {
        Box::pin(self.listener.listen(names, self.call_timeout))
    }

    fn doctor(&self) -> Fut<'_, Vec<Finding>> {
        Box::pin(self.examine())
    }
}
