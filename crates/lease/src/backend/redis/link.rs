//! What a backend talks through: one server, or a cluster. Errors in the words of the contract;
//! the driver stays behind it. `lease.md` 8.

use std::time::Duration;

use redis::aio::{AsyncPushSender, MultiplexedConnection};
use redis::{Cmd, RedisResult, Value};
use tokio::time::timeout;

use super::call::Call;
#[cfg(feature = "cluster")]
use super::cluster::ClusterLink;
#[cfg(feature = "redlock")]
use super::facts;
use super::failure::{self, not_answered};
use super::keys::Shard;
use super::server::ServerLink;
use crate::BackendError;

/// Which connection a call takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lane {
    /// Whatever has no reason to take another.
    Main,
    /// Renewals: no slow call stands before them.
    Renew,
    /// Grants that wait for replicas: `WAIT` holds up everything behind it, and looks only at the
    /// writes of its own connection.
    Durable,
}

impl Lane {
    /// The word for it in logs and notices.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Lane::Main => "calls",
            Lane::Renew => "renewals",
            Lane::Durable => "durable grants",
        }
    }
}

pub(super) enum Link {
    Server(Box<ServerLink>),
    #[cfg(feature = "cluster")]
    Cluster(Box<ClusterLink>),
}

impl Link {
    /// Runs a script by its hash, and by its text where a server does not know it.
    pub(super) async fn run(
        &self,
        call: &Call,
        lane: Lane,
        within: Duration,
    ) -> Result<Value, BackendError> {
        match self {
            Link::Server(server) => server.run(call, lane, within).await,
            #[cfg(feature = "cluster")]
            Link::Cluster(cluster) => cluster.run(call, lane, within).await,
        }
    }

    /// Whether all shards are in one place, so that one script may serve several of them.
    pub(super) fn is_one_server(&self) -> bool {
        match self {
            Link::Server(_) => true,
            #[cfg(feature = "cluster")]
            Link::Cluster(_) => false,
        }
    }

    /// Runs a plain command on the primary of `shard`.
    #[cfg_attr(
        not(feature = "cluster"),
        expect(unused_variables, reason = "one server has all shards")
    )]
    pub(super) async fn plain(
        &self,
        (shard, command): (Shard, &Cmd),
        lane: Lane,
        within: Duration,
    ) -> Result<Value, BackendError> {
        match self {
            Link::Server(server) => server.plain(command, lane, within).await,
            #[cfg(feature = "cluster")]
            Link::Cluster(cluster) => cluster.plain((shard, command), lane, within).await,
        }
    }

    /// Sees that the other end answers, and lets us in.
    pub(super) async fn ping(&self, shard: Shard, within: Duration) -> Result<(), BackendError> {
        let answer = self
            .plain((shard, &redis::cmd("PING")), Lane::Main, within)
            .await;
        answer.map(drop).map_err(failure::of_first)
    }

    /// What the server at the other end says of itself, as its first command.
    #[cfg(feature = "redlock")]
    pub(super) async fn introduce(&self, within: Duration) -> Result<String, BackendError> {
        let mut info = redis::cmd("INFO");
        info.arg("server");
        let answer = self.plain((Shard::default(), &info), Lane::Main, within);
        let answer = answer.await.map_err(failure::of_first)?;
        Ok(facts::text(answer).unwrap_or_default())
    }

    /// Where the other end is.
    #[cfg(feature = "redlock")]
    pub(super) fn address(&self) -> String {
        match self {
            Link::Server(server) => server.address(),
            #[cfg(feature = "cluster")]
            Link::Cluster(cluster) => cluster.address(),
        }
    }

    /// A connection of its own that hands messages, and word of its own end, to `heard`.
    pub(super) async fn subscriber(
        &self,
        heard: impl AsyncPushSender,
        within: Duration,
    ) -> Result<Subscriber, BackendError> {
        match self {
            Link::Server(server) => server.subscriber(heard, within).await,
            #[cfg(feature = "cluster")]
            Link::Cluster(cluster) => cluster.subscriber(heard, within).await,
        }
    }

    /// Ready when a connection was replaced because its other end fell silent: others to the same
    /// place are of no use either.
    pub(super) async fn rebuilt(&self) {
        match self {
            Link::Server(_) => std::future::pending().await,
            #[cfg(feature = "cluster")]
            Link::Cluster(cluster) => cluster.rebuilt().await,
        }
    }
}

/// A connection that listens on channels.
pub(super) enum Subscriber {
    Server(MultiplexedConnection),
    #[cfg(feature = "cluster")]
    Cluster(redis::cluster_async::ClusterConnection),
}

impl Subscriber {
    /// Listens on a sharded channel; ready when the server has acknowledged it.
    pub(super) async fn subscribe(
        &mut self,
        channel: &str,
        within: Duration,
    ) -> Result<(), BackendError> {
        let asking = async {
            match self {
                Subscriber::Server(connection) => ask(connection, "SSUBSCRIBE", channel).await,
                #[cfg(feature = "cluster")]
                Subscriber::Cluster(connection) => connection.ssubscribe(channel).await,
            }
        };
        acknowledged(timeout(within, asking).await.ok(), within)
    }

    /// Listens on it no more.
    pub(super) async fn unsubscribe(
        &mut self,
        channel: &str,
        within: Duration,
    ) -> Result<(), BackendError> {
        let asking = async {
            match self {
                Subscriber::Server(connection) => ask(connection, "SUNSUBSCRIBE", channel).await,
                #[cfg(feature = "cluster")]
                Subscriber::Cluster(connection) => connection.sunsubscribe(channel).await,
            }
        };
        acknowledged(timeout(within, asking).await.ok(), within)
    }
}

async fn ask(connection: &mut MultiplexedConnection, word: &str, channel: &str) -> RedisResult<()> {
    redis::cmd(word)
        .arg(channel)
        .query_async::<Value>(connection)
        .await
        .map(drop)
}

fn acknowledged(answer: Option<RedisResult<()>>, within: Duration) -> Result<(), BackendError> {
    answer.map_or(Err(not_answered(within)), |answer| {
        answer.map_err(|error| failure::of_command(&error))
    })
}
