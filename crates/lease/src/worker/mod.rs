//! The lease thread (LT9): one thread with one single-threaded runtime per [`crate::Locks`]. It
//! does all I/O and keeps all timers; callers only put commands into its inbox. User code never
//! runs on it.

mod acquire;
mod ctx;
mod end;
mod floors;
mod gate;
mod inbox;
mod live;
mod questions;
mod release;
mod renew;
mod turn;

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::backend::RenewReply;
use crate::lease::{Confirmed, Grant};
use crate::owner::Owners;
use crate::{AcquireError, BootTime, RenewError, SleepFuture};

pub(crate) use ctx::{Ctx, Parts};
pub use end::Drained;
pub(crate) use inbox::{Ask, Command, Inbox, Recipient, Where};
pub(crate) use release::millis;

use acquire::{Asked, Tray, Tried, Won};
use end::Ending;
use floors::Floors;
use live::Live;
use release::Job;

/// The state of the loop. Nobody else can see it.
pub(crate) struct Worker {
    ctx: Arc<Ctx>,
    live: Live,
    /// First tries to send in this turn.
    tries: Vec<Asked>,
    /// Acquires that go on alone from this turn on, with what their first try came to.
    alone: Vec<(Asked, Option<Tried>)>,
    /// Calls with first tries; cut off at the end.
    trying: JoinSet<()>,
    /// What came of first tries.
    tray: Tray,
    /// Acquires under way alone; cut off at the end.
    acquires: JoinSet<Acquired>,
    /// Single calls under way; waited for at the end.
    calls: JoinSet<Called>,
    /// Releases to send in this turn.
    releases: Vec<Job>,
    /// Releases in calls under way, each of which carries several.
    releasing: usize,
    /// Releases and alarms for later.
    later: BTreeMap<(BootTime, u64), Later>,
    later_seq: u64,
    drift_look: BootTime,
    /// A look without a purpose of its own, see [`timing::STIR`].
    stir: Option<BootTime>,
    floors: Floors,
    owners: Owners,
    ending: Option<Ending>,
}

enum Later {
    Release(Job),
    Alarm(oneshot::Sender<()>),
}

/// An acquire that has ended.
struct Acquired {
    asked: Box<Asked>,
    /// `None` when nobody waits for it any more.
    result: Option<Result<Won, AcquireError>>,
}

/// A single call that has ended.
enum Called {
    Renewed(Vec<Answer>),
    Released(Vec<(Job, crate::backend::ReleaseReply)>),
    Resumed(Box<questions::Resumed>),
    Answered,
}

/// The answer to one renewal.
struct Answer {
    grant: Arc<Grant>,
    confirmed: Confirmed,
    reply: RenewReply,
    to: Option<oneshot::Sender<Result<std::time::Duration, RenewError>>>,
}

impl Worker {
    pub(crate) fn new(ctx: Arc<Ctx>) -> Self {
        Self {
            drift_look: ctx.now(),
            ctx,
            live: Live::default(),
            tries: Vec::new(),
            alone: Vec::new(),
            trying: JoinSet::new(),
            tray: Tray::default(),
            acquires: JoinSet::new(),
            calls: JoinSet::new(),
            releases: Vec::new(),
            releasing: 0,
            later: BTreeMap::new(),
            later_seq: 0,
            stir: None,
            floors: Floors::default(),
            owners: Owners::default(),
            ending: None,
        }
    }

    /// Runs until nobody can ask any more and all that was held is settled, or shut down.
    pub(crate) async fn run(mut self) -> Option<(oneshot::Sender<Drained>, Drained)> {
        let (ctx, mut batch) = (self.ctx.clone(), Vec::new());
        let mut sleep: Option<(BootTime, SleepFuture<'_>)> = None;
        loop {
            self.turn(&mut batch);
            if self.is_finished() {
                break;
            }
            let next = self.next_instant();
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
                // Only the end waits for these: what they are asked comes through the inbox.
                Some(_) = self.trying.join_next(), if self.ending.is_some() => {}
                Some(done) = self.calls.join_next(), if !self.calls.is_empty() => {
                    self.called_or_panicked(done);
                }
                () = elapsed(&mut sleep) => sleep = None,
            }
        }
        self.finish()
    }
}

/// Waits for the instant, if there is one.
async fn elapsed(sleep: &mut Option<(BootTime, SleepFuture<'_>)>) {
    match sleep {
        Some((_, sleep)) => sleep.await,
        None => std::future::pending().await,
    }
}
