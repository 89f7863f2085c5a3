//! One acquire from the first try to its grant or its end. Whatever it may have left at the backend
//! is released by [`Attempt`]'s drop, so that it does not matter where a caller goes away.

use std::time::Duration;

use tracing::Instrument;

use super::ctx::Ctx;
use super::gate::Place;
use super::release::Job;
use crate::backend::{Acquire, AcquireReply, Durability, Release, WakeStream};
use crate::lease::{Confirmed, Deletes};
use crate::notice::What;
use crate::{
    AcquireError, BackendError, BootTime, FencingToken, Owner, Refusal, SystemEntropy, Wait, timing,
};

/// A grant that is still useful (LT5), with what its lease is made of.
#[derive(Debug)]
pub(super) struct Won {
    pub(super) owner: Owner,
    pub(super) token: FencingToken,
    pub(super) replicas: Option<u32>,
    pub(super) deletes: Deletes,
    pub(super) confirmed: Confirmed,
}

/// What one try came to.
enum Tried {
    Won(Won),
    Refused(Refusal),
    /// No answer, or one that another try may better: the error to give if there is no other.
    Failed(AcquireError),
    /// No other try can help.
    Hopeless(AcquireError),
}

/// Asks until there is a grant or the wait is over.
pub(super) async fn acquire(
    ctx: &Ctx,
    command: Acquire,
    wait: Wait,
    safety: Duration,
) -> Result<Won, AcquireError> {
    let mut attempt = Attempt::new(ctx, command, safety);
    match wait {
        Wait::No => attempt.once().await,
        // Boxed: a wait is large, and every acquire would carry the room for it.
        Wait::UpTo(span) => Box::pin(attempt.wait(Some(attempt.begun.plus(span)))).await,
        Wait::Forever => Box::pin(attempt.wait(None)).await,
    }
}

/// The tries of one acquire. All have the same owner, so that a lost reply is healed by asking
/// again (B3).
struct Attempt<'a> {
    ctx: &'a Ctx,
    command: Acquire,
    safety: Duration,
    begun: BootTime,
    attempts: u32,
    /// Tries in a row without an answer of the backend itself.
    failures: u32,
    /// Commands of this owner without an answer: they may have run, or be in a buffer yet.
    unanswered: u32,
    /// The backend keeps a place for our waiter.
    queued: bool,
}

impl<'a> Attempt<'a> {
    fn new(ctx: &'a Ctx, command: Acquire, safety: Duration) -> Self {
        Self {
            ctx,
            command,
            safety,
            begun: ctx.now(),
            attempts: 0,
            failures: 0,
            unanswered: 0,
            queued: false,
        }
    }

    /// One try, and a second with the same owner if the first stayed without an answer.
    async fn once(&mut self) -> Result<Won, AcquireError> {
        let mut tried = self.try_once().await;
        if matches!(tried, Tried::Failed(AcquireError::Unknown { .. })) {
            tried = self.try_once().await;
        }
        match tried {
            Tried::Won(won) => Ok(won),
            Tried::Refused(refusal) => Err(AcquireError::Refused(refusal)),
            Tried::Failed(error) | Tried::Hopeless(error) => Err(error),
        }
    }

    /// Tries until `end`. Who finds others of this process waiting stands in line first.
    async fn wait(&mut self, end: Option<BootTime>) -> Result<Won, AcquireError> {
        let ctx = self.ctx;
        let names = self.command.names.clone();
        let mut last = AcquireError::Refused(Refusal::default());
        // A place in the backend's queue is for the head of this process's line, and for nobody else.
        if self.is_over(end) || !self.command.fair && !ctx.gate.is_contended(&names) {
            match self.try_once().await {
                Tried::Won(won) => return Ok(won),
                Tried::Hopeless(error) => return Err(error),
                Tried::Refused(refusal) => last = AcquireError::Refused(refusal),
                Tried::Failed(error) => last = error,
            }
        }
        if self.is_over(end) {
            return Err(self.give_up(last));
        }
        let Ok(place) = ctx.gate.enter(&names) else {
            return Err(AcquireError::QueueFull);
        };
        let turn = tokio::select! {
            biased;
            turn = place.turn() => turn,
            () = sleep_until(ctx, end) => return Err(self.give_up(last)),
        };
        let span = tracing::debug_span!("lease.wait");
        let outcome = self.wait_at_the_head(&place, end).instrument(span).await;
        drop(turn);
        outcome
    }

