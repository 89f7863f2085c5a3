//! The topics that are waited for: shards, their channels, and the names. Counts the streams that
//! are alive; a name without waiters is removed.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};

use super::keys::Shard;
use crate::backend::{WakeSender, WakeStream};
use crate::locks::lock;

/// A channel with this many names is swept of names without waiters before it grows.
const NAMES_KEPT: usize = 64;

#[derive(Default)]
pub(super) struct Topics(Mutex<HashMap<Shard, Channel>>);

#[derive(Default)]
struct Channel {
    /// The channel's name, once the server has acknowledged the subscription.
    acknowledged: Option<String>,
    names: HashMap<String, WakeSender>,
}

impl Channel {
    fn is_idle(&self) -> bool {
        self.names.values().all(|sender| sender.listeners() == 0)
    }
}

impl Topics {
    fn channels(&self) -> MutexGuard<'_, HashMap<Shard, Channel>> {
        lock(&self.0)
    }

    /// Adds a stream for `topic`, and tells whether its channel is subscribed already.
    pub(super) fn listen(&self, shard: Shard, topic: String) -> (WakeStream, bool) {
        let mut channels = self.channels();
        let channel = channels.entry(shard).or_default();
        if channel.names.len() >= NAMES_KEPT {
            channel.names.retain(|_, sender| sender.listeners() > 0);
        }
        let stream = channel.names.entry(topic).or_default().stream();
        (stream, channel.acknowledged.is_some())
    }

    /// Wakes the waiters for `topic`. Returns the shard if its channel has no waiter left.
    pub(super) fn wake(&self, channel: &str, topic: &str) -> Option<Shard> {
        let mut channels = self.channels();
        let mut all = channels.iter_mut();
        let (shard, channel) = all.find(|(_, own)| own.acknowledged.as_deref() == Some(channel))?;
        match channel.names.get(topic) {
            Some(sender) if sender.listeners() > 0 => {
                sender.wake();
                None
            }
            _ => {
                channel.names.remove(topic);
                channel.is_idle().then_some(*shard)
            }
        }
    }

    pub(super) fn wake_all(&self) {
        for channel in self.channels().values() {
            channel.names.values().for_each(WakeSender::wake);
        }
    }

    pub(super) fn shards(&self) -> Vec<Shard> {
        self.channels().keys().copied().collect()
    }

    pub(super) fn is_acknowledged(&self, shard: Shard) -> bool {
        self.channels()
            .get(&shard)
            .is_some_and(|channel| channel.acknowledged.is_some())
    }

    /// Tells whether there is a subscription to the channel of this name.
    pub(super) fn is_wanted(&self, name: &str) -> bool {
        self.channels()
            .values()
            .any(|channel| channel.acknowledged.as_deref() == Some(name))
    }

    pub(super) fn acknowledge(&self, shard: Shard, channel: String) {
        self.channels().entry(shard).or_default().acknowledged = Some(channel);
    }

    /// Marks all channels as not subscribed: the connection is gone.
    pub(super) fn unacknowledge(&self) {
        for channel in self.channels().values_mut() {
            channel.acknowledged = None;
        }
    }

    /// Removes the channel if it has no waiter. Returns whether it did.
    pub(super) fn forget_idle(&self, shard: Shard) -> bool {
        let mut channels = self.channels();
        let idle = channels.get(&shard).is_some_and(Channel::is_idle);
        if idle {
            channels.remove(&shard);
        }
        idle
    }
}
