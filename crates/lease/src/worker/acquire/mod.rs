//! One acquire from the first try to its grant or its end. What it may have left at the backend is
//! released by [`Attempt`]'s drop, so that a caller may be cancelled at any point.

mod pending;
mod wait;

use std::sync::Arc;
use std::time::Duration;

use soldonce_clock::timeout_at;

use super::ctx::Ctx;
use super::job::ReleaseJob;
use crate::backend::{Acquire, AcquireReply, Backend, Durability, Names, Release};
use crate::error::NotGranted;
use crate::grant::{Confirmed, Terms, Whereabouts};
use crate::inbox::{AcquireParams, Wait};
use crate::notice::NoticeKind;
use crate::{
    AcquireError, BackendError, BootTime, FencingToken, InvalidRequest, Name, Owner, Refusal,
    SystemEntropy, timing, token,
};

pub(super) use pending::PendingAcquire;

/// A grant that is still useful (LT5).
#[derive(Debug)]
pub(super) struct Won {
    terms: Terms,
    confirmed: Confirmed,
}

pub(super) enum Tried {
    Won(Won),
    Refused(Refusal),
    /// No answer, or one that another try may improve on: the error if no other try follows.
    Failed(AcquireError),
    /// No other try can help.
    Hopeless(AcquireError),
}

impl Tried {
    /// Converts to the result of the acquire if no other try follows.
    fn into_result(self) -> Result<Won, NotGranted> {
        match self {
            Tried::Won(won) => Ok(won),
            Tried::Refused(refusal) => Err(NotGranted::Refused(refusal)),
            Tried::Failed(error) | Tried::Hopeless(error) => Err(error.into()),
        }
    }
}

/// The tries of one acquire. All have the same owner, so that a lost reply is repaired by asking
/// again (B3).
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(super) struct Attempt {
    ctx: Arc<Ctx>,
    backend: Arc<dyn Backend>,
    command: Acquire,
    safety: Duration,
    manual: bool,
    holder: Whereabouts,
    wait: Wait,
    begun: BootTime,
    attempts: u32,
    /// Tries in a row without an answer from the backend itself.
    failures: u32,
    /// Commands of this owner without an answer: they may have run, or still be in a buffer.
    unanswered: u32,
    /// The backend keeps a place in its queue for this waiter.
    queued: bool,
}

impl Attempt {
    /// Creates an attempt on the connections of `backend`.
    pub(super) fn new(ctx: Arc<Ctx>, backend: Arc<dyn Backend>, params: AcquireParams) -> Self {
        Self {
            begun: ctx.now(),
            ctx,
            backend,
            command: params.command,
            safety: params.safety,
            manual: params.manual,
            holder: params.holder,
            wait: params.wait,
            attempts: 0,
            failures: 0,
            unanswered: 0,
            queued: false,
        }
    }

    /// Asks until there is a grant or the wait is over. Repeats its first call if that got no answer and no time is
    /// left for another one.
    pub(super) async fn acquire(&mut self) -> Result<Won, NotGranted> {
        let result = match self.wait {
            Wait::No => self.try_once().await.into_result(),
            Wait::UpTo(span) => self.wait(Some(self.begun.plus(span))).await,
            Wait::Forever => self.wait(None).await,
        };
        match result {
            Err(NotGranted::Failed(error)) if self.attempts == 1 && self.repeats(&error) => {
                self.try_once().await.into_result()
            }
            result => result,
        }
    }

    /// Tells whether the only try of an acquire, which failed by `error`, is repeated with the same owner.
    fn repeats(&self, error: &AcquireError) -> bool {
        // A connection may have been under way: to a server that is far away it takes longer than one call may.
        let not_sent = matches!(error, AcquireError::Unavailable(BackendError::NotSent(_)));
        match self.wait {
            Wait::No => not_sent || matches!(error, AcquireError::Unknown { .. }),
            Wait::UpTo(span) => not_sent && span < self.ctx.call_timeout,
            Wait::Forever => false,
        }
    }

    async fn try_once(&mut self) -> Tried {
        let (ctx, command) = (&*self.ctx, &mut self.command);
        // A target may have reported a higher one since the last try.
        command.floor = ctx.floors.above(&command.names, command.floor);
        if let Some(floor) = command.floor
            && floor.number() > token::most_by(ctx.clock.wall_ms())
        {
            return Tried::Hopeless(InvalidRequest::Floor(floor).into());
        }
        // From now on this owner may leave something at the backend.
        self.attempts = self.attempts.saturating_add(1);
        self.unanswered = self.unanswered.saturating_add(1);
        let limit = match self.command.durability {
            Durability::Primary => ctx.call_timeout,
            Durability::Replicas { within, .. } => ctx.call_timeout.saturating_add(within),
        };
        let sent = ctx.now();
        let asking = self.backend.acquire(&self.command);
        let answer = timeout_at(&*ctx.clock, sent.plus(limit), asking).await;
        let silence = || AcquireReply::Failed(BackendError::unanswered(limit));
        let answer = answer.unwrap_or_else(silence);
        self.answered(sent, answer)
    }

