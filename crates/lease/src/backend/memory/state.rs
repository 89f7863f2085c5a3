//! What the memory backend keeps: holders and queues by name, and the two halves of its tokens.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crate::backend::{Holder, Waiter};
use crate::limits::{QUEUE_MAX, WAITER_ALIVE};
use crate::{BootTime, FencingToken, Name, Owner};

/// Where a name lives: its group, if it has one, and the name itself.
pub(super) type LeaseKey = (Option<Name>, Name);

/// Everything that the memory backend knows. Only the rules in `apply` change it.
#[derive(Clone, Debug, Default)]
pub struct State {
    pub(super) held: HashMap<LeaseKey, Held>,
    pub(super) queues: HashMap<LeaseKey, Queue>,
    epoch: u32,
    counter: u32,
}

/// A name that has, or had, an owner.
#[derive(Clone, Debug)]
pub(super) struct Held {
    pub(super) owner: Owner,
    pub(super) token: FencingToken,
    pub(super) born: BootTime,
    pub(super) expires: BootTime,
    pub(super) cap_end: Option<BootTime>,
    pub(super) meta: Arc<str>,
}

impl Held {
    /// Expiry is decided here and nowhere else: the instant itself is already too late.
    pub(super) fn is_live(&self, now: BootTime) -> bool {
        now < self.expires
    }

    /// Lets it live at least `ttl` from `now`, never beyond its cap. What it has stays if that is longer.
    pub(super) fn live_on(&mut self, now: BootTime, ttl: Duration) {
        let wished = now.plus(ttl);
        let within = self.cap_end.map_or(wished, |end| wished.min(end));
        self.expires = self.expires.max(within);
    }

    pub(super) fn holder(&self, now: BootTime) -> Holder {
        Holder {
            owner: self.owner,
            token: self.token,
            held: now.since(self.born),
            remaining: self.expires.since(now),
            cap: self.cap_end.map(|end| end.since(now)),
            meta: self.meta.as_ref().to_owned(),
        }
    }
}

/// Waiters of one name in the order of their arrival, each with the time it asked last.
#[derive(Clone, Debug, Default)]
pub(super) struct Queue(Vec<(Waiter, BootTime)>);

/// The queue has no place left.
#[derive(Debug)]
pub(super) struct Full;

impl Queue {
    /// Forgets the waiters that stopped asking.
    pub(super) fn bury(&mut self, now: BootTime) {
        self.0.retain(|(_, beat)| now.since(*beat) < WAITER_ALIVE);
    }

    /// How long until the first waiter before `waiter` counts as dead. All waiters are before one
    /// without a place. Zero if there is none.
    pub(super) fn blocked(&self, waiter: Option<Waiter>, now: BootTime) -> Option<Duration> {
        let (first, beat) = self.0.first()?;
        let dies = beat.plus(WAITER_ALIVE).since(now);
        (Some(*first) != waiter).then_some(dies)
    }

    /// Notes that `waiter` asked, at the end if it is new.
    pub(super) fn beat(&mut self, waiter: Waiter, now: BootTime) -> Result<(), Full> {
        if let Some((_, beat)) = self.0.iter_mut().find(|(known, _)| *known == waiter) {
            *beat = now;
        } else if self.0.len() < QUEUE_MAX {
            self.0.push((waiter, now));
        } else {
            return Err(Full);
        }
        Ok(())
    }

    pub(super) fn leave(&mut self, waiter: Waiter) {
        self.0.retain(|(known, _)| *known != waiter);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// No token can be minted before an epoch above this one is installed.
#[derive(Debug)]
pub(super) struct NeedsEpoch(pub(super) u32);

impl State {
    /// A state whose tokens are above `number`.
    pub fn after(number: u64) -> Self {
        let last = FencingToken::new(number);
        Self {
            epoch: last.map_or(0, FencingToken::epoch),
            counter: last.map_or(0, FencingToken::counter),
            ..Self::default()
        }
    }

    /// A state whose tokens carry `epoch`.
    pub fn with_epoch(epoch: u32) -> Self {
        Self {
            epoch,
            ..Self::default()
        }
    }

    /// The live holder at `place`.
    pub(super) fn live(&self, place: &LeaseKey, now: BootTime) -> Option<&Held> {
        self.held.get(place).filter(|held| held.is_live(now))
    }

    /// The next token, above `floor` and all earlier ones.
    pub(super) fn mint(&mut self, floor: Option<FencingToken>) -> Result<FencingToken, NeedsEpoch> {
        let floor = floor.filter(|floor| floor.epoch() >= self.epoch);
        let mut after = self.counter;
        if let Some(floor) = floor {
            if floor.epoch() > self.epoch {
                return Err(NeedsEpoch(floor.epoch()));
            }
            after = after.max(floor.counter());
        }
        let counter = after.checked_add(1).ok_or(NeedsEpoch(self.epoch))?;
        let token = FencingToken::from_parts(self.epoch, counter);
        let token = token.ok_or(NeedsEpoch(self.epoch))?;
        self.counter = counter;
        Ok(token)
    }

    /// Begins a higher epoch; a lower or equal one changes nothing.
    pub(super) fn install(&mut self, epoch: u32) {
        if epoch > self.epoch {
            self.epoch = epoch;
            self.counter = 0;
        }
    }

    /// Drops what has ended, so that names used once take no memory for ever.
    pub(super) fn sweep(&mut self, now: BootTime) {
        self.held.retain(|_, held| held.is_live(now));
        self.queues.retain(|_, queue| {
            queue.bury(now);
            !queue.is_empty()
        });
    }
}
