//! Releases: of guards, of lost leases, and of what acquires left behind. Each is tried until the
//! backend answers or the ttl has ended what it would end.

use std::time::Duration;

use tokio::sync::oneshot;

use super::ctx::Ctx;
use crate::backend::{Release, ReleaseReply};
use crate::limits::BATCH_MAX;
use crate::notice::What;
use crate::{BackendError, BootTime, FencingToken, ReleaseOutcome, Unsettled, timing};

/// Who waits for the outcome of a release.
type Settle = oneshot::Sender<Result<ReleaseOutcome, Unsettled>>;

/// One release on its way.
pub(crate) struct Job {
    pub(super) release: Release,
    pub(super) why: Why,
    /// From then on the ttl has ended it.
    give_up: BootTime,
    failures: u32,
    /// To be sent once more after so long, by owner alone: for a command that is still in a buffer.
    again: Option<Duration>,
    settle: Option<Settle>,
}

/// Whose release it is, for notices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    Guard { token: FencingToken, born: BootTime },
    Lost,
    Orphan,
}

/// What becomes of a job after one try.
pub(super) enum Next {
    Done,
    /// Try again at this time.
    At(BootTime, Job),
    /// The ttl ends it.
    LeftToTtl,
}

impl Job {
    /// Ends what an acquire may have left.
    pub(super) fn orphan(release: Release, give_up: BootTime, again: Option<Duration>) -> Self {
        Self::of(release, Why::Orphan, give_up, again)
    }

    pub(super) fn of(
        release: Release,
        why: Why,
        give_up: BootTime,
        again: Option<Duration>,
    ) -> Self {
        Self {
            release,
            why,
            give_up,
            failures: 0,
            again,
            settle: None,
        }
    }

    /// The same, with somebody who waits for the outcome.
    pub(super) fn settling(mut self, settle: Option<Settle>) -> Self {
        self.settle = settle;
        self
    }

    /// Takes the backend's answer.
    pub(super) fn answered(mut self, ctx: &Ctx, reply: ReleaseReply) -> Next {
        let outcome = match reply {
            ReleaseReply::Released => ReleaseOutcome::Released,
            ReleaseReply::Gone => ReleaseOutcome::AlreadyGone,
            ReleaseReply::Taken { by } => ReleaseOutcome::TakenBy(by),
            ReleaseReply::Failed(error) => return self.failed(ctx, &error),
        };
        self.note(ctx, outcome);
        if let Some(settle) = self.settle.take() {
            // Fails when nobody waits for the outcome any more.
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
        ctx.gate.poke(&self.release.names);
        let home = || self.release.names.home().cloned();
        match self.why {
            Why::Guard { token, born } => {
                let held = ctx.now().since(born);
                ctx.counters.released.add(1);
                ctx.counters.held_ms.add(millis(held));
                ctx.tell(What::Released, |notice| crate::Notice {
                    name: home(),
                    token: Some(token),
                    elapsed: held,
                    ..notice
                });
            }
            Why::Orphan if outcome == ReleaseOutcome::Released => {
                ctx.counters.orphans.add(1);
                ctx.tell(What::OrphanReaped, |notice| crate::Notice {
                    name: home(),
                    ..notice
                });
            }
            Why::Orphan | Why::Lost => {}
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

    /// Whether it waits because the backend did not answer, and not for the second delete.
    pub(super) fn is_retry(&self) -> bool {
        self.failures > 0
    }
}

/// Sends up to 100 releases in one call.
pub(super) async fn send(ctx: &Ctx, jobs: Vec<Job>) -> Vec<(Job, ReleaseReply)> {
    let batch: Vec<Release> = jobs.iter().map(|job| job.release.clone()).collect();
    debug_assert!(batch.len() <= BATCH_MAX);
    let limit = ctx.call_timeout;
    let replies = ctx.within(limit, ctx.backend.release(&batch)).await;
    let silence = || {
        let why = format!("no answer in {} ms", limit.as_millis());
        ReleaseReply::Failed(BackendError::Unknown(why))
    };
    let mut replies = replies.unwrap_or_default().into_iter();
    let paired = jobs
        .into_iter()
        .map(|job| (job, replies.next().unwrap_or_else(silence)));
    paired.collect()
}

pub(crate) fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
