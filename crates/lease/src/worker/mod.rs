//! The lease thread (LT9): one thread with one single-threaded runtime per [`crate::Leases`]. It renews,
//! keeps deadlines and cleans up; it also acquires and releases for callers that do not run on the runtime that
//! connected. User code never runs on it.

mod acquire;
mod admin;
mod ctx;
mod end;
mod floors;
mod here;
mod in_place;
mod job;
mod live;
mod local_queues;
mod release;
mod renew;
mod table;
mod turn;

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::Drained;
use crate::backend::RenewReply;
use crate::error::NotGranted;
use crate::grant::{Confirmed, Grant};
use crate::inbox::{Recipient, RenewalRecipient};
use crate::{BootTime, SleepFuture};

pub(crate) use ctx::Ctx;
pub(crate) use in_place::InPlace;

use acquire::{PendingAcquire, Won};
use end::Ending;
use job::ReleaseJob;

/// The state of the loop, private to the lease thread.
pub(crate) struct Worker {
    ctx: Arc<Ctx>,
    /// Acquires to start in this turn.
    starting: Vec<PendingAcquire>,
    /// Acquires under way; the shutdown aborts them.
    acquires: JoinSet<Acquired>,
    /// Single calls under way; the shutdown waits for them.
    calls: JoinSet<Called>,
    /// Releases to send in this turn.
    releases: Vec<ReleaseJob>,
    /// Releases in calls under way, each of which carries several.
    releasing: usize,
    /// Releases and alarms that are due at a later instant.
    later: BTreeMap<(BootTime, u64), Later>,
    later_seq: u64,
    drift_look: BootTime,
    /// The next look at the clock without another reason, see [`crate::timing::TICK`].
    tick: Option<BootTime>,
    ending: Option<Ending>,
}

enum Later {
    Release(ReleaseJob),
    Alarm(oneshot::Sender<()>),
}

struct Acquired {
    pending: Box<PendingAcquire>,
    /// `None` when no caller waits for it any more.
    result: Option<Result<Won, NotGranted>>,
}

enum Called {
    Renewed(Vec<Answer>),
    Released(Vec<(ReleaseJob, crate::backend::ReleaseReply)>),
    Resumed(Option<Answer>, Recipient),
    Answered,
}

struct Answer {
    grant: Arc<Grant>,
    confirmed: Confirmed,
    reply: RenewReply,
    to: Option<RenewalRecipient>,
}

impl Worker {
    pub(crate) fn new(ctx: Arc<Ctx>) -> Self {
        Self {
            drift_look: ctx.now(),
            ctx,
            starting: Vec::new(),
            acquires: JoinSet::new(),
            calls: JoinSet::new(),
            releases: Vec::new(),
            releasing: 0,
            later: BTreeMap::new(),
            later_seq: 0,
            tick: None,
            ending: None,
        }
    }

    /// Runs until the last handle is dropped and all leases are settled, or until it is shut down.
    pub(crate) async fn run(mut self) -> Option<(Vec<oneshot::Sender<Drained>>, Drained)> {
        let (ctx, mut batch) = (self.ctx.clone(), Vec::new());
        let mut sleep: Option<(BootTime, SleepFuture<'_>)> = None;
        loop {
            self.turn(&mut batch);
            if self.is_finished() {
                break;
            }
            let next = self.next_instant();
            // A sleep that ends too early stays, for a new timer costs more than a turn without work. `None` is below
            // every instant: without a next one there is no sleep.
            let too_late = sleep.as_ref().map(|(at, _)| *at) > next || sleep.is_none();
            if too_late {
                sleep = next.map(|at| (at, ctx.clock.sleep_until(at)));
            }
            tokio::select! {
                biased;
                () = ctx.inbox.ready() => {}
                Some(done) = self.acquires.join_next(), if !self.acquires.is_empty() => {
                    self.acquired_or_panicked(done);
                }
                Some(done) = self.calls.join_next(), if !self.calls.is_empty() => {
                    self.called_or_panicked(done);
                }
                () = elapsed(&mut sleep) => sleep = None,
            }
        }
        self.finish()
    }
}

/// Waits for the instant; without one, never returns.
async fn elapsed(sleep: &mut Option<(BootTime, SleepFuture<'_>)>) {
    match sleep {
        Some((_, sleep)) => sleep.await,
        None => std::future::pending().await,
    }
}
