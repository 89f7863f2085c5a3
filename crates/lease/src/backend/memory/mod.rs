//! Leases in this process: the embedded default, and the reference that the tests compare every
//! other backend with. `lease.md` 5.2.

mod apply;
mod state;

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use state::NeedsEpoch;
pub use state::State;

use super::{
    Acquire, AcquireReply, Backend, Facts, Finding, Fut, Holder, Kind, Names, Release,
    ReleaseReply, Renew, RenewReply, WakeSender, WakeStream,
};
use crate::fence::next_epoch;
use crate::locks::lock;
use crate::{
    BackendError, BootTime, Clock, EPOCH_MAX, FenceError, FenceSource, FencingToken, Name,
};

/// Listeners are woken by shard: a few wake for nothing, and names take no memory.
const SHARDS: usize = 64;

/// Commands between two sweeps for names that have ended.
const SWEEP_EVERY: u32 = 4_096;

/// A [`Backend`] in this process. Clones share the same leases, so that several [`crate::Leases`]
/// can play several processes.
#[derive(Clone)]
pub struct Memory {
    inner: Arc<Inner>,
}

struct Inner {
    clock: Arc<dyn Clock>,
    source: Option<Source>,
    /// Nothing panics between two writes of `apply`, so after a panic it is whole.
    kept: Mutex<Guarded>,
    wake: Vec<WakeSender>,
}

/// The source of the epochs that make tokens rise through a restart, and the namespace that they are of.
type Source = (Arc<dyn FenceSource>, Box<str>);

#[derive(Default)]
struct Guarded {
    state: State,
    since_sweep: u32,
}

impl std::fmt::Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Memory").finish_non_exhaustive()
    }
}

impl Memory {
    /// Creates an empty backend on `clock`. Its tokens begin with the time of day, so they rise
    /// over restarts as far as that clock does.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        let last = FencingToken::new(crate::token::of_clock(clock.wall_ms()));
        Self::of(clock, None, State::after(last))
    }

    /// Creates an empty backend on `clock` that takes one epoch of `namespace` now, and another
    /// whenever a floor requires it.
    ///
    /// # Errors
    /// [`BackendError::Config`] when the source has no epoch.
    ///
    /// # Cancel safety
    /// A dropped future may use up an epoch.
    pub async fn anchored(
        clock: Arc<dyn Clock>,
        fence: Arc<dyn FenceSource>,
        namespace: &str,
    ) -> Result<Self, BackendError> {
        let epoch = next_epoch(&*fence, namespace, 0).await;
        let epoch = epoch.map_err(|error| BackendError::Config(error.to_string()))?;
        let source = (fence, namespace.into());
        let last = FencingToken::from_parts(epoch, 0);
        Ok(Self::of(clock, Some(source), State::after(last)))
    }

    fn of(clock: Arc<dyn Clock>, source: Option<Source>, state: State) -> Self {
        let kept = Guarded {
            state,
            since_sweep: 0,
        };
        Self {
            inner: Arc::new(Inner {
                clock,
                source,
                kept: Mutex::new(kept),
                wake: (0..SHARDS).map(|_| WakeSender::default()).collect(),
            }),
        }
    }

    /// Copies the state; with [`Memory::restore`] it imitates a failover to a replica that lagged.
    pub fn snapshot(&self) -> State {
        lock(&self.inner.kept).state.clone()
    }

    /// Replaces the whole state by `state`.
    pub fn restore(&self, state: State) {
        lock(&self.inner.kept).state = state;
    }

    fn with<T>(&self, rule: impl FnOnce(&mut State, BootTime) -> T) -> T {
        let mut kept = lock(&self.inner.kept);
        let now = self.inner.clock.boot();
        kept.since_sweep = kept.since_sweep.saturating_add(1);
        if kept.since_sweep >= SWEEP_EVERY {
            kept.since_sweep = 0;
            kept.state.sweep(now);
        }
        rule(&mut kept.state, now)
    }

    fn shard(&self, names: &Names) -> Option<&WakeSender> {
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(names.routing_key());
        let shard = usize::try_from(hash % SHARDS as u64).unwrap_or(0);
        self.inner.wake.get(shard)
    }

    async fn acquire_with_source(&self, command: &Acquire) -> AcquireReply {
        loop {
            let above = match self.with(|state, now| apply::acquire(state, now, command)) {
                Ok(reply) => return reply,
                Err(NeedsEpoch(above)) => above,
            };
            let epoch = match &self.inner.source {
                Some((fence, namespace)) => next_epoch(&**fence, namespace, above).await,
                // Tokens of a clock continue above the floor.
                None if above < EPOCH_MAX => Ok(above + 1),
                None => Err(FenceError::Exhausted {
                    above: above.into(),
                }),
            };
            match epoch {
                Ok(epoch) => self.with(|state, _| state.install(epoch)),
                Err(error) => return AcquireReply::Epoch(error),
            }
        }
    }

    fn release_one(&self, release: &Release) -> ReleaseReply {
        let reply = self.with(|state, now| apply::release(state, now, release));
        if let Some(sender) = self.shard(&release.names) {
            sender.wake();
        }
        reply
    }
}

impl Backend for Memory {
    fn facts(&self) -> Facts {
        Facts {
            ttl_min: Duration::from_millis(1),
            fair: true,
            ..Facts::of(Kind::Memory)
        }
    }

    fn acquire<'a>(&'a self, command: &'a Acquire) -> Fut<'a, AcquireReply> {
        Box::pin(self.acquire_with_source(command))
    }

    fn renew<'a>(&'a self, batch: &'a [Renew]) -> Fut<'a, Vec<RenewReply>> {
        Box::pin(async {
            let renew = |renew| self.with(|state, now| apply::renew(state, now, renew));
            batch.iter().map(renew).collect()
        })
    }

    fn release<'a>(&'a self, batch: &'a [Release]) -> Fut<'a, Vec<ReleaseReply>> {
        Box::pin(async {
            let release = |release| self.release_one(release);
            batch.iter().map(release).collect()
        })
    }

    fn inspect<'a>(
        &'a self,
        group: Option<&'a Name>,
        name: &'a Name,
    ) -> Fut<'a, Result<Option<Holder>, BackendError>> {
        Box::pin(async move {
            let place = (group.cloned(), name.clone());
            Ok(self.with(|state, now| apply::inspect(state, now, &place)))
        })
    }

    fn wake<'a>(&'a self, names: &'a Names) -> Fut<'a, WakeStream> {
        Box::pin(async {
            let sender = self.shard(names);
            sender.map_or_else(WakeStream::silent, WakeSender::stream)
        })
    }

    fn doctor(&self) -> Fut<'_, Vec<Finding>> {
        Box::pin(async { Vec::new() })
    }
}