    /// Subscribes, waits for the acknowledgement, tries again, and only then sleeps: a release
    /// between a refusal and the subscription is not missed. The poll covers expiry, which wakes
    /// nobody, and lost hints.
    async fn wait_at_the_head(
        &mut self,
        place: &Place<'_>,
        end: Option<BootTime>,
    ) -> Result<Won, AcquireError> {
        let ctx = self.ctx;
        let heard = place.heard();
        if heard.is_none() && self.attempts == 0 {
            // Alone in line, so perhaps nobody holds it.
            match self.try_once().await {
                Tried::Won(won) => return Ok(won),
                Tried::Hopeless(error) => return Err(error),
                Tried::Refused(_) | Tried::Failed(_) => {}
            }
        }
        let mut wake = if let Some(wake) = heard {
            wake
        } else {
            let names = self.command.names.clone();
            let subscribed = ctx.within(ctx.call_timeout, ctx.backend.wake(&names)).await;
            subscribed.unwrap_or_else(WakeStream::silent)
        };
        let outcome = self.try_and_sleep(place, &mut wake, end).await;
        place.hand_on(wake);
        outcome
    }

    async fn try_and_sleep(
        &mut self,
        place: &Place<'_>,
        wake: &mut WakeStream,
        end: Option<BootTime>,
    ) -> Result<Won, AcquireError> {
        let ctx = self.ctx;
        loop {
            // A release that was told by now is seen by the try that follows.
            wake.forget();
            place.forget_poke().await;
            let (last, pause) = match self.try_once().await {
                Tried::Won(won) => return Ok(won),
                Tried::Hopeless(error) => return Err(error),
                Tried::Refused(refusal) => {
                    let pause = self.pause(&refusal);
                    (AcquireError::Refused(refusal), pause)
                }
                Tried::Failed(error) => (error, timing::back_off(self.failures, ctx.draw())),
            };
            if self.is_over(end) {
                return Err(self.give_up(last));
            }
            let mut until = ctx.now().plus(pause);
            if let Some(end) = end {
                until = until.min(end);
            }
            tokio::select! {
                biased;
                () = wake.next() => {}
                () = place.poked() => {}
                () = ctx.clock.sleep_until(until) => {}
            }
            if self.is_over(end) {
                return Err(self.give_up(last));
            }
        }
    }

    fn is_over(&self, end: Option<BootTime>) -> bool {
        end.is_some_and(|end| self.ctx.now() >= end)
    }

    /// How long to sleep after a refusal if nobody wakes us.
    fn pause(&self, refusal: &Refusal) -> Duration {
        const SPREAD: Duration = Duration::from_millis(20);
        let ctx = self.ctx;
        let poll = timing::around(ctx.facts.poll, 20, ctx.draw());
        let free = match refusal.conflicts.iter().map(|held| held.remaining).max() {
            Some(longest) => longest,
            None if refusal.retry_after.is_zero() => return poll,
            // The name is free, and the first of those who stand before us may be dead by then.
            None => refusal.retry_after,
        };
        let spread = timing::below(SPREAD, ctx.draw());
        free.saturating_add(spread).min(poll)
    }

    /// The error of a wait that ended with `last`.
    fn give_up(&self, last: AcquireError) -> AcquireError {
        let AcquireError::Refused(last) = last else {
            return last;
        };
        AcquireError::TimedOut {
            waited: self.ctx.now().since(self.begun),
            attempts: self.attempts,
            last,
        }
    }

