//! Acquires as the loop sees them: each runs in a task of its own until it has a result.

use std::sync::Arc;

use tracing::Instrument;

use super::{Attempt, Won};
use crate::grant::{Grant, Terms};
use crate::inbox::{AcquireParams, Recipient, Unclaimed};
use crate::notice::NoticeKind;
use crate::timing::millis;
use crate::worker::{Acquired, Worker};
use crate::{AcquireError, Notice, Renew, Wait};

/// An acquire, and the caller that waits for it.
pub(in crate::worker) struct PendingAcquire {
    pub(super) attempt: Attempt,
    pub(super) to: Recipient,
    wait: Wait,
    renew: Renew,
    pub(super) span: tracing::Span,
}

impl Worker {
    pub(in crate::worker) fn acquire(&mut self, params: AcquireParams) {
        if self.ending.is_some() {
            // It came in one piece with what ended it; its caller sees `Closed`.
            return;
        }
        let min_token = self.floors.above(&params.names, params.floor);
        let command = params.command(self.owners.draw(), min_token);
        let kind = self.ctx.facts.kind;
        self.starting.push(PendingAcquire {
            attempt: Attempt::new(self.ctx.clone(), command, params.safety),
            to: params.to,
            wait: params.wait,
            renew: params.renew,
            span: tracing::debug_span!("lease.acquire", backend = kind.as_str()),
        });
    }

    /// Starts the acquires of this turn, each in a task of its own.
    pub(in crate::worker) fn start_acquires(&mut self) {
        for pending in self.starting.drain(..) {
            let span = pending.span.clone();
            // Boxed: the task is moved several times before it begins.
            let mut pending = Box::new(pending);
            let flow = async move {
                let PendingAcquire {
                    attempt, to, wait, ..
                } = &mut *pending;
                let result = tokio::select! {
                    biased;
                    result = attempt.acquire(*wait) => Some(result),
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
            self.ended(*pending, result);
        }
    }

    fn ended(&mut self, pending: PendingAcquire, result: Result<Won, AcquireError>) {
        if self.ending.is_some() {
            // Its caller sees `Closed`. What was granted goes the way of all that was held.
            if let Ok(won) = result {
                let grant = self.grant(&won, &pending);
                self.give_back(&grant);
            }
            return;
        }
        let waited = self.ctx.now().since(pending.attempt.begun);
        self.ctx.counters.wait_ms.add(millis(waited));
        let answer = match result {
            Ok(won) => Ok(self.granted(&won, &pending)),
            Err(error) => {
                self.not_acquired(&error, &pending);
                Err(error)
            }
        };
        // An outcome without a receiver is dropped here, and a grant in it released.
        drop(pending.to.send(answer));
    }

    fn grant(&self, won: &Won, pending: &PendingAcquire) -> Grant {
        let token = won.token.with_tag(won.owner.tag());
        let attempt = &pending.attempt;
        let terms = Terms {
            names: attempt.command.names.clone(),
            owner: won.owner,
            token,
            fenced: self.ctx.fenced,
            safety: attempt.safety,
            renew: pending.renew,
            replicas: won.replicas,
            deletes: won.deletes,
            born: attempt.begun,
        };
        Grant::new(terms, won.confirmed, self.ctx.clock.clone())
    }

    fn granted(&mut self, won: &Won, pending: &PendingAcquire) -> Unclaimed {
        let (grant, attempt) = (Arc::new(self.grant(won, pending)), &pending.attempt);
        self.watch(grant.clone());
        self.ctx.counters.acquired.add(1);
        self.ctx.tell(NoticeKind::Acquired, |notice| Notice {
            name: attempt.command.names.routing_key().cloned(),
            token: Some(grant.terms.token),
            elapsed: self.ctx.now().since(attempt.begun),
            ..notice
        });
        Unclaimed::new(grant, &self.ctx.inbox)
    }

    fn not_acquired(&mut self, error: &AcquireError, pending: &PendingAcquire) {
        let refused = matches!(
            error,
            AcquireError::Refused(_) | AcquireError::TimedOut { .. }
        );
        let (counter, what) = if refused {
            (&self.ctx.counters.refused, NoticeKind::Refused)
        } else {
            (&self.ctx.counters.failed, NoticeKind::Unknown)
        };
        counter.add(1);
        let attempt = &pending.attempt;
        self.ctx.tell(what, |notice| Notice {
            name: attempt.command.names.routing_key().cloned(),
            elapsed: self.ctx.now().since(attempt.begun),
            reason: error.to_string(),
            ..notice
        });
    }
}
