//! A connection that listens on sharded channels.

use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{RedisResult, Value};
use tokio::time::timeout;

use super::failure;
use crate::BackendError;

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

    /// Checks that the server still answers. Does nothing on a cluster, whose subscription is
    /// replaced when its main connections fall silent.
    pub(super) async fn ping(&mut self, within: Duration) -> Result<(), BackendError> {
        match self {
            Subscriber::Server(connection) => {
                let ping = redis::cmd("PING");
                let asking = ping.query_async(connection);
                acknowledged(timeout(within, asking).await.ok(), within)
            }
            #[cfg(feature = "cluster")]
            Subscriber::Cluster(_) => Ok(()),
        }
    }

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
    answer.map_or(Err(BackendError::unanswered(within)), |answer| {
        answer.map_err(|error| failure::of_command(&error))
    })
}
