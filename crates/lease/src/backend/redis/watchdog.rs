//! Replaces a connection to a cluster when a shard falls silent: two calls in a row without an
//! answer on the same shard. One replacement at a time, in the background, 250 ms to 2 s apart;
//! the old connection serves the other shards until the new one is there. `lease.md` 8.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use redis::cluster::ClusterClient;
use redis::cluster_async::ClusterConnection;
use tokio::sync::Notify;
use tokio::task::JoinSet;

use super::failure::connected;
use super::keys::Shard;
use super::role::{ConnectionRole, Replaced};
use crate::backend::reconnecting::Reconnecting;
use crate::backend::{BackendContext, Kind};
use crate::locks::lock;
use crate::{BackendError, BootTime, Clock};

/// Least time-out of connecting to one node, which otherwise has the time of a call.
const NODE_LEAST: Duration = Duration::from_millis(500);

/// The time-out of a whole connection to the cluster, in those of a node.
const CONNECT_NODES: u32 = 4;

/// Calls in a row without an answer, on one shard, before a replacement. A count over all shards
/// would be reset by healthy ones.
const SILENT_MAX: u32 = 2;

/// Shortest and longest time between two replacements.
const PAUSE_MIN: Duration = Duration::from_millis(250);
const PAUSE_MAX: Duration = Duration::from_secs(2);

pub(super) struct Watchdog {
    client: ClusterClient,
    /// The time-out of a whole connection.
    pub(super) limit: Duration,
    pub(super) connection: Arc<Reconnecting<ClusterConnection>>,
    /// Calls without an answer since the last answer, by shard.
    silent: Vec<AtomicU32>,
    pace: Mutex<Pace>,
    tasks: Mutex<JoinSet<()>>,
    clock: Arc<dyn Clock>,
    role: ConnectionRole,
    replaced: Replaced,
    /// Notifies the subscription that its connection is of no use either.
    rebuilt: Arc<Notify>,
}

/// The back-off between two replacements.
struct Pace {
    next: BootTime,
    pause: Duration,
}

impl Watchdog {
    pub(super) fn new(
        client: ClusterClient,
        shards: u16,
        role: ConnectionRole,
        (with, rebuilt): (&BackendContext, &Arc<Notify>),
    ) -> Self {
        let clock = Arc::clone(&with.clock);
        let next = clock.boot();
        Self {
            client,
            limit: node_timeout(with).saturating_mul(CONNECT_NODES),
            connection: Arc::new(Reconnecting::unmade()),
            silent: (0..shards).map(|_| AtomicU32::new(0)).collect(),
            pace: Mutex::new(Pace {
                next,
                pause: PAUSE_MIN,
            }),
            tasks: Mutex::default(),
            clock,
            role,
            replaced: Replaced::new(Kind::Cluster, &with.notices),
            rebuilt: Arc::clone(rebuilt),
        }
    }

    pub(super) fn connect(
        &self,
    ) -> impl Future<Output = Result<ClusterConnection, BackendError>> + Send + use<> {
        let (client, limit, clock) = (self.client.clone(), self.limit, Arc::clone(&self.clock));
        async move { connected(Box::pin(client.get_async_connection()), limit, &*clock).await }
    }

    /// Resets the count of the shard, which answered or refused, and after a silence the back-off.
    pub(super) fn answered(&self, shard: Shard) {
        let Some(silent) = self.silent.get(usize::from(shard.index())) else {
            return;
        };
        if silent.load(Ordering::Relaxed) != 0 && silent.swap(0, Ordering::Relaxed) >= SILENT_MAX {
            lock(&self.pace).pause = PAUSE_MIN;
        }
    }

    /// Notes a call without an answer from the shard. From the second in a row on, replaces the
    /// connection if the back-off allows it.
    pub(super) fn silent(&self, shard: Shard) {
        let count = self.silent.get(usize::from(shard.index()));
        let before = count.map_or(0, |count| count.fetch_add(1, Ordering::Relaxed));
        if before + 1 >= SILENT_MAX && self.may_replace() {
            self.replace(shard);
        }
    }

    fn may_replace(&self) -> bool {
        let mut tasks = lock(&self.tasks);
        while tasks.try_join_next().is_some() {}
        let mut pace = lock(&self.pace);
        let now = self.clock.boot();
        if !tasks.is_empty() || now < pace.next {
            return false;
        }
        pace.next = now.plus(pace.pause);
        pace.pause = (pace.pause * 2).min(PAUSE_MAX);
        true
    }

    fn replace(&self, shard: Shard) {
        let (connecting, rebuilt) = (self.connect(), Arc::clone(&self.rebuilt));
        let (connection, replaced) = (Arc::clone(&self.connection), self.replaced.clone());
        let role = self.role.as_str();
        lock(&self.tasks).spawn(async move {
            match connecting.await {
                Ok(made) => {
                    connection.replace(made);
                    rebuilt.notify_one();
                    replaced.tell(&format!("{role}: shard {} was silent", shard.index()));
                }
                Err(error) => tracing::warn!(%error, "cluster connection not replaced"),
            }
        });
    }
}

/// Returns the time-out of connecting to one node.
pub(super) fn node_timeout(with: &BackendContext) -> Duration {
    with.call_timeout.max(NODE_LEAST)
}
