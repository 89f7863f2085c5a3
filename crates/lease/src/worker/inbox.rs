//! How callers reach the lease thread: a queue that is taken in one piece. The thread is woken once
//! for all that was put in while it was busy.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, oneshot};

use crate::backend::{Acquire, Durability, Finding, Holder, Names, Waiter};
use crate::lease::{Grant, Lease, TicketTerms};
use crate::locks::Door;
use crate::{
    AcquireError, BackendError, BootTime, Drained, FencingToken, LostReason, Name, Owner,
    ReleaseOutcome, Renew, RenewError, Unsettled, Wait,
};

/// A request for a lease on its way to the lease thread, which gives it an owner.
pub(crate) struct Ask {
    pub(crate) names: Names,
    pub(crate) ttl: Duration,
    pub(crate) cap: Option<Duration>,
    pub(crate) floor: Option<FencingToken>,
    pub(crate) waiter: Option<Waiter>,
    pub(crate) fair: bool,
    pub(crate) meta: Arc<str>,
    pub(crate) durability: Durability,
    pub(crate) wait: Wait,
    pub(crate) safety: Duration,
    pub(crate) renew: Renew,
    pub(crate) to: Recipient<Result<Lease, AcquireError>>,
}

impl Ask {
    /// What is asked of the backend, for `owner` and above `floor`.
    pub(super) fn command(&self, owner: Owner, floor: Option<FencingToken>) -> Acquire {
        Acquire {
            names: self.names.clone(),
            owner,
            ttl: self.ttl,
            cap: self.cap,
            floor,
            waiter: self.waiter,
            fair: self.fair,
            meta: self.meta.clone(),
            durability: self.durability,
        }
    }
}

/// Who gets a lease: the channel, and the door that the guard keeps open. A guard that nobody
/// receives is dropped with the channel, which releases it.
pub(crate) struct Recipient<T> {
    pub(crate) reply: oneshot::Sender<T>,
    pub(crate) door: Arc<Door>,
}

pub(crate) type Holding = Result<Option<Holder>, BackendError>;

/// What callers ask of the lease thread.
pub(crate) enum Command {
    Acquire(Box<Ask>),
    Resume(TicketTerms, Recipient<Result<Lease, AcquireError>>),
    /// Life for `ttl` from now; zero only asks.
    Renew(
        Arc<Grant>,
        Duration,
        oneshot::Sender<Result<Duration, RenewError>>,
    ),
    /// The guard is gone, and its grant ended as released.
    Release(
        Arc<Grant>,
        Option<oneshot::Sender<Result<ReleaseOutcome, Unsettled>>>,
    ),
    /// The guard became a ticket: nothing is renewed or released here any more.
    Forget(Arc<Grant>),
    /// The target has seen the token; and why the call ended the grant, if it did.
    Overtaken(Arc<Grant>, FencingToken, Option<LostReason>),
    Inspect(Where, oneshot::Sender<Holding>),
    ForceRelease(
        Where,
        FencingToken,
        oneshot::Sender<Result<ReleaseOutcome, BackendError>>,
    ),
    Doctor(oneshot::Sender<Vec<Finding>>),
    WakeAt(BootTime, oneshot::Sender<()>),
    Shutdown(Duration, oneshot::Sender<Drained>),
    /// Nobody can ask any more.
    Close,
}

/// A name, and its group if it has one.
#[derive(Clone, Debug)]
pub(crate) struct Where {
    pub(crate) group: Option<Name>,
    pub(crate) name: Name,
}

/// The queue. Its length is bounded by what waits or is held: each caller has one question open,
/// and each guard is dropped once.
#[derive(Default)]
pub(crate) struct Inbox {
    queue: Mutex<Queue>,
    ready: Notify,
}

#[derive(Default)]
struct Queue {
    commands: Vec<Command>,
    closed: bool,
}

/// The lease thread takes nothing more.
#[derive(Debug)]
pub(crate) struct Closed;

impl Inbox {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn push(&self, command: Command) -> Result<(), Closed> {
        let mut queue = self.queue();
        if queue.closed {
            return Err(Closed);
        }
        let was_empty = queue.commands.is_empty();
        queue.commands.push(command);
        drop(queue);
        if was_empty {
            self.ready.notify_one();
        }
        Ok(())
    }

    /// Moves everything into `batch`, which is empty.
    pub(super) fn take(&self, batch: &mut Vec<Command>) {
        std::mem::swap(&mut self.queue().commands, batch);
    }

    /// Waits until something was put in.
    pub(super) async fn ready(&self) {
        self.ready.notified().await;
    }

    /// Wakes the thread without a command.
    pub(super) fn nudge(&self) {
        self.ready.notify_one();
    }

    /// Refuses everything from now on, and drops what was not taken.
    pub(crate) fn close(&self) {
        let mut queue = self.queue();
        queue.closed = true;
        let left = std::mem::take(&mut queue.commands);
        drop(queue);
        // Dropped without the lock: a command may hold a guard, whose drop comes back here.
        drop(left);
    }
}
