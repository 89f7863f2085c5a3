//! A Redis Cluster: the driver's connection finds the slots, and a watchdog replaces it when a
//! shard falls silent, because the driver reads the slots again only when a node answers.
//! `lease.md` 8.
//!
//! The driver's retries are off: it would repeat a command whose connection broke, and then report
//! the refusal of the repetition although the first may have run (law B7).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use redis::aio::AsyncPushSender;
use redis::cluster::{ClusterClient, ClusterClientBuilder};
use redis::cluster_async::ClusterConnection;
use redis::cluster_routing::{Route, RoutingInfo, SingleNodeRoutingInfo, SlotAddr};
use redis::{Cmd, ConnectionInfo, ProtocolVersion, RedisError, RedisResult, Value};
use soldonce_clock::timeout_at;
use tokio::sync::Notify;

use super::call::Call;
use super::config::RedisConfig;
use super::failure::{self, connected, not_connected};
use super::keys::{Keyspace, Shard};
use super::role::ConnectionRole;
use super::subscriber::Subscriber;
use super::watchdog::{self, Watchdog};
use crate::backend::BackendContext;
use crate::{BackendError, Clock};

/// Longest `WAIT` for replicas.
const WAIT_TIMEOUT: Duration = Duration::from_secs(10);

/// Most redirections that one call follows.
const HOPS: usize = 3;

pub(super) struct ClusterLink {
    entry: Entry,
    keys: Arc<Keyspace>,
    main: Watchdog,
    renew: Watchdog,
    durable: Watchdog,
    pub(super) rebuilt: Arc<Notify>,
    clock: Arc<dyn Clock>,
}

impl ClusterLink {
    /// Creates a link that connects when it is first used. A node that says nothing for as long as
    /// a call may take is passed over, also when the driver asks it for the slots.
    pub(super) fn new(
        seeds: &[RedisConfig],
        keys: Arc<Keyspace>,
        with: &BackendContext,
    ) -> Result<Self, BackendError> {
        let entry = Entry::new(seeds, watchdog::node_timeout(with))?;
        let quick = build(entry.builder().response_timeout(with.call_timeout))?;
        let patient = build(entry.builder().response_timeout(WAIT_TIMEOUT))?;
        let rebuilt = Arc::new(Notify::new());
        let watchdog = |client: &ClusterClient, role| {
            Watchdog::new(client.clone(), keys.shards(), role, (with, &rebuilt))
        };
        Ok(Self {
            main: watchdog(&quick, ConnectionRole::Main),
            renew: watchdog(&quick, ConnectionRole::Renew),
            durable: watchdog(&patient, ConnectionRole::Durable),
            entry,
            keys,
            rebuilt,
            clock: Arc::clone(&with.clock),
        })
    }

    fn role(&self, role: ConnectionRole) -> &Watchdog {
        match role {
            ConnectionRole::Main => &self.main,
            ConnectionRole::Renew => &self.renew,
            ConnectionRole::Durable => &self.durable,
        }
    }

    pub(super) async fn run(
        &self,
        call: &Call,
        role: ConnectionRole,
        within: Duration,
    ) -> Result<Value, BackendError> {
        let to = self.route(call.shard);
        let give = async |connection| hop(connection, call, to).await;
        self.limited((call.shard, role), within, give).await
    }

    pub(super) async fn plain(
        &self,
        (shard, command): (Shard, &Cmd),
        role: ConnectionRole,
        within: Duration,
    ) -> Result<Value, BackendError> {
        let to = self.route(shard);
        let give = async |mut connection: ClusterConnection| {
            let answer = connection.route_command(command.clone(), to).await?;
            answer.extract_error()
        };
        self.limited((shard, role), within, give).await
    }

    fn route(&self, shard: Shard) -> RoutingInfo {
        let route = Route::new(self.keys.slot(shard), SlotAddr::Master);
        RoutingInfo::SingleNode(SingleNodeRoutingInfo::SpecificNode(route))
    }

    async fn limited(
        &self,
        (shard, role): (Shard, ConnectionRole),
        within: Duration,
        give: impl AsyncFnOnce(ClusterConnection) -> RedisResult<Value>,
    ) -> Result<Value, BackendError> {
        let watchdog = self.role(role);
        let attempt = watchdog.connection.current();
        let sent = AtomicBool::new(false);
        let end = self.clock.boot().plus(within);
        let calling = std::pin::pin!(async {
            let connection = attempt.get(|| watchdog.connect()).await?;
            sent.store(true, Ordering::Relaxed);
            Ok(give(connection).await)
        });
        let answer = match timeout_at(&*self.clock, end, calling).await {
            Some(Ok(answer)) => answer.map_err(|error| failure::of_command(&error)),
            Some(Err(error)) => Err(error),
            None if sent.load(Ordering::Relaxed) => Err(BackendError::unanswered(within)),
            None => Err(not_connected(within)),
        };
        match &answer {
            Err(BackendError::Unknown(_) | BackendError::NotSent(_)) => watchdog.silent(shard),
            _ => watchdog.answered(shard),
        }
        answer.map_err(|error| error.at(&self.address()))
    }

