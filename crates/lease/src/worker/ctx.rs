//! What every piece of work on the lease thread needs.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::job::ReleaseJob;
use super::local_queues::LocalQueues;
use crate::backend::{Backend, Facts};
use crate::inbox::Inbox;
use crate::notice::{Notice, NoticeKind, Notices};
use crate::stats::Counters;
use crate::{BootTime, Clock, Entropy};

/// Shared by the loop and its tasks, all on one thread: its locks are never contended.
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
    pub(super) queues: LocalQueues,
    left_behind: Mutex<Vec<ReleaseJob>>,
}

/// What [`Ctx`] is made of.
pub(crate) struct Parts {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) entropy: Arc<dyn Entropy>,
    pub(crate) call_timeout: Duration,
    pub(crate) fenced: bool,
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) notices: Notices,
}

impl Ctx {
    pub(crate) fn new(parts: Parts) -> Self {
        Self {
            facts: parts.backend.facts(),
            backend: parts.backend,
            clock: parts.clock,
            entropy: parts.entropy,
            call_timeout: parts.call_timeout,
            fenced: parts.fenced,
            inbox: parts.inbox,
            counters: parts.counters,
            notices: parts.notices,
            queues: LocalQueues::default(),
            left_behind: Mutex::default(),
        }
    }

    pub(super) fn now(&self) -> BootTime {
        self.clock.boot()
    }

    /// 64 random bits, for jitter.
    pub(super) fn draw(&self) -> u64 {
        let mut bits = [0; 8];
        self.entropy.fill(&mut bits);
        u64::from_le_bytes(bits)
    }

    /// What `call` answers, or nothing after `limit`.
    pub(super) async fn within<T>(
        &self,
        limit: Duration,
        call: impl Future<Output = T>,
    ) -> Option<T> {
        tokio::select! {
            biased;
            answer = call => Some(answer),
            () = self.clock.sleep_until(self.now().plus(limit)) => None,
        }
    }

    /// Hands a release to the loop: what an acquire may have left at the backend.
    pub(super) fn leave(&self, job: ReleaseJob) {
        let left = self.left_behind.lock();
        left.unwrap_or_else(PoisonError::into_inner).push(job);
        self.inbox.nudge();
    }

    pub(super) fn take_left_behind(&self) -> Vec<ReleaseJob> {
        let left = self.left_behind.lock();
        std::mem::take(&mut *left.unwrap_or_else(PoisonError::into_inner))
    }

    /// Tells a notice of this backend.
    pub(super) fn tell(&self, what: NoticeKind, fill: impl FnOnce(Notice) -> Notice) {
        self.notices
            .tell(|| fill(Notice::of(what, self.facts.kind)));
    }
}
