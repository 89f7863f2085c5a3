//! The connections of a backend: to one server, or to a cluster. Errors are those of the contract;
//! the driver is hidden. `lease.md` 8.

use std::time::Duration;

use redis::aio::AsyncPushSender;
use redis::{Cmd, Value};

use super::call::Call;
#[cfg(feature = "cluster")]
use super::cluster::ClusterLink;
use super::failure;
use super::keys::Shard;
use super::role::ConnectionRole;
use super::server::ServerLink;
#[cfg(feature = "redlock")]
use super::server_info;
use super::subscriber::Subscriber;
use crate::BackendError;

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
        role: ConnectionRole,
        within: Duration,
    ) -> Result<Value, BackendError> {
        match self {
            Link::Server(server) => server.run(call, role, within).await,
            #[cfg(feature = "cluster")]
            Link::Cluster(cluster) => cluster.run(call, role, within).await,
        }
    }

    /// Tells whether all shards are on one server, so that one script may serve several of them.
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
        role: ConnectionRole,
        within: Duration,
    ) -> Result<Value, BackendError> {
        match self {
            Link::Server(server) => server.plain(command, role, within).await,
            #[cfg(feature = "cluster")]
            Link::Cluster(cluster) => cluster.plain((shard, command), role, within).await,
        }
    }

    /// Checks that the server answers and accepts the login.
    pub(super) async fn ping(&self, within: Duration) -> Result<(), BackendError> {
        let ping = redis::cmd("PING");
        let answer = self.plain((Shard::default(), &ping), ConnectionRole::Main, within);
        answer.await.map(drop).map_err(failure::of_first)
    }

    /// Reads `INFO server`, as the first command on the connection.
    #[cfg(feature = "redlock")]
    pub(super) async fn introduce(&self, within: Duration) -> Result<String, BackendError> {
        let mut info = redis::cmd("INFO");
        info.arg("server");
        let answer = self.plain((Shard::default(), &info), ConnectionRole::Main, within);
        let answer = answer.await.map_err(failure::of_first)?;
        Ok(server_info::text(answer).unwrap_or_default())
    }

    /// Returns the address of the server or of the seeds, without a login.
    #[cfg(feature = "redlock")]
    pub(super) fn address(&self) -> String {
        match self {
            Link::Server(server) => server.address(),
            #[cfg(feature = "cluster")]
            Link::Cluster(cluster) => cluster.address(),
        }
    }

    /// Opens a connection that sends its messages, and the news of its own end, to `heard`.
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

    /// Waits until a connection was replaced because its server fell silent: other connections to
    /// the same place are of no use either. Never ready for one server.
    pub(super) async fn rebuilt(&self) {
        match self {
            Link::Server(_) => std::future::pending().await,
            #[cfg(feature = "cluster")]
            Link::Cluster(cluster) => cluster.rebuilt.notified().await,
        }
    }
}
