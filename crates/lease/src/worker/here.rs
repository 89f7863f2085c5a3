//! Acquires and releases on the runtime that connected, without a change of thread. The lease thread keeps
//! what must happen while that runtime does not run: renewals, deadlines, and every release that got no
//! answer there in time. `docs/decisions/0271`.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Waker};

use tokio::sync::oneshot;
use tracing::Instrument;

use super::acquire::Attempt;
use super::ctx::Ctx;
use super::in_place::InPlace;
use super::job::{ReleaseJob, Sent, Why};
use super::release;
use crate::error::NotGranted;
use crate::grant::Grant;
use crate::inbox::AcquireParams;
use crate::{AcquireError, LostReason, ReleaseOutcome, Unsettled};

/// Counts an acquire as under way until it is dropped.
struct UnderWay<'a>(&'a Ctx, &'a InPlace);

impl<'a> UnderWay<'a> {
    fn begin(ctx: &'a Ctx, here: &'a InPlace) -> Self {
        here.acquires.fetch_add(1, Ordering::SeqCst);
        Self(ctx, here)
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        let Self(ctx, here) = self;
        here.acquires.fetch_sub(1, Ordering::SeqCst);
        if here.closed.load(Ordering::SeqCst) {
            ctx.inbox.nudge();
        }
    }
}

/// Leaves a release to the lease thread if the call that sends it is dropped before its answer.
struct Handover<'a> {
    ctx: &'a Ctx,
    sent: Arc<Sent>,
}

impl Drop for Handover<'_> {
    fn drop(&mut self) {
        if let Some(job) = self.sent.take_over() {
            self.ctx.leave(None, job);
        }
    }
}

impl Ctx {
    /// Returns the runtime that connected, if this code runs on it.
    pub(crate) fn here(&self) -> Option<&InPlace> {
        self.in_place.as_ref().filter(|place| place.is_here())
    }

    pub(crate) fn is_here(&self) -> bool {
        self.here().is_some()
    }

    /// Acquires in the caller's own task, `here`. Fails with `Closed` after the end.
    pub(crate) async fn acquire_here(
        self: &Arc<Self>,
        here: &InPlace,
        params: AcquireParams,
    ) -> Result<Arc<Grant>, NotGranted> {
        let backend = here.backend().ok_or(AcquireError::Closed)?;
        let _under_way = UnderWay::begin(self, here);
        let mut attempt = Attempt::new(self.clone(), backend, params);
        let span = attempt.span();
        let flow = async {
            tokio::select! {
                biased;
                () = poll_fn(|_| here.poll_closed()) => Err(AcquireError::Closed.into()),
                result = attempt.acquire() => attempt.settle(result),
                // Last, because it takes a lock that all callers share.
                () = here.closed() => Err(AcquireError::Closed.into()),
            }
        };
        flow.instrument(span).await
    }

    /// Releases in the caller's own task. The lease thread takes over what has no answer in time.
    pub(crate) async fn release_here(&self, grant: &Grant) -> Result<ReleaseOutcome, Unsettled> {
        if !self.unwatch(grant) {
            return Ok(ReleaseOutcome::AlreadyGone);
        }
        let (settle, mut answer) = oneshot::channel();
        let job = self.job_of(grant).settling(Some(settle));
        // Of a task that has used up its budget nothing would be polled, and what is not begun is lost with the task.
        let settled = tokio::task::unconstrained(async {
            tokio::select! {
                biased;
                () = self.send_here(job) => answer.await,
                // The lease thread took it over.
                outcome = &mut answer => outcome,
            }
        });
        settled.await.unwrap_or(Err(Unsettled))
    }

    /// Sends a release of what is not held any more. On the runtime that connected it is on its way
    /// when this returns, before any later request from there.
    pub(crate) fn post(self: &Arc<Self>, job: ReleaseJob) {
        let Some(here) = self.here() else {
            return self.leave(None, job);
        };
        let ctx = Arc::clone(self);
        let sending = async move { ctx.send_here(job).await };
        let mut call = Box::pin(tokio::task::unconstrained(sending));
        let mut context = Context::from_waker(Waker::noop());
        if call.as_mut().poll(&mut context).is_pending() {
            here.spawn(call);
        }
    }

    /// Stops watching a grant that its guard has ended, and builds its release.
    pub(crate) fn end_of(&self, grant: &Grant) -> ReleaseJob {
        self.unwatch(grant);
        self.job_of(grant)
    }

    /// Builds the release of a grant that its guard has ended, and that is not watched any more.
    fn job_of(&self, grant: &Grant) -> ReleaseJob {
        let is_here = grant.is_held_here();
        // Past its deadline, and the lease thread has not looked since.
        if is_here && let Some(reason) = grant.lose(LostReason::Deadline) {
            self.tell_loss(grant, reason);
        }
        let lost = grant.lost().filter(|_| is_here);
        let (token, born) = (grant.terms.token, is_here.then_some(grant.terms.born));
        let why = lost.map_or(Why::Guard { token, born }, |_| Why::Lost);
        self.job(grant, why)
    }

    async fn send_here(&self, job: ReleaseJob) {
        let Some(backend) = self.in_place.as_ref().and_then(InPlace::backend) else {
            return self.leave(None, job);
        };
        let release = [job.release.clone()];
        let sent = self.overdue_after(job, self.call_timeout);
        let handover = Handover {
            ctx: self,
            sent: Arc::clone(&sent),
        };
        let reply = release::reply(self, &*backend, &release).await;
        if let Some(job) = sent.take() {
            self.released(job, reply);
        }
        drop(handover);
    }
}
