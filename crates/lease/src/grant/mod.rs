//! One grant as this process knows it: the only place where its state changes. States are computed
//! when they are read, so that they are right even if the lease thread cannot run.
//!
//! ```text
//! Held ──remaining < ttl/2──> Suspect ──confirmed renewal──> Held
//! Held, Suspect ──deadline, backend, cap, target──> Lost      final
//! Held, Suspect ──release──> Released                         final
//! ```

mod ticket;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Notify;

use crate::backend::Names;
use crate::locks::lock;
use crate::{BootTime, Clock, FencingToken, LostReason, Owner, timing};

pub use ticket::LeaseTicket;

/// The state of a lease at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LeaseState {
    /// Held, and renewed in time.
    Held {
        /// Time until the deadline.
        remaining: Duration,
    },
    /// Held, with a renewal overdue: start nothing long.
    Suspect {
        /// Time until the deadline.
        remaining: Duration,
    },
    /// Not held any more. Final.
    Lost(LostReason),
    /// Released. Final.
    Released,
}

impl LeaseState {
    /// Tells whether the lease is held or suspect.
    pub const fn is_live(self) -> bool {
        matches!(self, LeaseState::Held { .. } | LeaseState::Suspect { .. })
    }
}

/// The parameters of a grant that never change.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    pub(crate) names: Names,
    pub(crate) owner: Owner,
    pub(crate) token: FencingToken,
    pub(crate) fenced: bool,
    pub(crate) safety: Duration,
    /// The holder renews it, not the lease thread.
    pub(crate) manual: bool,
    /// It has no `max_lifetime`, so that it may be renewed without end.
    pub(crate) endless: bool,
    pub(crate) replicas: Option<u32>,
    /// A command of this owner may still be in a buffer: it is deleted once more after half the ttl.
    pub(crate) in_doubt: bool,
    pub(crate) born: BootTime,
    /// The owner held the names before it asked.
    pub(crate) again: bool,
    pub(crate) holder: Whereabouts,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whereabouts {
    /// In this process, which renews the grant and gives it back.
    Here,
    /// In another process: this one does only what that holder asks for.
    Elsewhere,
}

/// A confirmed answer: when its command was sent, the life it granted, and the life asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Confirmed {
    pub(crate) sent: BootTime,
    pub(crate) granted: Duration,
    pub(crate) asked: Duration,
}

impl Confirmed {
    /// Tells whether the backend granted clearly less than was asked: only a cap does that.
    fn is_capped(&self) -> bool {
        const ROUNDING: Duration = Duration::from_millis(2);
        self.granted + ROUNDING < self.asked
    }
}

/// A grant shared by its guard, its handles and the lease thread.
pub(crate) struct Grant {
    pub(crate) terms: Terms,
    clock: Arc<dyn Clock>,
    /// The ttl that was last asked for, in nanoseconds: `renew_for` may change it.
    ttl_nanos: AtomicU64,
    /// Whether the notice that it has been held for long was sent.
    long_told: AtomicBool,
    life: Mutex<Life>,
    changed: Notify,
    #[cfg(feature = "tokio-util")]
    cancel: std::sync::OnceLock<tokio_util::sync::CancellationToken>,
}

#[derive(Clone, Copy, Debug)]
struct Life {
    deadline: BootTime,
    /// When the last confirmed acquire or renewal was sent.
    sent: BootTime,
    /// The latest instant at which the backend ends it by itself.
    kept_until: BootTime,
    wall_ms: i64,
    boot: BootTime,
    /// The cap shortened the last answer: the deadline cannot move any more.
    capped: bool,
    end: Option<End>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Lost(LostReason),
    Released,
}

impl Grant {
    /// Creates a grant; `now` is what the boot clock has just read.
    pub(crate) fn new(
        terms: Terms,
        confirmed: Confirmed,
        clock: Arc<dyn Clock>,
        now: BootTime,
    ) -> Self {
        let life = Life {
            deadline: timing::deadline(confirmed.sent, confirmed.granted, terms.safety),
            sent: confirmed.sent,
            kept_until: confirmed.sent.plus(confirmed.granted),
            wall_ms: clock.wall_ms(),
            boot: now,
            capped: confirmed.is_capped(),
            end: None,
        };
        Self {
            ttl_nanos: AtomicU64::new(nanos(confirmed.asked)),
            long_told: AtomicBool::new(false),
            terms,
            clock,
            life: Mutex::new(life),
            changed: Notify::new(),
            #[cfg(feature = "tokio-util")]
            cancel: std::sync::OnceLock::new(),
        }
    }

    pub(crate) fn is_held_here(&self) -> bool {
        self.terms.holder == Whereabouts::Here
    }

    /// Returns the ttl that renewals ask for.
    pub(crate) fn ttl(&self) -> Duration {
        Duration::from_nanos(self.ttl_nanos.load(Ordering::Relaxed))
    }

    /// Returns the remaining life below which a renewal is overdue (LT7).
    pub(crate) fn suspect_below(&self) -> Duration {
        timing::half_left(self.ttl(), self.terms.safety)
    }

    pub(crate) fn now(&self) -> BootTime {
        self.clock.boot()
    }

    /// Tells whether a lease without a `max_lifetime` has been held for 15 minutes; true only once.
    pub(crate) fn is_newly_long(&self) -> bool {
        let long = self.terms.endless && self.now().since(self.terms.born) >= timing::LONG_HELD;
        long && !self.long_told.swap(true, Ordering::Relaxed)
    }

    pub(crate) fn state(&self) -> LeaseState {
        let life = *lock(&self.life);
        let now = self.clock.boot();
        match life.end_at(now) {
            Some(End::Lost(reason)) => LeaseState::Lost(reason),
            Some(End::Released) => LeaseState::Released,
            None => {
                let remaining = life.deadline.since(now);
                if remaining < self.suspect_below() || self.drifted(&life, now) {
                    LeaseState::Suspect { remaining }
                } else {
                    LeaseState::Held { remaining }
                }
            }
        }
    }

