//! Releases: of guards, of lost leases, and of what acquires left behind. Each is tried until the
//! backend answers or the ttl has ended what it would end.

use super::ctx::Ctx;
use super::job::{Next, ReleaseJob, Why};
use crate::backend::{Backend, Release, ReleaseReply};
use crate::limits::BATCH_MAX;
use crate::notice::NoticeKind;
use crate::timing;
use crate::{BackendError, ReleaseOutcome, Unsettled};

impl ReleaseJob {
    /// Applies the backend's answer, and returns what follows.
    pub(super) fn answered(mut self, ctx: &Ctx, reply: ReleaseReply) -> Next {
        let outcome = match reply.outcome() {
            Ok(outcome) => outcome,
            Err(error) => return self.failed(ctx, &error),
        };
        self.note(ctx, outcome);
        if let Some(settle) = self.settle.take() {
            // Fails when the caller has gone away.
            settle.send(Ok(outcome)).ok();
        }
        match self.again.take() {
            None => Next::Done,
            Some(after) => {
                let at = ctx.now().plus(after);
                self.release.token = None;
                self.failures = 0;
                self.why = Why::Orphan;
                self.give_up = at.plus(after);
                Next::At(at, self)
            }
        }
    }

    fn note(&self, ctx: &Ctx, outcome: ReleaseOutcome) {
        ctx.poke(&self.release.names);
        let name = || self.release.names.routing_key().cloned();
        // A try without an answer may have ended what is gone now.
        let ended_here = outcome == ReleaseOutcome::Released
            || outcome == ReleaseOutcome::AlreadyGone && self.failures > 0;
        match self.why {
            Why::Guard { token, born } if ended_here => {
                let held = born.map(|born| ctx.now().since(born));
                ctx.counters.released.add(1);
                if let Some(held) = held {
                    ctx.counters.held.add(held);
                }
                ctx.tell(NoticeKind::Released, |notice| crate::Notice {
                    name: name(),
                    token: Some(token),
                    elapsed: held.unwrap_or_default(),
                    ..notice
                });
            }
            Why::Orphan if outcome == ReleaseOutcome::Released => {
                ctx.counters.orphans.add(1);
                ctx.tell(NoticeKind::OrphanReaped, |notice| crate::Notice {
                    name: name(),
                    ..notice
                });
            }
            Why::Guard { .. } | Why::Orphan | Why::Lost => {}
        }
    }

    fn failed(mut self, ctx: &Ctx, error: &BackendError) -> Next {
        self.failures = self.failures.saturating_add(1);
        if matches!(error, BackendError::Unknown(_)) {
            ctx.counters.unknown_release.add(1);
        }
        if self.failures > 1
            && let Some(settle) = self.settle.take()
        {
            settle.send(Err(Unsettled)).ok();
        }
        let at = ctx.now().plus(timing::back_off(self.failures, ctx.draw()));
        if at >= self.give_up {
            return Next::LeftToTtl;
        }
        Next::At(at, self)
    }
}

/// Sends up to 100 releases in one call.
pub(super) async fn send(ctx: &Ctx, jobs: Vec<ReleaseJob>) -> Vec<(ReleaseJob, ReleaseReply)> {
    let batch: Vec<Release> = jobs.iter().map(|job| job.release.clone()).collect();
    debug_assert!(batch.len() <= BATCH_MAX);
    let replies = ctx.within(ctx.call_timeout, ctx.backend.release(&batch));
    let mut replies = replies.await.unwrap_or_default().into_iter();
    let silence = || ReleaseReply::Failed(BackendError::unanswered(ctx.call_timeout));
    let paired = |job| (job, replies.next().unwrap_or_else(silence));
    jobs.into_iter().map(paired).collect()
}

/// Sends one release over `backend` without a time-out: the lease thread takes over an overdue one.
pub(super) async fn reply(ctx: &Ctx, backend: &dyn Backend, one: &[Release; 1]) -> ReleaseReply {
    let replies = backend.release(one).await;
    let silence = || ReleaseReply::Failed(BackendError::unanswered(ctx.call_timeout));
    replies.into_iter().next().unwrap_or_else(silence)
}
