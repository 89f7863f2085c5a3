//! A connection that listens on sharded channels.

use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{RedisResult, Value};
use soldonce_clock::timeout_at;

use super::failure;
use crate::{BackendError, Clock};

/// The longest wait for an answer, and the clock that ends it.
pub(super) type Limit<'a> = (Duration, &'a dyn Clock);

pub(super) enum Subscriber {
    Server(MultiplexedConnection),
    #[cfg(feature = "cluster")]
    Cluster(redis::cluster_async::ClusterConnection),
}

impl Subscriber {
    /// Subscribes to a sharded channel; ready when the server has acknowledged it.
    pub(super) async fn subscribe(
        &mut self,
        channel: &str,
        limit: Limit<'_>,
    ) -> Result<(), BackendError> {
        let asking = async {
            match self {
                Subscriber::Server(connection) => ask(connection, "SSUBSCRIBE", channel).await,
                #[cfg(feature = "cluster")]
                Subscriber::Cluster(connection) => connection.ssubscribe(channel).await,
            }
        };
        acknowledged(asking, limit).await
    }

    /// Checks that the server still answers. Does nothing on a cluster, whose subscription is
    /// replaced when its main connections fall silent.
    pub(super) async fn ping(&mut self, limit: Limit<'_>) -> Result<(), BackendError> {
        match self {
            Subscriber::Server(connection) => {
                let ping = redis::cmd("PING");
                acknowledged(ping.query_async(connection), limit).await
            }
            #[cfg(feature = "cluster")]
            Subscriber::Cluster(_) => Ok(()),
        }
    }

    pub(super) async fn unsubscribe(
        &mut self,
        channel: &str,
        limit: Limit<'_>,
    ) -> Result<(), BackendError> {
        let asking = async {
            match self {
                Subscriber::Server(connection) => ask(connection, "SUNSUBSCRIBE", channel).await,
                #[cfg(feature = "cluster")]
                Subscriber::Cluster(connection) => connection.sunsubscribe(channel).await,
            }
        };
        acknowledged(asking, limit).await
    }
}

async fn ask(connection: &mut MultiplexedConnection, word: &str, channel: &str) -> RedisResult<()> {
    redis::cmd(word)
        .arg(channel)
        .query_async::<Value>(connection)
        .await
        .map(drop)
}

async fn acknowledged(
    asking: impl Future<Output = RedisResult<()>>,
    (within, clock): Limit<'_>,
) -> Result<(), BackendError> {
    match timeout_at(clock, clock.boot().plus(within), asking).await {
        Some(answer) => answer.map_err(|error| failure::of_command(&error)),
        None => Err(BackendError::unanswered(within)),
    }
}