    pub(crate) fn lost(&self) -> Option<LostReason> {
        let life = *lock(&self.life);
        match life.end.or_else(|| life.end_at(self.clock.boot())) {
            Some(End::Lost(reason)) => Some(reason),
            Some(End::Released) | None => None,
        }
    }

    /// Returns the time until the deadline; zero once it is over.
    pub(crate) fn remaining(&self) -> Duration {
        let life = *lock(&self.life);
        let now = self.clock.boot();
        match life.end_at(now) {
            Some(_) => Duration::ZERO,
            None => life.deadline.since(now),
        }
    }

    pub(crate) fn deadline(&self) -> BootTime {
        lock(&self.life).deadline
    }

    /// Returns when the last confirmed acquire or renewal was sent.
    pub(crate) fn sent(&self) -> BootTime {
        lock(&self.life).sent
    }

    /// Returns the latest instant at which the backend ends it by itself.
    pub(crate) fn kept_until(&self) -> BootTime {
        lock(&self.life).kept_until
    }

    /// Tells whether the wall clock ran too far ahead of the boot clock, as after a resume of a
    /// virtual host (LT7).
    pub(crate) fn has_drifted(&self) -> bool {
        let life = *lock(&self.life);
        self.drifted(&life, self.clock.boot())
    }

    fn drifted(&self, life: &Life, now: BootTime) -> bool {
        let wall = self.clock.wall_ms().saturating_sub(life.wall_ms);
        let wall = Duration::from_millis(u64::try_from(wall).unwrap_or(0));
        let ahead = wall.saturating_sub(now.since(life.boot));
        ahead > timing::drift_allowed(self.ttl())
    }

    /// Applies a confirmed renewal. An answer to an older renewal than the one applied does not
    /// move the deadline; after the end no answer does. Returns whether the lease is live.
    pub(crate) fn confirm(&self, confirmed: Confirmed) -> bool {
        let mut life = lock(&self.life);
        let now = self.clock.boot();
        let kept_until = confirmed.sent.plus(confirmed.granted);
        life.kept_until = life.kept_until.max(kept_until);
        if life.end_at(now).is_some() {
            return false;
        }
        if confirmed.sent >= life.sent {
            life.sent = confirmed.sent;
            life.deadline = timing::deadline(confirmed.sent, confirmed.granted, self.terms.safety);
            if !confirmed.asked.is_zero() {
                life.capped = confirmed.is_capped();
                self.ttl_nanos
                    .store(nanos(confirmed.asked), Ordering::Relaxed);
            }
        }
        (life.wall_ms, life.boot) = (self.clock.wall_ms(), now);
        drop(life);
        self.changed.notify_waiters();
        true
    }

    /// Ends it as lost for `reason`, or for the deadline if that has passed before. Returns the
    /// reason if this call ended it as lost.
    pub(crate) fn lose(&self, reason: LostReason) -> Option<LostReason> {
        let mut life = lock(&self.life);
        if life.end.is_some() {
            return None;
        }
        let reason = life.passed(self.clock.boot()).unwrap_or(reason);
        life.end = Some(End::Lost(reason));
        drop(life);
        self.announce();
        Some(reason)
    }

    /// Ends it as gone if no end was noted, and returns whether it did. For a lease thread that is
    /// ended by a panic: it may be the clock that panicked, so this does not read it.
    pub(crate) fn abandon(&self) -> bool {
        let mut life = lock(&self.life);
        if life.end.is_some() {
            return false;
        }
        life.end = Some(End::Lost(LostReason::Gone));
        drop(life);
        self.announce();
        true
    }

    /// Ends it as released. Returns false if it had ended before; [`Grant::lose`] ends one past its deadline.
    pub(crate) fn give_back(&self) -> bool {
        let mut life = lock(&self.life);
        if life.end.is_some() || life.passed(self.clock.boot()).is_some() {
            return false;
        }
        life.end = Some(End::Released);
        drop(life);
        self.changed.notify_waiters();
        true
    }

    /// Cancels the cancellation token and wakes all watchers, after the loss of the lease.
    fn announce(&self) {
        #[cfg(feature = "tokio-util")]
        if let Some(cancel) = self.cancel.get() {
            cancel.cancel();
        }
        self.changed.notify_waiters();
    }

    /// Wakes the watchers: a read may return another state now.
    pub(crate) fn notify_watchers(&self) {
        self.changed.notify_waiters();
    }

    /// Waits until `done` returns a value; it is called at once and after every change.
    pub(super) async fn wait_for<T>(&self, done: impl Fn(LeaseState) -> Option<T>) -> T {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            if let Some(value) = done(self.state()) {
                return value;
            }
            changed.await;
        }
    }

    #[cfg(feature = "tokio-util")]
    pub(super) fn cancellation(&self) -> tokio_util::sync::CancellationToken {
        let token = self.cancel.get_or_init(Default::default);
        if matches!(self.state(), LeaseState::Lost(_)) {
            token.cancel();
        }
        token.child_token()
    }
}

impl Life {
    /// Returns the end that holds at `now`: the one noted, else the deadline if it has passed.
    fn end_at(&self, now: BootTime) -> Option<End> {
        self.end.or_else(|| self.passed(now).map(End::Lost))
    }

    /// Returns the loss by the deadline, if that has passed.
    fn passed(&self, now: BootTime) -> Option<LostReason> {
        let reason = if self.capped {
            LostReason::CapReached
        } else {
            LostReason::Deadline
        };
        (now >= self.deadline).then_some(reason)
    }
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}
