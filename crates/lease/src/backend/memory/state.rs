//! The state of the memory backend: holders and queues by name, and the two halves of its tokens.

use std::collections::HashMap;
use std::time::Duration;

use crate::backend::{Holder, Waiter};
use crate::limits::{QUEUE_MAX, WAITER_ALIVE};
use crate::{BootTime, FencingToken, Name, Owner};

/// The key of a name: its group, if it has one, and the name itself.
pub(super) type LeaseKey = (Option<Name>, Name);

/// The whole state of the memory backend. Only the rules in `apply` change it.
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
    pub(super) meta: String,
}

impl Held {
    /// Tells whether it is live. Only this decides on expiry: the instant itself is too late.
    pub(super) fn is_live(&self, now: BootTime) -> bool {
        now < self.expires
    }

    /// Extends its life to at least `ttl` from `now`, never beyond its cap. A longer life stays.
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
            meta: self.meta.clone(),
        }
    }
}

/// Waiters of one name in the order of their arrival, each with the time it last asked.
#[derive(Clone, Debug, Default)]
pub(super) struct Queue(Vec<(Waiter, BootTime)>);

#[derive(Debug)]
pub(super) struct Full;

impl Queue {
    /// Removes the waiters that stopped asking.
    pub(super) fn bury(&mut self, now: BootTime) {
        self.0.retain(|(_, beat)| now.since(*beat) < WAITER_ALIVE);
    }

    /// Computes how long until the first waiter before `waiter` counts as dead; `None` if there is
    /// none. All waiters are before one that has no place in the queue.
    pub(super) fn blocked(&self, waiter: Option<Waiter>, now: BootTime) -> Option<Duration> {
        let (first, beat) = self.0.first()?;
        let dies = beat.plus(WAITER_ALIVE).since(now);
        (Some(*first) != waiter).then_some(dies)
    }

    /// Notes that `waiter` asked, at the end of the queue if it is new. Fails if that is full.
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
    /// Creates an empty state whose tokens are above `last`.
    pub fn after(last: Option<FencingToken>) -> Self {
        Self {
            epoch: last.map_or(0, FencingToken::epoch),
            counter: last.map_or(0, FencingToken::counter),
            ..Self::default()
        }
    }

    pub(super) fn live(&self, place: &LeaseKey, now: BootTime) -> Option<&Held> {
        self.held.get(place).filter(|held| held.is_live(now))
    }

    /// Mints the next token, above `floor` and all earlier ones. Fails if that needs a new epoch.
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
        let token = FencingToken::from_parts(self.epoch, counter).ok_or(NeedsEpoch(self.epoch))?;
        self.counter = counter;
        Ok(token)
    }

    /// Begins `epoch` if it is higher than the present one; else changes nothing.
    pub(super) fn install(&mut self, epoch: u32) {
        if epoch > self.epoch {
            self.epoch = epoch;
            self.counter = 0;
        }
    }

    /// Removes what has ended, so that names used once do not take memory without end.
    pub(super) fn sweep(&mut self, now: BootTime) {
        self.held.retain(|_, held| held.is_live(now));
        self.queues.retain(|_, queue| {
            queue.bury(now);
            !queue.is_empty()
        });
    }
}
