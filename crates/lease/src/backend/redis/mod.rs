//! Leases on Redis: one primary, or the slots of a cluster. Every decision is one script on one
//! slot, by the server's clock; this side sends, reads the answer, and installs epochs. Has no
//! timer, no retry of a refused name and no deadline: those are the facade's. `lease.md` 5.3, 6.
//!
//! Connections belong to the runtime that first used them, so one backend is used from one runtime.

mod batcher;
mod call;
#[cfg(feature = "cluster")]
mod cluster;
mod config;
mod doctor;
mod epochs;
mod factory;
mod failure;
mod grant;
mod keys;
mod link;
mod listener;
#[cfg(feature = "redlock")]
mod redlock;
mod reply;
mod role;
mod script;
mod server;
mod server_info;
mod subscriber;
mod topics;
mod user_scripts;
#[cfg(feature = "cluster")]
mod watchdog;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;

use crate::backend::{
    Acquire, AcquireReply, Backend, BackendContext, Facts, Fencing, Finding, Fut, Holder, Kind,
    Names, Release, ReleaseReply, Renew, RenewReply, WakeStream,
};
use crate::{BackendError, Clock, Name, Notices, timing};

pub use config::RedisConfig;
#[cfg(feature = "redlock")]
pub use redlock::{Redlock, RedlockConfig};
pub use user_scripts::{KeyTag, RedisScript, RedisScripts};

use batcher::Batcher;
use call::Calls;
use epochs::Epochs;
use keys::{KeyScheme, Keyspace};
use link::Link;
use listener::Listener;
use role::{ConnectionRole, Replaced};
use script::Scripts;
use server::ServerLink;

/// The time-out of the first connection, in call time-outs.
const CONNECT_CALLS: u32 = 4;

/// A backend on one Redis primary, or on a Redis Cluster.
pub struct RedisBackend {
    facts: Facts,
    keys: Arc<Keyspace>,
    calls: Arc<Calls>,
    link: Arc<Link>,
    listener: Listener,
    acquires: Batcher<Acquire>,
    releases: Arc<Batcher<Release>>,
    epochs: Epochs,
    call_timeout: Duration,
    clock: Arc<dyn Clock>,
    notices: Notices,
}

impl RedisBackend {
    /// Connects to the primary at `config`, with one command to see that it answers.
    ///
    /// # Errors
    /// `Config` when the address or the settings cannot work or the server refuses the password;
    /// `NotSent` when it cannot be reached.
    ///
    /// # Cancel safety
    /// Dropping the future closes the connection.
    pub async fn connect(config: &RedisConfig, with: BackendContext) -> Result<Self, BackendError> {
        Self::of_server(Kind::Redis, config, with)?.reached().await
    }

    /// Creates a backend on one server, which connects when it is first used.
    fn of_server(
        kind: Kind,
        config: &RedisConfig,
        with: BackendContext,
    ) -> Result<Self, BackendError> {
        let replaced = Replaced::new(kind, &with.notices);
        let link = ServerLink::new(config, replaced, Arc::clone(&with.clock))?;
        let link = Link::Server(Box::new(link));
        let keys = Arc::new(Keyspace::new(&with.namespace, KeyScheme::Server));
        Ok(Self::unreached(kind, link, keys, with))
    }

    /// Connects to the cluster that any of `seeds` belongs to, with one command to check it.
    ///
    /// # Errors
    /// As [`RedisBackend::connect`].
    ///
    /// # Cancel safety
    /// Dropping the future closes the connections.
    #[cfg(feature = "cluster")]
    pub async fn connect_cluster(
        seeds: &[RedisConfig],
        with: BackendContext,
    ) -> Result<Self, BackendError> {
        let (limit, notices) = (with.call_timeout, with.notices.clone());
        let clock = Arc::clone(&with.clock);
        let connected = Self::of_cluster(seeds, with)?.reached().await;
        let Err(BackendError::NotSent(_)) = &connected else {
            return connected;
        };
        // The driver reports each seed as not reached, even one that refuses the login.
        let alone = seeds.iter().map(async |seed| {
            let replaced = Replaced::new(Kind::Cluster, &notices);
            let link = ServerLink::new(seed, replaced, Arc::clone(&clock))?;
            let link = Link::Server(Box::new(link));
            link.ping(limit).await
        });
        let is_refusal = |said: &Result<(), _>| matches!(said, Err(BackendError::Config(_)));
        match join_all(alone).await.into_iter().find(is_refusal) {
            Some(Err(refusal)) => Err(refusal),
            Some(Ok(())) | None => connected,
        }
    }