    pub(super) fn address(&self) -> String {
        let seeds = self.entry.seeds.iter().map(|seed| seed.addr().to_string());
        seeds.collect::<Vec<_>>().join(",")
    }

    /// Opens a connection that sends its messages, and the end of any node's connection, to
    /// `heard`.
    pub(super) async fn subscriber(
        &self,
        heard: impl AsyncPushSender,
        within: Duration,
    ) -> Result<Subscriber, BackendError> {
        let builder = self.entry.builder().push_sender(heard);
        let client = build(builder.use_protocol(ProtocolVersion::RESP3))?;
        // It is made of many, too, and a node that hangs takes its whole time.
        let limit = within.max(self.main.limit);
        let making = Box::pin(client.get_async_connection());
        let made = connected(making, limit, &*self.clock).await;
        made.map(Subscriber::Cluster)
    }
}

/// The seeds of a cluster, and the certificates for its nodes.
struct Entry {
    seeds: Vec<ConnectionInfo>,
    node_timeout: Duration,
    /// Those of the first seed apply to all nodes.
    #[cfg(feature = "tls")]
    certificates: Option<redis::TlsCertificates>,
}

impl Entry {
    fn new(configs: &[RedisConfig], node_timeout: Duration) -> Result<Self, BackendError> {
        let seeds: Result<Vec<_>, _> = configs.iter().map(RedisConfig::driver).collect();
        let seeds = seeds?;
        if seeds.iter().any(|seed| seed.redis_settings().db() != 0) {
            let why = "a cluster has only database 0";
            return Err(BackendError::Config(why.to_owned()));
        }
        Ok(Self {
            seeds,
            node_timeout,
            #[cfg(feature = "tls")]
            certificates: match configs.first() {
                Some(first) => first.certificates()?,
                None => None,
            },
        })
    }

    fn builder(&self) -> ClusterClientBuilder {
        let tcp = redis::io::tcp::TcpSettings::default().set_nodelay(true);
        // Our own limit bounds every call, and `hop` follows redirections.
        let builder = ClusterClientBuilder::new(self.seeds.clone())
            .retries(0)
            .connection_timeout(self.node_timeout)
            .overall_response_timeout(None)
            .tcp_settings(tcp);
        #[cfg(feature = "tls")]
        if let Some(certificates) = &self.certificates {
            return builder.certs(certificates.clone());
        }
        builder
    }
}

fn build(builder: ClusterClientBuilder) -> Result<ClusterClient, BackendError> {
    builder.build().map_err(|error| failure::of_connect(&error))
}

/// Sends a script, and follows redirections to the present node of its slot.
async fn hop(
    mut connection: ClusterConnection,
    call: &Call,
    to: RoutingInfo,
) -> RedisResult<Value> {
    let mut command = call.command.clone();
    for _ in 0..HOPS {
        let answer = connection.route_command(command.clone(), to.clone()).await;
        let error = match answer.and_then(Value::extract_error) {
            Ok(value) => return Ok(value),
            Err(error) => error,
        };
        if failure::lacks_script(&error) {
            command = call.by_text();
        } else if error.code() == Some("ASK") {
            return asking(&mut connection, &call.by_text(), &error).await;
        } else if !failure::is_elsewhere(&error) {
            return Err(error);
        }
        // The driver reads the slots again before it takes the next command.
    }
    connection.route_command(command, to).await?.extract_error()
}

/// Follows the redirection of a slot that is being moved: the other node takes the command only
/// after `ASKING`.
async fn asking(
    connection: &mut ClusterConnection,
    command: &Cmd,
    error: &RedisError,
) -> RedisResult<Value> {
    let node = error.redirect_node();
    let target = node.and_then(|(address, _)| address.rsplit_once(':'));
    let Some((host, port)) = target.and_then(|(host, port)| Some((host, port.parse().ok()?)))
    else {
        return Err(error.clone());
    };
    let to = SingleNodeRoutingInfo::ByAddress {
        host: host.to_owned(),
        port,
    };
    let mut both = redis::pipe();
    both.cmd("ASKING").ignore().add_command(command.clone());
    let mut answers = connection.route_pipeline(both, 0, 2, to).await?;
    answers.pop().unwrap_or(Value::Nil).extract_error()
}
