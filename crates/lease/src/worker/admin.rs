//! Single calls to the backend: read the holder of a name, resume a ticket, break a lease.

use std::sync::Arc;

use super::ctx::Ctx;
use super::job::Why;
use super::{Answer, Called, Worker, release, renew};
use crate::backend::{Holder, Names, Release, ReleaseReply, RenewReply};
use crate::error::NotGranted;
use crate::grant::{Confirmed, Grant, LeaseTicket, Terms, Whereabouts};
use crate::inbox::{Recipient, Unclaimed};
use crate::{AcquireError, BackendError, FencingToken, Refusal, ReleaseOutcome, timing};

impl Worker {
    /// Verifies and renews a ticket by owner and token in one step.
    pub(super) fn resume(&mut self, ticket: LeaseTicket, to: Recipient) {
        let (ctx, ttl) = (self.ctx.clone(), ticket.ttl);
        let grant = Arc::new(ctx.claimed(ticket, Whereabouts::Here));
        self.calls.spawn(async move {
            let mut answers = renew::send(&ctx, vec![(grant, ttl)], ctx.call_timeout).await;
            Called::Resumed(answers.pop(), to)
        });
    }

    pub(super) fn resumed(&mut self, answer: Option<Answer>, to: Recipient) {
        let Some(answer) = answer else {
            return;
        };
        if to.is_closed() {
            // The ticket stays good, and may have been resumed by another call meanwhile.
            return;
        }
        let mut confirmed = answer.confirmed;
        let resumed = match answer.reply {
            RenewReply::Renewed { granted } => {
                confirmed.granted = granted;
                self.take_over(&answer.grant, confirmed)
            }
            RenewReply::Taken { .. } | RenewReply::Gone | RenewReply::Capped => Err(ended()),
            RenewReply::Failed(BackendError::Unknown(_)) => Err(AcquireError::Unknown {
                retry_after: confirmed.asked,
            }
            .into()),
            RenewReply::Failed(error) => Err(AcquireError::Unavailable(error).into()),
        };
        // A grant without a receiver is dropped here, and left to its ticket.
        drop(to.send(resumed));
    }

    fn take_over(&mut self, grant: &Grant, confirmed: Confirmed) -> Result<Unclaimed, NotGranted> {
        let now = self.ctx.now();
        let deadline = timing::deadline(confirmed.sent, confirmed.granted, grant.terms.safety);
        let grant = Grant::new(grant.terms.clone(), confirmed, self.ctx.clock.clone(), now);
        if now >= deadline {
            let job = self.ctx.job(&grant, Why::Lost);
            self.releases.push(job);
            return Err(ended());
        }
        let grant = Arc::new(grant);
        if !self.ctx.watch(grant.clone()) {
            return Err(AcquireError::Closed.into());
        }
        // Not released: its ticket is good until its ttl ends.
        let ctx = Arc::clone(&self.ctx);
        Ok(Unclaimed::new(grant, move |grant| {
            ctx.unwatch(&grant);
        }))
    }
}

impl Ctx {
    /// Builds the grant that a holder claims to have, as if it had just been confirmed for its ttl.
    pub(crate) fn claimed(&self, claim: LeaseTicket, holder: Whereabouts) -> Grant {
        let now = self.now();
        let confirmed = Confirmed {
            sent: now,
            granted: claim.ttl,
            asked: claim.ttl,
        };
        let terms = Terms {
            names: claim.names,
            owner: claim.owner,
            token: claim.token,
            fenced: self.fenced,
            safety: claim.safety,
            manual: claim.manual,
            endless: claim.endless,
            replicas: None,
            in_doubt: false,
            born: now,
            again: true,
            holder,
        };
        Grant::new(terms, confirmed, self.clock.clone(), now)
    }

    pub(crate) async fn holder(&self, names: &Names) -> Result<Option<Holder>, BackendError> {
        let Some(name) = names.as_slice().first() else {
            return Ok(None);
        };
        let call = self.backend.inspect(names.group(), name);
        let answer = self.within(self.call_timeout, call).await;
        answer.unwrap_or_else(|| Err(BackendError::unanswered(self.call_timeout)))
    }

    /// Releases one name by its holder's own owner and the exact token that was read: a holder that took
    /// the name since then keeps it.
    pub(crate) async fn break_lease(
        &self,
        names: Names,
        expect: FencingToken,
    ) -> Result<ReleaseOutcome, BackendError> {
        let Some(holder) = self.holder(&names).await? else {
            return Ok(ReleaseOutcome::AlreadyGone);
        };
        if holder.token.number() != expect.number() {
            return Ok(ReleaseOutcome::TakenBy(holder.token));
        }
        let batch = [Release {
            names,
            owner: holder.owner,
            token: Some(holder.token),
            waiter: None,
        }];
        let reply = release::reply(self, &*self.backend, &batch);
        let reply = self.within(self.call_timeout, reply).await;
        let silence = || ReleaseReply::Failed(BackendError::unanswered(self.call_timeout));
        reply.unwrap_or_else(silence).outcome()
    }
}

/// Builds the outcome for a ticket whose grant has ended.
fn ended() -> NotGranted {
    NotGranted::Refused(Refusal::default())
}
