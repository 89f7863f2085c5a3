//! What the loop does with acquires: the first tries go together, all others have a task each.

use std::sync::Arc;

use tracing::Instrument;

use super::tries::{Answered, Tries};
use super::{Attempt, Tried, Won};
use crate::backend::Durability;
use crate::lease::{Grant, Lease, Terms};
use crate::limits::BATCH_MAX;
use crate::notice::What;
use crate::worker::inbox::{Ask, Recipient};
use crate::worker::release::millis;
use crate::worker::{Acquired, Worker};
use crate::{AcquireError, Notice, Renew, Wait};

/// An acquire, and who waits for it.
pub(in crate::worker) struct Asked {
    pub(super) attempt: Attempt,
    pub(super) to: Recipient<Result<Lease, AcquireError>>,
    wait: Wait,
    renew: Renew,
    pub(super) span: tracing::Span,
}

impl Worker {
    pub(in crate::worker) fn acquire(&mut self, ask: Ask) {
        if self.ending.is_some() {
            // It came in one piece with what ended it; its caller sees `Closed`.
            return;
        }
        let floor = self.floors.above(&ask.names, ask.floor);
        let command = ask.command(self.owners.draw(), floor);
        let kind = self.ctx.facts.kind;
        let asked = Asked {
            attempt: Attempt::new(self.ctx.clone(), command, ask.safety),
            to: ask.to,
            wait: ask.wait,
            renew: ask.renew,
            span: tracing::debug_span!("lease.acquire", backend = kind.as_str()),
        };
        if asked.is_plain() {
            self.tries.push(asked);
        } else {
            self.alone.push((asked, None));
        }
    }

    /// Sends the first tries of this turn, and lets the others go on.
    pub(in crate::worker) fn send_tries(&mut self) {
        while !self.tries.is_empty() {
            let size = self.tries.len().min(BATCH_MAX);
            let asked = self.tries.drain(..size).collect();
            let (tries, batch) = Tries::begin(&self.ctx, &self.tray, asked);
            // Not the span of one of them: they share the call.
            let kind = self.ctx.facts.kind.as_str();
            let span = tracing::debug_span!("lease.acquire", backend = kind, count = size);
            let run = tries.run(self.ctx.clone(), batch);
            self.trying.spawn(run.instrument(span));
        }
        for (asked, first) in std::mem::take(&mut self.alone) {
            self.go_on(asked, first);
        }
    }

    /// Takes the answer to a first try.
    pub(in crate::worker) fn tried(&mut self, answered: Answered) {
        let Answered {
            mut asked,
            sent,
            reply,
        } = answered;
        if self.ending.is_some() {
            // Dropped, which leaves its release behind; its caller sees `Closed`.
            return;
        }
        let span = asked.span.clone();
        let settled = span.in_scope(|| {
            let Some(reply) = reply else {
                asked.attempt.undo(sent);
                return Err(None);
            };
            let tried = asked.attempt.answered(sent, reply);
            settled(tried, asked.wait).map_err(Some)
        });
        match settled {
            Ok(result) => span.in_scope(|| self.ended(asked, result)),
            Err(first) => self.alone.push((asked, first)),
        }
    }

    /// Goes on with an acquire in a task of its own, after its first try if there was one.
    fn go_on(&mut self, asked: Asked, first: Option<Tried>) {
        let span = asked.span.clone();
        // Boxed: the task is moved several times before it begins.
        let mut asked = Box::new(asked);
        let flow = async move {
            let Asked {
                attempt, to, wait, ..
            } = &mut *asked;
            let result = tokio::select! {
                biased;
                result = attempt.acquire(*wait, first) => Some(result),
                () = to.reply.closed() => None,
            };
            Acquired { asked, result }
        };
        self.acquires.spawn(flow.instrument(span));
    }

    pub(in crate::worker) fn acquired_or_panicked(
        &mut self,
        done: Result<Acquired, tokio::task::JoinError>,
    ) {
        // A panic has been reported by the hook, and the caller sees that its answer never comes.
        if let Ok(Acquired {
            asked,
            result: Some(result),
        }) = done
        {
            self.ended(*asked, result);
        }
    }

    fn ended(&mut self, asked: Asked, result: Result<Won, AcquireError>) {
        if self.ending.is_some() {
            // Its caller sees `Closed`. What was granted goes the way of all that was held.
            if let Ok(won) = result {
                let grant = self.grant(&won, &asked);
                self.give_back(&grant);
            }
            return;
        }
        let waited = self.ctx.now().since(asked.attempt.begun);
        self.ctx.counters.wait_ms.add(millis(waited));
        let answer = match result {
            Ok(won) => Ok(self.guard(&won, &asked)),
            Err(error) => {
                self.not_acquired(&error, &asked);
                Err(error)
            }
        };
        // An answer that nobody takes is dropped here, and a guard in it released.
        drop(asked.to.reply.send(answer));
    }

    fn grant(&self, won: &Won, asked: &Asked) -> Grant {
        let token = won.token.with_tag(won.owner.tag());
        let attempt = &asked.attempt;
        let terms = Terms {
            names: attempt.command.names.clone(),
            owner: won.owner,
            token,
            fenced: self.ctx.fenced,
            safety: attempt.safety,
            renew: asked.renew,
            replicas: won.replicas,
            deletes: won.deletes,
            born: attempt.begun,
        };
        Grant::new(terms, won.confirmed, self.ctx.clock.clone())
    }

    fn guard(&mut self, won: &Won, asked: &Asked) -> Lease {
        let (grant, attempt) = (Arc::new(self.grant(won, asked)), &asked.attempt);
        self.watch(grant.clone());
        self.ctx.counters.acquired.add(1);
        self.ctx.tell(What::Acquired, |notice| Notice {
            name: attempt.command.names.home().cloned(),
            token: Some(grant.terms.token),
            elapsed: self.ctx.now().since(attempt.begun),
            ..notice
        });
        Lease::new(grant, asked.to.door.clone())
    }

    fn not_acquired(&mut self, error: &AcquireError, asked: &Asked) {
        let refused = matches!(
            error,
            AcquireError::Refused(_) | AcquireError::TimedOut { .. }
        );
        let (counter, what) = if refused {
            (&self.ctx.counters.refused, What::Refused)
        } else {
            (&self.ctx.counters.failed, What::Unknown)
        };
        counter.add(1);
        let attempt = &asked.attempt;
        self.ctx.tell(what, |notice| Notice {
            name: attempt.command.names.home().cloned(),
            elapsed: self.ctx.now().since(attempt.begun),
            reason: error.to_string(),
            ..notice
        });
    }
}

impl Asked {
    /// Whether its first try may go with others. A fair wait asks from the head of the line only, and
    /// a grant that waits for replicas has a limit of its own.
    fn is_plain(&self) -> bool {
        let Attempt { ctx, command, .. } = &self.attempt;
        // Who comes late stands in line behind those who wait already.
        let stands_in_line = self.wait != Wait::No && ctx.gate.is_contended(&command.names);
        !command.fair && command.durability == Durability::Primary && !stands_in_line
    }
}

/// The result, if no other try follows.
fn settled(tried: Tried, wait: Wait) -> Result<Result<Won, AcquireError>, Tried> {
    let again = match &tried {
        Tried::Won(_) | Tried::Hopeless(_) => false,
        Tried::Failed(AcquireError::Unknown { .. }) => true,
        Tried::Refused(_) | Tried::Failed(_) => wait != Wait::No,
    };
    if again {
        return Err(tried);
    }
    Ok(tried.into_result())
}
