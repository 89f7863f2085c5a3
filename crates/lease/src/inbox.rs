//! The inbox of the lease thread: a queue of commands that is taken as a whole. The thread is woken
//! once for all commands that were queued while it was busy.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{Notify, oneshot};

use crate::backend::{Acquire, Fut};
use crate::error::NotGranted;
use crate::grant::{Grant, LeaseTicket, Whereabouts};
use crate::locks::lock;
use crate::{BootTime, Drained, LostReason, ReleaseOutcome, RenewError, Unsettled};

/// A request for a lease: the message to the backend, and what the facade does with its answer.
pub(crate) struct AcquireParams {
    pub(crate) command: Acquire,
    pub(crate) holder: Whereabouts,
    pub(crate) wait: Wait,
    pub(crate) safety: Duration,
    pub(crate) manual: bool,
}

/// How long to wait for a lease that another owner holds. It is unrelated to the ttl.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Tries once, and a second time if the first got no answer.
    No,
    /// For this long. A call that is under way at the end is waited for, at most the call time-out,
    /// and as long as the replicas of the request may take. A wait that is shorter than a call and whose only try was
    /// not sent tries once more.
    UpTo(Duration),
    /// Until it is granted or the future is dropped.
    Forever,
}

impl Wait {
    /// Waits for `span`; zero is no wait.
    pub(crate) fn up_to(span: Duration) -> Self {
        if span.is_zero() {
            Self::No
        } else {
            Self::UpTo(span)
        }
    }
}

/// Releases a grant that no caller claims.
type GiveBack = Box<dyn FnOnce(Arc<Grant>) + Send>;

/// A grant on its way to its caller. If it is dropped before it is claimed, it is given back.
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

/// The channel for the outcome of an acquire or a resume.
pub(crate) type Recipient = oneshot::Sender<Result<Unclaimed, NotGranted>>;

/// The channel for the outcome of a renewal.
pub(crate) type RenewalRecipient = oneshot::Sender<Result<Duration, RenewError>>;

/// The channel to the caller that waits for the outcome of a release.
pub(crate) type Settle = oneshot::Sender<Result<ReleaseOutcome, Unsettled>>;

pub(crate) enum Command {
    Acquire(Box<AcquireParams>, Recipient),
    Resume(LeaseTicket, Recipient),
    /// Renews for the span from now on; zero only asks.
    Renew(Arc<Grant>, Duration, RenewalRecipient),
    /// Releases a grant whose guard has ended it as released.
    Release(Arc<Grant>, Option<Settle>),
    /// Reports a grant that ended because its target has seen a higher token.
    Overtaken(Arc<Grant>, LostReason),
    /// A single call to the backend, which answers its caller by itself.
    Call(Fut<'static, ()>),
    WakeAt(BootTime, oneshot::Sender<()>),
    Shutdown(Duration, oneshot::Sender<Drained>),
    /// The last handle was dropped.
    Close,
}

/// The queue. Its length is bounded by what waits or is held: each caller has one command open, and
/// each guard is dropped once.
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

impl Inbox {
    /// Queues a command. After the end of the lease thread it is dropped, and with it the channel of its answer.
    pub(crate) fn push(&self, command: Command) {
        let mut queue = lock(&self.queue);
        if queue.closed {
            return;
        }
        let was_empty = queue.commands.is_empty();
        queue.commands.push(command);
        drop(queue);
        if was_empty {
            self.ready.notify_one();
        }
    }

    /// Moves all commands into `batch`, which must be empty.
    pub(crate) fn take(&self, batch: &mut Vec<Command>) {
        std::mem::swap(&mut lock(&self.queue).commands, batch);
    }

    /// Waits until a command was queued, or for [`Inbox::nudge`].
    pub(crate) async fn ready(&self) {
        self.ready.notified().await;
    }

    /// Wakes the thread without a command.
    pub(crate) fn nudge(&self) {
        self.ready.notify_one();
    }

    /// Refuses all commands from now on, and drops those that were not taken.
    pub(crate) fn close(&self) {
        let mut queue = lock(&self.queue);
        queue.closed = true;
        let left = std::mem::take(&mut queue.commands);
        drop(queue);
        // Dropped without the lock: a command may hold a guard, whose drop comes back here.
        drop(left);
    }
}
