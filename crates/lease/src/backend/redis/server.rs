//! One Redis server: three connections that reconnect by themselves, a time-out for each call, and
//! the errors of the contract. Hides the driver. `lease.md` 8.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use redis::aio::{AsyncPushSender, MultiplexedConnection};
use redis::{AsyncConnectionConfig, Client, Cmd, ProtocolVersion, Value};
use soldonce_clock::timeout_at;

use super::call::Call;
use super::config::RedisConfig;
use super::failure::{self, connected, not_connected};
use super::role::{ConnectionRole, Replaced};
use super::subscriber::Subscriber;
use crate::backend::reconnecting::{Attempt, Reconnecting};
use crate::{BackendError, Clock};

/// Most calls queued for a connection. The driver's 50 would make callers wait in turn.
const QUEUED_CALLS_MAX: usize = 1_024;

/// Shortest time-out of a connect with all its round trips. The address is then looked up again.
const CONNECT_LEAST: Duration = Duration::from_secs(1);

pub(super) struct ServerLink {
    client: Client,
    main: Reconnecting<MultiplexedConnection>,
    renew: Reconnecting<MultiplexedConnection>,
    durable: Reconnecting<MultiplexedConnection>,
    replaced: Replaced,
    clock: Arc<dyn Clock>,
}

impl ServerLink {
    /// Creates a link that connects when it is first used; `clock` ends its time-outs.
    pub(super) fn new(
        config: &RedisConfig,
        replaced: Replaced,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, BackendError> {
        let client = Client::open(config.driver()?);
        Ok(Self {
            client: client.map_err(|error| failure::of_connect(&error))?,
            main: Reconnecting::unmade(),
            renew: Reconnecting::unmade(),
            durable: Reconnecting::unmade(),
            replaced,
            clock,
        })
    }

    fn role(&self, role: ConnectionRole) -> &Reconnecting<MultiplexedConnection> {
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
        let give = async |mut connection: MultiplexedConnection| match call
            .command
            .query_async(&mut connection)
            .await
        {
            Err(error) if failure::lacks_script(&error) => {
                let by_text = call.by_text();
                Box::pin(by_text.query_async(&mut connection)).await
            }
            outcome => outcome,
        };
        self.limited(role, within, give).await
    }

    pub(super) async fn plain(
        &self,
        command: &Cmd,
        role: ConnectionRole,
        within: Duration,
    ) -> Result<Value, BackendError> {
        let give = async |mut connection| command.query_async(&mut connection).await;
        self.limited(role, within, give).await
    }

    async fn limited(
        &self,
        role: ConnectionRole,
        within: Duration,
        give: impl AsyncFnOnce(MultiplexedConnection) -> redis::RedisResult<Value>,
    ) -> Result<Value, BackendError> {
        let (name, role) = (role.as_str(), self.role(role));
        let attempt = role.current();
        let sent = AtomicBool::new(false);
        let end = self.clock.boot().plus(within);
        // Pinned here, because an async function keeps a future that it is given twice: each call that
        // waits carries this one.
        let calling = std::pin::pin!(async {
            let connection = attempt.get(|| self.connect(name, &attempt, within)).await?;
            sent.store(true, Ordering::Relaxed);
            Ok(give(connection).await)
        });
        let answer = match timeout_at(&*self.clock, end, calling).await {
            Some(Ok(answer)) => judged(role, &attempt, answer),
            Some(Err(not_connected)) => Err(not_connected),
            None if sent.load(Ordering::Relaxed) => {
                if attempt.timed_out() {
                    role.give_up(&attempt);
                }
                Err(BackendError::unanswered(within))
            }
            None => Err(not_connected(within)),
        };
        answer.map_err(|error| error.at(&self.address()))
    }

    pub(super) fn address(&self) -> String {
        self.client.get_connection_info().addr().to_string()
    }

    /// Connects, even after the end of the first call that needs it, whose time-out is `within`.
    fn connect(
        &self,
        role: &str,
        attempt: &Attempt<MultiplexedConnection>,
        within: Duration,
    ) -> impl Future<Output = Result<MultiplexedConnection, BackendError>> + Send + use<> {
        let (client, clock) = (self.client.clone(), Arc::clone(&self.clock));
        let limit = within.max(CONNECT_LEAST);
        let which = || format!("{role} to {}", self.address());
        let replaces = attempt.replaces().then(|| (self.replaced.clone(), which()));
        async move {
            let config = unlimited();
            let making = Box::pin(client.get_multiplexed_async_connection_with_config(&config));
            let made = connected(making, limit, &*clock).await?;
            if let Some((replaced, which)) = replaces {
                replaced.tell(&which);
            }
            Ok(made)
        }
    }

    pub(super) async fn subscriber(
        &self,
        heard: impl AsyncPushSender,
        within: Duration,
    ) -> Result<Subscriber, BackendError> {
        let info = self.client.get_connection_info().clone();
        let login = info.redis_settings().clone();
        let login = login.set_protocol(ProtocolVersion::RESP3);
        let client = Client::open(info.set_redis_settings(login));
        let client = client.map_err(|error| failure::of_connect(&error))?;
        let config = unlimited().set_push_sender(heard);
        let making = Box::pin(client.get_multiplexed_async_connection_with_config(&config));
        let made = connected(making, within, &*self.clock).await;
        made.map(Subscriber::Server)
    }
}

fn judged(
    role: &Reconnecting<MultiplexedConnection>,
    attempt: &Arc<Attempt<MultiplexedConnection>>,
    answer: redis::RedisResult<Value>,
) -> Result<Value, BackendError> {
    attempt.answered();
    answer.map_err(|error| {
        // A server that became a replica keeps its connections. Behind a name or an address that
        // moved, a new one reaches the new primary.
        if failure::breaks(&error) || failure::is_demoted(&error) {
            role.give_up(attempt);
        }
        failure::of_command(&error)
    })
}

/// Builds a configuration without the driver's time-outs: ours bound calls and connects.
fn unlimited() -> AsyncConnectionConfig {
    AsyncConnectionConfig::new()
        .set_connection_timeout(None)
        .set_response_timeout(None)
        .set_pipeline_buffer_size(QUEUED_CALLS_MAX)
}
