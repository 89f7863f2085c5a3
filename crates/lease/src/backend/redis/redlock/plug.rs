//! How a set of Redis servers becomes the backend of a [`Locks`].

use std::sync::Arc;
use std::time::Duration;

use super::tally::majority;
use super::{Machine, Redlock, RedlockConfig};
use crate::backend::redis::config::RedisConfig;
use crate::backend::redis::keys::{Keyspace, Shard};
use crate::backend::redis::link::Link;
use crate::backend::redis::replaced::Replaced;
use crate::backend::redis::server::ServerLink;
use crate::backend::redis::{RedisBackend, RedisSettings};
use crate::backend::{Backend, Connect, Fencing, Fut, Kind, Wiring};
use crate::{BackendError, Builder, Locks, SystemEntropy, TokenSource, timing};

impl Locks {
    /// Leases on a majority of 3, 5 or 7 independent Redis primaries. Needs a
    /// [`Builder::namespace`], and [`Builder::tokens`] if tokens are to rise through loss of data on
    /// a majority.
    pub fn redlock(nodes: impl Into<RedlockConfig>) -> Builder {
        Builder::of(nodes.into())
    }
}

impl Connect for RedlockConfig {
    fn kind(&self) -> Kind {
        Kind::Redlock
    }

    fn connect(
        self: Box<Self>,
        with: Wiring,
    ) -> Fut<'static, Result<Arc<dyn Backend>, BackendError>> {
        Box::pin(async move {
            let tokens = match with.fencing {
                Fencing::Tokens(source) => Some(source),
                Fencing::Unanchored | Fencing::Off => None,
                Fencing::Epochs(_) => {
                    let why = "redlock mints whole tokens: give it tokens(..), not epochs(..)";
                    return Err(BackendError::Config(why.to_owned()));
                }
            };
            let mut settings = RedisSettings::new(with.namespace);
            settings.shards = with.shards;
            settings.call_timeout = timing::before(with.call_timeout);
            settings.clock = with.clock;
            settings.notices = with.notices;
            let mut redlock = Redlock::build(*self, &settings, tokens)?;
            redlock.machine.entropy = with.entropy;
            redlock.reach(settings.call_timeout).await?;
            Ok(Arc::new(redlock) as Arc<dyn Backend>)
        })
    }
}

impl Redlock {
    /// A backend on the nodes of `config`, reached once to see that a majority answers. Without
    /// `tokens` its tokens are unanchored. `settings.epochs` is not used.
    ///
    /// # Errors
    /// `Config` when the settings cannot work or a node refuses the password; `NotSent` when no
    /// majority answers.
    ///
    /// # Cancel safety
    /// Dropping the future closes the connections.
    pub async fn connect(
        config: RedlockConfig,
        settings: RedisSettings,
        tokens: Option<Arc<dyn TokenSource>>,
    ) -> Result<Self, BackendError> {
        let redlock = Self::build(config, &settings, tokens)?;
        redlock.reach(settings.call_timeout).await?;
        Ok(redlock)
    }

    fn build(
        config: RedlockConfig,
        settings: &RedisSettings,
        tokens: Option<Arc<dyn TokenSource>>,
    ) -> Result<Self, BackendError> {
        if config.nodes.len() < 3 {
            let why = "a Redlock needs at least 3 nodes; for one server use Locks::redis";
            return Err(BackendError::Config(why.to_owned()));
        }
        let nodes = config.nodes.iter().map(|node| one(node, settings));
        let nodes = nodes.collect::<Result<_, _>>()?;
        let machine = Machine {
            clock: Arc::clone(&settings.clock),
            entropy: Arc::new(SystemEntropy),
        };
        let namespace = settings.namespace.clone();
        Ok(Self::new(config, nodes, (tokens, namespace), machine))
    }

    /// Sees that a majority answers, and lets us in.
    async fn reach(&self, limit: Duration) -> Result<(), BackendError> {
        let mut answers = self
            .nodes
            .ask(|node| Box::pin(async move { node.link.ping(Shard::default(), limit).await }));
        let (mut reached, mut failed) = (0, None);
        while let Some((_, answer)) = answers.recv().await {
            match answer {
                Ok(()) => reached += 1,
                // A wrong password will not get right by itself.
                Err(error @ BackendError::Config(_)) => return Err(error),
                Err(error) => failed = Some(error),
            }
        }
        match failed {
            Some(error) if reached < majority(self.nodes.len()) => {
                let nodes = self.nodes.len();
                Err(BackendError::NotSent(format!(
                    "{reached} of {nodes} nodes answer: {error}"
                )))
            }
            Some(_) | None => Ok(()),
        }
    }
}

fn one(node: &RedisConfig, shared: &RedisSettings) -> Result<Arc<RedisBackend>, BackendError> {
    let replaced = Replaced::new(Kind::Redlock, &shared.notices);
    let link = Link::Server(Box::new(ServerLink::new(node, replaced)?));
    let keys = Arc::new(Keyspace::new(&shared.namespace, shared.shards)?);
    let mut settings = RedisSettings::new(shared.namespace.clone());
    settings.call_timeout = shared.call_timeout;
    settings.clock = Arc::clone(&shared.clock);
    settings.notices = shared.notices.clone();
    #[cfg(all(feature = "test-kit", debug_assertions))]
    {
        settings.planted.clone_from(&shared.planted);
    }
    let node = RedisBackend::unreached(Kind::Redlock, link, keys, settings);
    Ok(Arc::new(node))
}
