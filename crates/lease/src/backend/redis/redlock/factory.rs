//! The settings of a Redlock, and the Redlock that is made of them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use soldonce_clock::timeout_at;
use tokio::sync::mpsc;

use super::Redlock;
use super::nodes::Nodes;
use super::offers::TokenOffers;
use super::quorum::majority;
use crate::backend::redis::RedisBackend;
use crate::backend::redis::config::RedisConfig;
use crate::backend::redis::server_info::ServerInfo;
use crate::backend::{Backend, BackendContext, BackendFactory, Fut, Kind};
use crate::limits::REDLOCK_NODES;
use crate::{BackendError, Builder, Leases};

/// The default of [`RedlockConfig::ttl_longest`].
const TTL_LONGEST: Duration = Duration::from_mins(1);

/// Longest wait for each further answer once a majority has answered.
const STRAGGLERS: Duration = Duration::from_millis(50);

/// The nodes of a Redlock: 3, 5 or 7 independent primaries without replicas. Every process must
/// name the same nodes and the same longest ttl.
#[derive(Clone, Debug)]
pub struct RedlockConfig {
    pub(super) nodes: Vec<RedisConfig>,
    pub(super) ttl_longest: Duration,
    pub(super) sit_out: Duration,
}

impl RedlockConfig {
    /// Creates a Redlock of `nodes`. No ttl may be longer than a minute unless
    /// [`RedlockConfig::ttl_longest`] allows it.
    pub fn new(nodes: Vec<RedisConfig>) -> Self {
        Self {
            nodes,
            ttl_longest: TTL_LONGEST,
            sit_out: TTL_LONGEST,
        }
    }

    /// Sets the longest ttl that any process asks for. A node that started more recently grants
    /// nothing: it may have forgotten a lease that is alive. So this is also how long new nodes
    /// take until they vote.
    #[must_use]
    pub fn ttl_longest(mut self, longest: Duration) -> Self {
        self.ttl_longest = longest;
        self.sit_out = longest;
        self
    }

    /// Lets a restarted node vote after `span`, however long a lease may live. For tests.
    #[cfg(feature = "test-kit")]
    #[must_use]
    pub fn sit_out(mut self, span: Duration) -> Self {
        self.sit_out = span;
        self
    }
}

impl<I: IntoIterator<Item: Into<RedisConfig>>> From<I> for RedlockConfig {
    fn from(nodes: I) -> Self {
        Self::new(nodes.into_iter().map(Into::into).collect())
    }
}

impl Leases {
    /// Starts a builder for leases on a majority of 3, 5 or 7 independent Redis primaries. Needs a
    /// [`Builder::namespace`], and [`Builder::fence`] if tokens must rise through loss of data on a
    /// majority.
    pub fn redlock(nodes: impl Into<RedlockConfig>) -> Builder {
        Builder::of(nodes.into())
    }
}

impl BackendFactory for RedlockConfig {
    fn kind(&self) -> Kind {
        Kind::Redlock
    }

    fn connect(
        self: Box<Self>,
        with: BackendContext,
    ) -> Fut<'static, Result<Arc<dyn Backend>, BackendError>> {
        Box::pin(async move {
            let redlock = Redlock::connect(*self, with).await?;
            Ok(Arc::new(redlock) as Arc<dyn Backend>)
        })
    }
}

impl Redlock {
    /// Connects to the nodes of `config`, and checks that a majority answers. Without a fence source
    /// its tokens follow this machine's clock.
    ///
    /// # Errors
    /// `Config` when the settings cannot work or a node refuses the password; `NotSent` when no
    /// majority answers.
    ///
    /// # Cancel safety
    /// Dropping the future closes the connections.
    pub async fn connect(
        config: RedlockConfig,
        with: BackendContext,
    ) -> Result<Self, BackendError> {
        let count = config.nodes.len();
        if !REDLOCK_NODES.contains(&count) {
            let why = format!("a Redlock has 3, 5 or 7 nodes, and not {count}");
            return Err(BackendError::Config(why));
        }
        let node = |at: &RedisConfig| {
            let node = RedisBackend::of_server(Kind::Redlock, at, with.clone())?;
            Ok::<_, BackendError>(Arc::new(node))
        };
        let nodes = config.nodes.iter().map(node);
        let nodes = nodes.collect::<Result<_, _>>()?;
        let (source, clock) = (with.fencing.source(), Arc::clone(&with.clock));
        let redlock = Self {
            nodes: Nodes::new(nodes),
            numbers: TokenOffers::new(source, with.namespace, clock),
            late: Arc::default(),
            config,
            clock: with.clock,
            entropy: with.entropy,
        };
        redlock.ping(with.call_timeout).await?;
        Ok(redlock)
    }

    /// Checks that a majority answers, accepts the login, and is a majority: no server counts
    /// twice. Nodes beyond a majority are waited for only briefly.
    async fn ping(&self, limit: Duration) -> Result<(), BackendError> {
        let mut answers = self
            .nodes
            .ask(|node| Box::pin(async move { node.link.introduce(limit).await }));
        let (mut servers, mut failed) = (Servers::default(), Vec::new());
        while let Some((at, answer)) = self.next_within(&mut answers, servers.reached).await {
            let address = self.nodes.all().get(at).map(|node| node.link.address());
            match answer {
                Ok(info) => servers.add(&info, &address.unwrap_or_default())?,
                // A wrong password does not become right by itself.
                Err(error @ BackendError::Config(_)) => return Err(error),
                Err(error) => failed.push(error.to_string()),
            }
        }
        let (reached, nodes) = (servers.reached, self.nodes.len());
        if reached >= majority(nodes) {
            return Ok(());
        }
        let failed = failed.join("; ");
        let why = format!("{reached} of {nodes} nodes answer: {failed}");
        Err(BackendError::NotSent(why))
    }

    /// Waits for the next answer; `None` at the end, or after a short wait past a majority.
    async fn next_within<T>(&self, answers: &mut mpsc::Receiver<T>, reached: usize) -> Option<T> {
        if reached < majority(self.nodes.len()) {
            return answers.recv().await;
        }
        let clock = &self.clock;
        let end = clock.boot().plus(STRAGGLERS);
        timeout_at(&**clock, end, answers.recv()).await.flatten()
    }
}

#[derive(Default)]
struct Servers {
    reached: usize,
    /// The address of each server by the `run_id` that it drew at its start.
    addresses: HashMap<String, String>,
}

impl Servers {
    fn add(&mut self, info: &str, address: &str) -> Result<(), BackendError> {
        self.reached += 1;
        let Some(id) = ServerInfo::of(info).field("run_id") else {
            return Ok(());
        };
        let Some(other) = self.addresses.insert(id.to_owned(), address.to_owned()) else {
            return Ok(());
        };
        Err(BackendError::Config(format!(
            "{other} and {address} are one server, which would vote twice: name each server once"
        )))
    }
}
