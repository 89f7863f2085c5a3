//! A primary and its replica.

use anyhow::Result;

use super::{Redis, RedisOptions};
use crate::server::{PATIENCE, until};

/// A primary and a replica that has everything the primary has.
#[derive(Debug)]
pub struct RedisPair {
    /// Takes writes.
    pub primary: Redis,
    /// Follows, until [`RedisPair::promote`].
    pub replica: Redis,
}

impl RedisPair {
    /// Starts both and waits for the first synchronisation.
    pub fn start() -> Result<Self> {
        Self::start_with(&RedisOptions::default())
    }

    /// Starts both with these options and waits for the first synchronisation.
    pub fn start_with(options: &RedisOptions) -> Result<Self> {
        let primary = options.clone().start()?;
        let follows = options.clone().replica_of(primary.address());
        let pair = Self {
            primary,
            replica: follows.start()?,
        };
        pair.await_sync()?;
        Ok(pair)
    }

    /// Waits until the replica has all that the primary has written so far.
    pub fn await_sync(&self) -> Result<()> {
        until("the replica follows", PATIENCE, || {
            self.replica.is_in_sync_with(&self.primary)
        })
    }

    /// Cuts the replica off its primary, which stays up and knows of nothing: what the primary
    /// takes from now on is lost to a later [`RedisPair::promote`].
    pub fn cut(&self) -> Result<()> {
        // A port without a listener: the replica stays one, without a primary.
        self.replica.cli(&["REPLICAOF", "127.0.0.1", "1"]).map(drop)
    }

    /// Makes the replica a primary.
    pub fn promote(&self) -> Result<()> {
        self.replica.cli(&["REPLICAOF", "NO", "ONE"]).map(drop)
    }
}

impl Redis {
    /// Tells whether this replica's link is up and its replication offset is that of `primary`.
    pub(super) fn is_in_sync_with(&self, primary: &Redis) -> bool {
        let up = self.info("master_link_status").ok().flatten();
        // The replica first: what the primary writes between the two queries must not count.
        let has = self.info("slave_repl_offset").ok().flatten();
        let wrote = primary.info("master_repl_offset").ok().flatten();
        up.as_deref() == Some("up") && has.is_some() && has == wrote
    }
}
