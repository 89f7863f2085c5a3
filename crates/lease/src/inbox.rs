//! The inbox of the lease thread: a queue of commands that is taken in one piece. The thread is woken once
//! for all that was put in while it was busy.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, oneshot};

use crate::backend::{Acquire, Durability, Finding, Holder, Names, Waiter};
use crate::error::NotGranted;
use crate::grant::{Grant, TicketTerms};
use crate::wait::Wait;
use crate::{
    BackendError, BootTime, Drained, FencingToken, LostReason, Owner, ReleaseOutcome, RenewError,
    Unsettled,
};

/// A request for a lease.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each was asked for by itself"
)]
pub(crate) struct AcquireParams {
    /// The owner of a holder elsewhere; one is drawn for a holder here.
    pub(crate) owner: Option<Owner>,
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
    pub(crate) manual: bool,
}

impl AcquireParams {
    /// What is asked of the backend, for `owner`.
    pub(crate) fn command(&self, owner: Owner) -> Acquire {
        Acquire {
            names: self.names.clone(),
            owner,
            ttl: self.ttl,
            cap: self.cap,
            floor: self.floor,
            waiter: self.waiter,
            fair: self.fair,
            meta: self.meta.clone(),
            durability: self.durability,
        }
    }
}

/// What becomes of a grant that no caller claims.
type GiveBack = Box<dyn FnOnce(Arc<Grant>) + Send>;

/// A grant on its way to its caller. Dropped before it is claimed, it is given back.
pub(crate) struct Unclaimed(Option<(Arc<Grant>, GiveBack)>);

impl Unclaimed {
    pub(crate) fn new(
        grant: Arc<Grant>,
        give_back: impl FnOnce(Arc<Grant>) + Send + 'static,
    ) -> Self {
        Self(Some((grant, Box::new(give_back))))
    }

    /// Hands the grant to its guard, which releases it from now on.
    pub(crate) fn claim(mut self) -> Option<Arc<Grant>> {
        self.0.take().map(|(grant, _)| grant)
    }
}

impl Drop for Unclaimed {
    fn drop(&mut self) {
        if let Some((grant, give_back)) = self.0.take()
            && grant.is_held_here()
            && grant.give_back()
        {
            give_back(grant);
        }
    }
}

/// Where the outcome of an acquire is sent.
pub(crate) type Recipient = oneshot::Sender<Result<Unclaimed, NotGranted>>;

pub(crate) type Holding = Result<Option<Holder>, BackendError>;

/// What callers ask of the lease thread.
pub(crate) enum Command {
    Acquire(Box<AcquireParams>, Recipient),
    Resume(TicketTerms, Recipient),
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
    /// The target has seen a higher token, which has ended the grant.
    Overtaken(Arc<Grant>, LostReason),
    /// One name.
    Inspect(Names, oneshot::Sender<Holding>),
    /// One name.
    ForceRelease(
        Names,
        FencingToken,
        oneshot::Sender<Result<ReleaseOutcome, BackendError>>,
    ),
    Doctor(oneshot::Sender<Vec<Finding>>),
    WakeAt(BootTime, oneshot::Sender<()>),
    Shutdown(Duration, oneshot::Sender<Drained>),
    /// The last handle was dropped.
    Close,
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
    pub(crate) fn take(&self, batch: &mut Vec<Command>) {
        std::mem::swap(&mut self.queue().commands, batch);
    }

    /// Waits until something was put in.
    pub(crate) async fn ready(&self) {
        self.ready.notified().await;
    }

    /// Wakes the thread without a command.
    pub(crate) fn nudge(&self) {
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