    async fn try_once(&mut self) -> Tried {
        let ctx = self.ctx;
        let limit = match self.command.durability {
            Durability::Primary => ctx.call_timeout,
            Durability::Replicas { within, .. } => ctx.call_timeout.saturating_add(within),
        };
        self.attempts = self.attempts.saturating_add(1);
        self.unanswered = self.unanswered.saturating_add(1);
        let sent = ctx.now();
        let answer = ctx.within(limit, ctx.backend.acquire(&self.command)).await;
        let sent = ctx.counted_from(sent);
        let silence = || BackendError::Unknown(format!("no answer in {} ms", limit.as_millis()));
        let answer = answer.unwrap_or_else(|| AcquireReply::Failed(silence()));
        if !matches!(answer, AcquireReply::Failed(_)) {
            self.failures = 0;
        }
        if !matches!(answer, AcquireReply::Failed(BackendError::Unknown(_))) {
            self.unanswered = self.unanswered.saturating_sub(1);
        }
        match answer {
            AcquireReply::Granted {
                token,
                granted,
                replicas,
                ..
            } => self.granted(
                token,
                Confirmed {
                    sent,
                    granted,
                    asked: self.command.ttl,
                },
                replicas,
            ),
            AcquireReply::Refused(refusal) => {
                self.queued = refusal.queued;
                Tried::Refused(refusal)
            }
            AcquireReply::QueueFull => Tried::Hopeless(AcquireError::QueueFull),
            AcquireReply::CapReached => self.begin_anew(),
            AcquireReply::Epoch(error) => Tried::Hopeless(AcquireError::Epoch(error)),
            AcquireReply::Failed(error) => self.failed(error),
        }
    }

    /// LT5: a grant with less than half its ttl left is none.
    fn granted(
        &mut self,
        token: FencingToken,
        confirmed: Confirmed,
        replicas: Option<u32>,
    ) -> Tried {
        let ctx = self.ctx;
        let deadline = timing::deadline(confirmed.sent, confirmed.granted, self.safety);
        if deadline.since(ctx.now()) < confirmed.asked / 2 {
            self.unanswered = self.unanswered.saturating_add(1);
            return self.begin_anew();
        }
        if self
            .command
            .floor
            .is_some_and(|floor| token.number() <= floor.number())
        {
            ctx.tell(What::Regressed, |notice| {
                notice.because("a grant below its floor")
            });
        }
        self.queued = false;
        Tried::Won(Won {
            owner: self.command.owner,
            token,
            replicas,
            deletes: match std::mem::take(&mut self.unanswered) {
                0 => Deletes::Once,
                _ => Deletes::Twice,
            },
            confirmed,
        })
    }

    /// This owner's grant is of no use: gives it back and goes on with another owner.
    fn begin_anew(&mut self) -> Tried {
        self.leave();
        self.command.owner = Owner::draw(&SystemEntropy);
        self.unanswered = 0;
        Tried::Failed(self.unanswered())
    }

    fn failed(&mut self, error: BackendError) -> Tried {
        self.failures = self.failures.saturating_add(1);
        match error {
            BackendError::Unknown(why) => {
                self.ctx.counters.unknown_acquire.add(1);
                self.ctx.tell(What::Unknown, |notice| notice.because(why));
                Tried::Failed(self.unanswered())
            }
            BackendError::Config(_) => Tried::Hopeless(AcquireError::Unavailable(error)),
            BackendError::NotSent(_) | BackendError::Rejected { .. } => {
                Tried::Failed(AcquireError::Unavailable(error))
            }
        }
    }

    fn unanswered(&self) -> AcquireError {
        AcquireError::Unknown {
            retry_after: self.command.ttl,
        }
    }

    /// Hands what this owner may have left at the backend to the loop. A command without an answer
    /// may still be in a buffer, so it is deleted twice.
    fn leave(&self) {
        let in_doubt = self.unanswered > 0;
        if !in_doubt && !self.queued {
            return;
        }
        let release = Release {
            names: self.command.names.clone(),
            owner: self.command.owner,
            token: None,
            // A command without an answer may have taken a place in the queue.
            waiter: self.command.waiter,
        };
        let again = in_doubt.then_some(self.command.ttl / 2);
        let give_up = self.ctx.now().plus(self.command.ttl);
        self.ctx.leave(Job::orphan(release, give_up, again));
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        self.leave();
    }
}

async fn sleep_until(ctx: &Ctx, end: Option<BootTime>) {
    match end {
        Some(end) => ctx.clock.sleep_until(end).await,
        None => std::future::pending().await,
    }
}
