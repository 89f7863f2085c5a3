//! Waiting for names that others hold: local queue, subscription, poll. `lease.md` 7.

use std::sync::Arc;
use std::time::Duration;

use tracing::Instrument;

use super::{Attempt, Tried, Won};
use crate::backend::WakeStream;
use crate::error::NotGranted;
use crate::worker::ctx::Ctx;
use crate::worker::local_queues::Position;
use crate::{AcquireError, BootTime, Refusal, timing};

impl Attempt {
    /// Tries until `end`. If others here wait for the names, it first waits in their queue.
    pub(super) async fn wait(&mut self, end: Option<BootTime>) -> Result<Won, NotGranted> {
        let ctx = Arc::clone(&self.ctx);
        let names = self.command.names.clone();
        let queues = ctx.queues_of(&self.command);
        // Only the head of this process's queue takes a place in the backend's queue.
        let may_ask = !self.command.fair && !queues.is_contended(&names);
        let first = if may_ask || self.is_over(end) {
            Some(self.try_once().await)
        } else {
            None
        };
        let last = match first {
            Some(Tried::Won(won)) => return Ok(won),
            Some(Tried::Hopeless(error)) => return Err(error.into()),
            Some(Tried::Refused(refusal)) => NotGranted::Refused(refusal),
            Some(Tried::Failed(error)) => self.failing(error),
            None => NotGranted::Refused(Refusal::default()),
        };
        if self.is_over(end) {
            return Err(last);
        }
        let Some(position) = queues.enter(&names) else {
            return Err(AcquireError::QueueFull.into());
        };
        let turn = tokio::select! {
            biased;
            turn = position.turn() => turn,
            () = sleep_until(&ctx, end) => return self.last_try(last).await,
        };
        let span = tracing::debug_span!("lease.wait");
        let waiting = self.wait_at_the_head(&position, end, last);
        let outcome = waiting.instrument(span).await;
        drop(turn);
        outcome
    }

    /// Subscribes, waits for the acknowledgement, tries again, and only then sleeps: a release
    /// between a refusal and the subscription is not missed. The poll covers expiry, which sends no
    /// hint, and lost hints. `last` is the outcome of the previous try.
    async fn wait_at_the_head(
        &mut self,
        position: &Position<'_>,
        end: Option<BootTime>,
        mut last: NotGranted,
    ) -> Result<Won, NotGranted> {
        let ctx = Arc::clone(&self.ctx);
        let heard = position.heard();
        if heard.is_none() && self.attempts == 0 {
            // First in the queue, so the names may be free.
            last = match self.try_once().await {
                Tried::Won(won) => return Ok(won),
                Tried::Hopeless(error) => return Err(error.into()),
                Tried::Refused(refusal) => NotGranted::Refused(refusal),
                Tried::Failed(error) => self.failing(error),
            };
        }
        let mut wake = if let Some(wake) = heard {
            wake
        } else {
            let names = self.command.names.clone();
            let subscribed = ctx.within(ctx.call_timeout, self.backend.wake(&names));
            tokio::select! {
                biased;
                // An answer after the end of the wait is of no use.
                () = sleep_until(&ctx, end) => return Err(last),
                wake = subscribed => wake.unwrap_or_else(WakeStream::silent),
            }
        };
        let outcome = self.try_and_sleep(position, &mut wake, (end, last)).await;
        position.hand_on(wake);
        outcome
    }

    async fn try_and_sleep(
        &mut self,
        position: &Position<'_>,
        wake: &mut WakeStream,
        (end, mut last): (Option<BootTime>, NotGranted),
    ) -> Result<Won, NotGranted> {
        let ctx = Arc::clone(&self.ctx);
        // Nothing is asked after the end, so the wait is over one call timeout later at most.
        while !self.is_over(end) {
            // The try that follows sees every release that was notified by now.
            wake.forget();
            position.forget_poke().await;
            let pause;
            (last, pause) = match self.try_once().await {
                Tried::Won(won) => return Ok(won),
                Tried::Hopeless(error) => return Err(error.into()),
                Tried::Refused(refusal) => {
                    let pause = self.pause(&refusal);
                    (NotGranted::Refused(refusal), pause)
                }
                Tried::Failed(error) => {
                    let pause = timing::back_off(self.failures, ctx.draw());
                    (self.failing(error), pause)
                }
            };
            let mut until = ctx.now().plus(pause);
            if let Some(end) = end {
                until = until.min(end);
            }
            tokio::select! {
                biased;
                () = wake.next() => {}
                () = position.poked() => {}
                () = ctx.clock.sleep_until(until) => {}
            }
        }
        self.last_try(last).await
    }

    /// Returns the outcome at the end of the wait. Tries once if there was no try yet.
    async fn last_try(&mut self, last: NotGranted) -> Result<Won, NotGranted> {
        match self.attempts {
            0 => self.try_once().await.into_result(),
            _ => Err(last),
        }
    }

    /// Logs the first failure of a wait, which may last long.
    fn failing(&self, error: AcquireError) -> NotGranted {
        if self.failures == 1 {
            tracing::warn!(name = ?self.command.names, %error, "an acquire failed");
        }
        error.into()
    }

    fn is_over(&self, end: Option<BootTime>) -> bool {
        end.is_some_and(|end| self.ctx.now() >= end)
    }

    /// Computes how long to sleep after a refusal if no wake-up comes.
    fn pause(&self, refusal: &Refusal) -> Duration {
        const SPREAD: Duration = Duration::from_millis(20);
        let ctx = &*self.ctx;
        let poll = timing::around(ctx.facts.poll, 20, ctx.draw());
        if refusal.conflicts.is_empty() && refusal.retry_after.is_zero() {
            return poll;
        }
        let spread = timing::below(SPREAD, ctx.draw());
        refusal.retry_after.saturating_add(spread).min(poll)
    }
}

async fn sleep_until(ctx: &Ctx, end: Option<BootTime>) {
    match end {
        Some(end) => ctx.clock.sleep_until(end).await,
        None => std::future::pending().await,
    }
}
