//! The state that all work shares, on the lease thread and on the runtime that connected.

use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use super::floors::Floors;
use super::in_place::InPlace;
use super::job::{Next, ReleaseJob, Sent, Why};
use super::local_queues::LocalQueues;
use super::table::Table;
use crate::backend::{
    Acquire, Backend, BackendContext, Facts, Fencing, Names, Release, ReleaseReply,
};
use crate::grant::Grant;
use crate::inbox::{Command, Inbox};
use crate::locks::lock;
use crate::notice::{Notice, NoticeKind, Notices};
use crate::stats::Counters;
use crate::{BootTime, Clock, Entropy};
use soldonce_clock::timeout_at;

/// Shared by the loop, its tasks, and the calls in place. No lock is held across an await.
pub(crate) struct Ctx {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) facts: Facts,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) entropy: Arc<dyn Entropy>,
    pub(crate) call_timeout: Duration,
    pub(crate) fenced: bool,
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) notices: Notices,
    pub(super) in_place: Option<InPlace>,
    /// Local waiters, plain ones and fair ones. Apart, because a fair one behind a plain one would
    /// take no place in the backend's queue.
    queues: [LocalQueues; 2],
    /// Releases that the backend has answered, for the shutdown.
    answered: AtomicU64,
    pub(crate) floors: Floors,
    table: Mutex<Table>,
    /// Releases for the loop; `None` when it has ended.
    left_behind: Mutex<Option<Vec<LeftBehind>>>,
}

/// As [`Ctx::leave`] takes it.
pub(super) type LeftBehind = (Option<BootTime>, ReleaseJob);

impl Ctx {
    pub(crate) fn new(
        (backend, in_place): (Arc<dyn Backend>, Option<InPlace>),
        inbox: Arc<Inbox>,
        context: BackendContext,
    ) -> Self {
        let (facts, counters) = (backend.facts(), context.notices.counters().clone());
        #[cfg(feature = "metrics")]
        counters.register(facts.kind);
        Self {
            backend,
            facts,
            clock: context.clock,
            entropy: context.entropy,
            call_timeout: context.call_timeout,
            fenced: !matches!(context.fencing, Fencing::Off),
            inbox,
            counters,
            notices: context.notices,
            in_place,
            queues: <[LocalQueues; 2]>::default(),
            answered: AtomicU64::new(0),
            floors: Floors::default(),
            table: Mutex::default(),
            left_behind: Mutex::new(Some(Vec::new())),
        }
    }

    pub(crate) fn now(&self) -> BootTime {
        self.clock.boot()
    }

    pub(crate) fn draw(&self) -> u64 {
        let mut bits = [0; 8];
        self.entropy.fill(&mut bits);
        u64::from_le_bytes(bits)
    }

    /// Returns the local queues for waiters like `command`: fair ones or the others.
    pub(super) fn queues_of(&self, command: &Acquire) -> &LocalQueues {
        let [others, fair] = &self.queues;
        if command.fair { fair } else { others }
    }

    /// Wakes the waiters of this process for `names`, which it has released.
    pub(super) fn poke(&self, names: &Names) {
        self.queues.iter().for_each(|queues| queues.poke(names));
    }

    /// Waits for the answer of `call`; `None` after `limit`.
    pub(super) async fn within<T>(
        &self,
        limit: Duration,
        call: impl Future<Output = T>,
    ) -> Option<T> {
        timeout_at(&*self.clock, self.now().plus(limit), call).await
    }

    /// Hands a release to the loop, to be sent at this instant, or at once without one. After the
    /// loop's end it is dropped, which tells a caller that waits for its outcome.
    pub(super) fn leave(&self, at: Option<BootTime>, job: ReleaseJob) {
        if let Some(left) = &mut *self.left_behind() {
            left.push((at, job));
        }
        self.inbox.nudge();
    }

    /// Locks the list of releases for the loop; `None` after the end, when no more are taken.
    pub(super) fn left_behind(&self) -> MutexGuard<'_, Option<Vec<LeftBehind>>> {
        lock(&self.left_behind)
    }

    pub(super) fn table(&self) -> MutexGuard<'_, Table> {
        lock(&self.table)
    }

    /// Adds a grant to the live ones, which are renewed. Returns false after the end.
    pub(super) fn watch(&self, grant: Arc<Grant>) -> bool {
        let mut table = self.table();
        let Some(is_early) = table.watch(grant) else {
            return false;
        };
        self.counters.live.set(table.live.len());
        drop(table);
        if is_early {
            self.inbox.nudge();
        }
        true
    }

    /// Releases a grant that its guard gave back, without waiting for the answer.
    pub(crate) fn give_back(self: &Arc<Self>, grant: Arc<Grant>) {
        if self.is_here() {
            self.post(self.end_of(&grant));
        } else {
            // Fails after the end, which releases all grants.
            self.inbox.push(Command::Release(grant, None));
        }
    }

    /// Removes a grant from the live ones, but not another grant of the same owner. Returns false if there is
    /// another: then the ticket was resumed again, and what the backend keeps is for another guard.
    pub(crate) fn unwatch(&self, grant: &Grant) -> bool {
        let mut table = self.table();
        let is_last = table.live.remove_this(grant);
        self.counters.live.set(table.live.len());
        is_last
    }

    /// Tells whether the ticket of a grant was resumed again: what the backend keeps is for another guard.
    pub(crate) fn is_resumed_again(&self, grant: &Grant) -> bool {
        self.table().live.has_another(grant)
    }

    /// Registers a release to be sent outside the loop, which takes it over after `limit`.
    pub(super) fn overdue_after(&self, job: ReleaseJob, limit: Duration) -> Arc<Sent> {
        let sent = Arc::new(Sent::of(job));
        if self.table().send(self.now().plus(limit), &sent) {
            self.inbox.nudge();
        }
        sent
    }

    /// Builds the release of a grant of this process.
    pub(super) fn job(&self, grant: &Grant, why: Why) -> ReleaseJob {
        let release = Release {
            names: grant.terms.names.clone(),
            owner: grant.terms.owner,
            token: Some(grant.terms.token),
            waiter: None,
        };
        let ttl = grant.ttl();
        // A holder elsewhere may be granted the names again, and a late delete would end that.
        let twice = grant.terms.in_doubt && grant.is_held_here();
        let again = twice.then_some(ttl / 2);
        let give_up = grant.kept_until().max(self.now().plus(ttl / 2));
        ReleaseJob::of(release, why, give_up, again)
    }

    /// Applies the answer to a release; what is to be sent again is left to the loop.
    pub(super) fn released(&self, job: ReleaseJob, reply: ReleaseReply) {
        if !matches!(reply, ReleaseReply::Failed(_)) {
            self.answered.fetch_add(1, Ordering::Relaxed);
        }
        match job.answered(self, reply) {
            Next::Done => {}
            Next::At(at, job) => self.leave(Some(at), job),
            Next::LeftToTtl => self.counters.left_to_ttl.add(1),
        }
    }

    /// Counts the releases that the backend has answered so far.
    pub(super) fn answered(&self) -> u64 {
        self.answered.load(Ordering::Relaxed)
    }

    /// Sends a notice of this backend, which `fill` completes.
    pub(super) fn tell(&self, what: NoticeKind, fill: impl FnOnce(Notice) -> Notice) {
        self.notices
            .tell(|| fill(Notice::of(what, self.facts.kind)));
    }
}
