//! Acquires as the loop sees them, each in a task of its own, and the handling of their outcomes.

use std::sync::Arc;

use tracing::Instrument;

use super::{Attempt, Won};
use crate::error::NotGranted;
use crate::grant::Grant;
use crate::inbox::{AcquireParams, Recipient, Unclaimed};
use crate::notice::NoticeKind;
use crate::worker::{Acquired, Worker};
use crate::{AcquireError, Notice};

/// An acquire, and the caller that waits for it.
pub(in crate::worker) struct PendingAcquire {
    attempt: Attempt,
    to: Recipient,
}

impl Worker {
    pub(in crate::worker) fn acquire(&mut self, params: AcquireParams, to: Recipient) {
        if self.ending.is_some() {
            // It came in one piece with what ended it; its caller sees `Closed`.
            return;
        }
        let (ctx, backend) = (self.ctx.clone(), self.ctx.backend.clone());
        let attempt = Attempt::new(ctx, backend, params);
        self.starting.push(PendingAcquire { attempt, to });
    }

    /// Starts the acquires of this turn, each in a task of its own.
    pub(in crate::worker) fn start_acquires(&mut self) {
        for pending in self.starting.drain(..) {
            let span = pending.attempt.span();
            // Boxed: the task is moved several times before it begins.
            let mut pending = Box::new(pending);
            let flow = async move {
                let PendingAcquire { attempt, to } = &mut *pending;
                let result = tokio::select! {
                    biased;
                    result = attempt.acquire() => Some(result),
                    () = to.closed() => None,
                };
                Acquired { pending, result }
            };
            self.acquires.spawn(flow.instrument(span));
        }
    }

    pub(in crate::worker) fn acquired_or_panicked(
        &mut self,
        done: Result<Acquired, tokio::task::JoinError>,
    ) {
        // A panic has been reported by the hook, and the caller sees that its answer never comes.
        if let Ok(Acquired {
            pending,
            result: Some(result),
        }) = done
        {
            // An outcome without a receiver is dropped here, and a grant in it released.
            let granted = pending.attempt.settle(result);
            let granted = granted.map(|grant| {
                let ctx = Arc::clone(&self.ctx);
                Unclaimed::new(grant, move |grant| ctx.give_back(grant))
            });
            drop(pending.to.send(granted));
        }
    }
}

impl Attempt {
    pub(in crate::worker) fn span(&self) -> tracing::Span {
        let kind = self.ctx.facts.kind;
        tracing::debug_span!("lease.acquire", backend = kind.as_str())
    }

    /// Converts the outcome to a live grant, or to the error for the caller. After the end, all
    /// that was granted is given back.
    pub(in crate::worker) fn settle(
        &self,
        result: Result<Won, NotGranted>,
    ) -> Result<Arc<Grant>, NotGranted> {
        let ctx = &self.ctx;
        let now = ctx.now();
        let waited = now.since(self.begun);
        ctx.counters.wait.add(waited);
        let grant = match result {
            Ok(Won { terms, confirmed }) => {
                Arc::new(Grant::new(terms, confirmed, ctx.clock.clone(), now))
            }
            Err(error) => {
                self.not_acquired(&error);
                return Err(error);
            }
        };
        if grant.is_held_here() && !ctx.watch(grant.clone()) {
            if grant.give_back() {
                ctx.post(ctx.end_of(&grant));
            }
            return Err(AcquireError::Closed.into());
        }
        ctx.counters.acquired.add(1);
        ctx.tell(NoticeKind::Acquired, |notice| Notice {
            name: self.command.names.routing_key().cloned(),
            token: Some(grant.terms.token),
            elapsed: waited,
            ..notice
        });
        Ok(grant)
    }

    fn not_acquired(&self, error: &NotGranted) {
        let ctx = &self.ctx;
        let (counter, what) = match error {
            NotGranted::Refused(_) => (&ctx.counters.refused, NoticeKind::Refused),
            NotGranted::Failed(_) => (&ctx.counters.failed, NoticeKind::Unknown),
        };
        counter.add(1);
        ctx.tell(what, |notice| Notice {
            name: self.command.names.routing_key().cloned(),
            elapsed: ctx.now().since(self.begun),
            reason: error.to_string(),
            ..notice
        });
    }
}