    /// Creates a backend on a cluster, which connects when it is first used.
    #[cfg(feature = "cluster")]
    fn of_cluster(seeds: &[RedisConfig], with: BackendContext) -> Result<Self, BackendError> {
        let keys = Arc::new(Keyspace::new(&with.namespace, KeyScheme::Slots));
        let link = cluster::ClusterLink::new(seeds, Arc::clone(&keys), &with)?;
        let link = Link::Cluster(Box::new(link));
        Ok(Self::unreached(Kind::Cluster, link, keys, with))
    }

    async fn reached(self) -> Result<Self, BackendError> {
        // A connection to a cluster is made of many.
        let limit = self.call_timeout.saturating_mul(CONNECT_CALLS);
        self.link.ping(limit).await?;
        Ok(self)
    }

    /// Creates a backend on `link`, which connects when it is first used.
    fn unreached(kind: Kind, link: Link, keys: Arc<Keyspace>, with: BackendContext) -> Self {
        let link = Arc::new(link);
        let mut facts = Facts::of(kind);
        facts.fair = true;
        let (scripts, limit) = (Scripts::shipped(), with.call_timeout);
        #[cfg(all(feature = "test-kit", debug_assertions))]
        let scripts = match with.script {
            Some((file, text)) => Scripts::with(file, text),
            None => scripts,
        };
        let replaced = Replaced::new(kind, &with.notices);
        let clock = Arc::clone(&with.clock);
        let calls = Arc::new(Calls {
            keys: Arc::clone(&keys),
            scripts,
            fenced: !matches!(with.fencing, Fencing::Off),
        });
        let releases = Arc::new(Batcher::new(&link, &calls, limit, None));
        Self {
            facts,
            listener: Listener::new(Arc::clone(&link), Arc::clone(&keys), clock, replaced),
            acquires: Batcher::new(&link, &calls, limit, Some(Arc::clone(&releases))),
            releases,
            epochs: Epochs::new(with.fencing.source(), with.namespace),
            call_timeout: limit,
            clock: with.clock,
            notices: with.notices,
            keys,
            calls,
            link,
        }
    }

    async fn renew_all(&self, batch: &[Renew]) -> Vec<RenewReply> {
        let ttls = batch.iter().map(|renew| renew.ttl);
        let within = timing::renewal_limit(ttls, self.call_timeout);
        let parts = self.calls.renew(batch);
        let sent = parts
            .iter()
            .map(|part| self.link.run(&part.call, ConnectionRole::Renew, within));
        let answers = join_all(sent).await;
        reply::renewals(batch, &parts, answers)
    }

    async fn release_all(&self, batch: &[Release]) -> Vec<ReleaseReply> {
        if let [release] = batch {
            let reply = self.releases.send(release.clone()).await;
            return vec![reply.unwrap_or_else(ReleaseReply::Failed)];
        }
        let post = |release: &Release| self.releases.post(release.clone());
        // All are handed over before the first answer is waited for.
        let posted: Vec<_> = batch.iter().map(post).collect();
        let mut replies = Vec::with_capacity(posted.len());
        for answer in posted {
            replies.push(answer.await.unwrap_or_else(ReleaseReply::Failed));
        }
        replies
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
            let call = self.calls.inspect(group, name);
            let limit = self.call_timeout;
            let answer = self.link.run(&call, ConnectionRole::Main, limit).await;
            answer.and_then(reply::inspect)
        })
    }

    fn wake<'a>(&'a self, names: &'a Names) -> Fut<'a, WakeStream> {
        Box::pin(self.listener.listen(names, self.call_timeout))
    }

    fn doctor(&self) -> Fut<'_, Vec<Finding>> {
        Box::pin(self.examine())
    }
}