    fn answered(&mut self, sent: BootTime, answer: AcquireReply) -> Tried {
        if !matches!(answer, AcquireReply::Failed(_)) {
            self.failures = 0;
        }
        if !matches!(answer, AcquireReply::Failed(BackendError::Unknown(_))) {
            self.unanswered = self.unanswered.saturating_sub(1);
        }
        match answer {
            AcquireReply::Granted {
                picked,
                token,
                granted,
                replicas,
                again,
            } => {
                let confirmed = Confirmed {
                    sent,
                    granted,
                    asked: self.command.ttl,
                };
                self.granted((picked, token), confirmed, (again, replicas))
            }
            AcquireReply::Refused(mut refusal) => {
                let ends = refusal.conflicts.iter().map(|held| held.remaining);
                if self.command.names.is_any()
                    && let Some(first) = ends.min()
                {
                    // A Redlock whose votes were split says sooner.
                    refusal.retry_after = refusal.retry_after.min(first);
                }
                self.queued = refusal.queued;
                Tried::Refused(refusal)
            }
            AcquireReply::QueueFull => Tried::Hopeless(AcquireError::QueueFull),
            AcquireReply::CapReached if self.holder == Whereabouts::Elsewhere => {
                // The names are free when the cap has ended this grant.
                Tried::Refused(Refusal::default())
            }
            AcquireReply::CapReached => self.begin_anew(),
            AcquireReply::Epoch(error) => Tried::Hopeless(AcquireError::Fence(error)),
            AcquireReply::Failed(error) => self.failed(error),
        }
    }

    /// Accepts a grant, unless less than half its ttl is left, the safety included (LT5). That of a
    /// holder in another process is accepted if anything is left.
    fn granted(
        &mut self,
        (picked, token): (Option<Name>, FencingToken),
        confirmed: Confirmed,
        (again, replicas): (bool, Option<u32>),
    ) -> Tried {
        let ctx = &*self.ctx;
        let deadline = timing::deadline(confirmed.sent, confirmed.granted, self.safety);
        let remaining = deadline.since(ctx.now());
        if self.holder == Whereabouts::Elsewhere {
            // Its holder may have it already, so that it is not given back, however little is left.
            if remaining.is_zero() {
                return Tried::Failed(self.unknown());
            }
        } else if remaining < timing::half_left(confirmed.asked, self.safety) {
            self.unanswered = self.unanswered.saturating_add(1);
            return self.begin_anew();
        }
        let floor = self.command.floor;
        if floor.is_some_and(|floor| token.number() <= floor.number()) {
            ctx.tell(NoticeKind::Regressed, |notice| {
                notice.because("a grant below its floor")
            });
        }
        self.queued = false;
        let names = self.names_of_grant(picked);
        let terms = Terms {
            names,
            owner: self.command.owner,
            token,
            fenced: self.ctx.fenced,
            safety: self.safety,
            manual: self.manual,
            endless: self.command.cap.is_none(),
            replicas,
            in_doubt: std::mem::take(&mut self.unanswered) > 0,
            born: self.begun,
            again,
            holder: self.holder,
        };
        Tried::Won(Won { terms, confirmed })
    }

    /// Returns the names that were granted. A try without an answer may have picked another one,
    /// which is given back.
    fn names_of_grant(&self, picked: Option<Name>) -> Names {
        let Some(picked) = picked else {
            return self.command.names.clone();
        };
        if self.unanswered > 0 {
            let others = self.command.names.only(|name| *name != picked);
            self.leave_behind(others, Some(self.command.ttl / 2));
        }
        self.command.names.only(|name| *name == picked)
    }

    /// Gives back this owner's grant, which is of no use, and continues with another owner.
    fn begin_anew(&mut self) -> Tried {
        self.leave();
        self.command.owner = Owner::draw(&SystemEntropy);
        self.unanswered = 0;
        Tried::Failed(self.unknown())
    }

    fn failed(&mut self, error: BackendError) -> Tried {
        self.failures = self.failures.saturating_add(1);
        match error {
            BackendError::Unknown(why) => {
                self.ctx.counters.unknown_acquire.add(1);
                self.ctx
                    .tell(NoticeKind::Unknown, |notice| notice.because(why));
                Tried::Failed(self.unknown())
            }
            error if error.is_lasting() => Tried::Hopeless(error.into()),
            BackendError::NotSent(_) | BackendError::Rejected { .. } | BackendError::Config(_) => {
                Tried::Failed(error.into())
            }
        }
    }

    fn unknown(&self) -> AcquireError {
        AcquireError::Unknown {
            retry_after: self.command.ttl,
        }
    }

    /// Releases what this owner may have left at the backend. A command without an answer
    /// may still be in a buffer, so it is deleted twice.
    fn leave(&self) {
        let in_doubt = self.unanswered > 0;
        // A remote holder asks again, and a late delete would end what it was granted then.
        if self.holder == Whereabouts::Elsewhere || !in_doubt && !self.queued {
            return;
        }
        let again = in_doubt.then_some(self.command.ttl / 2);
        self.leave_behind(self.command.names.clone(), again);
    }

    fn leave_behind(&self, names: Names, again: Option<Duration>) {
        let release = Release {
            names,
            owner: self.command.owner,
            token: None,
            // A command without an answer may have taken a place in the queue.
            waiter: self.command.waiter,
        };
        let give_up = self.ctx.now().plus(self.command.ttl);
        self.ctx.post(ReleaseJob::orphan(release, give_up, again));
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        self.leave();
    }
}
