//! Single calls to the backend: read the holder of a name, resume a ticket, break a lease.

use std::sync::Arc;

use super::ctx::{Ctx, silence};
use super::job::Why;
use super::live::message;
use super::{Called, Worker, release};
use crate::backend::{Holder, Names, Release, ReleaseReply, RenewReply};
use crate::error::NotGranted;
use crate::grant::{Confirmed, Deletes, Grant, Terms, TicketTerms, Whereabouts};
use crate::inbox::{Recipient, Unclaimed};
use crate::{AcquireError, BackendError, FencingToken, Refusal, ReleaseOutcome, timing};

/// A ticket, and the answer to its renewal.
pub(super) struct Resumed {
    grant: Arc<Grant>,
    to: Recipient,
    confirmed: Confirmed,
    reply: RenewReply,
}

impl Worker {
    /// Verifies and renews a ticket by owner and token in one step.
    pub(super) fn resume(&mut self, ticket: TicketTerms, to: Recipient) {
        let ctx = self.ctx.clone();
        let terms = Terms {
            names: ticket.names,
            owner: ticket.owner,
            token: ticket.token,
            fenced: ctx.fenced,
            safety: ticket.safety,
            manual: ticket.manual,
            endless: ticket.endless,
            replicas: None,
            deletes: Deletes::Once,
            born: ctx.now(),
            again: true,
            holder: Whereabouts::Here,
        };
        let ttl = ticket.ttl;
        self.calls.spawn(async move {
            let sent = ctx.now();
            let confirmed = Confirmed {
                sent,
                granted: ttl,
                asked: ttl,
            };
            let grant = Arc::new(Grant::new(terms, confirmed, ctx.clock.clone(), sent));
            let batch = [message(&grant, ttl)];
            let replies = ctx
                .within(ctx.call_timeout, ctx.backend.renew(&batch))
                .await;
            let reply = replies.and_then(|mut replies| replies.pop());
            let silence = || RenewReply::Failed(silence(ctx.call_timeout));
            let reply = reply.unwrap_or_else(silence);
            Called::Resumed(Box::new(Resumed {
                grant,
                to,
                confirmed,
                reply,
            }))
        });
    }

    pub(super) fn resumed(&mut self, resumed: Resumed) {
        let Resumed {
            grant,
            to,
            confirmed,
            reply,
        } = resumed;
        if to.is_closed() {
            // The ticket stays good, and may have been resumed by another call meanwhile.
            return;
        }
        let answer = match reply {
            RenewReply::Renewed { granted } => self.take_over(
                &grant,
                Confirmed {
                    granted,
                    ..confirmed
                },
            ),
            RenewReply::Taken { .. } | RenewReply::Gone | RenewReply::Capped => Err(ended()),
            RenewReply::Failed(BackendError::Unknown(_)) => Err(AcquireError::Unknown {
                retry_after: confirmed.asked,
            }
            .into()),
            RenewReply::Failed(error) => Err(AcquireError::Unavailable(error).into()),
        };
        // A grant without a receiver is dropped here, and left to its ticket.
        drop(to.send(answer));
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
        Ok(Unclaimed::new(grant, move |grant| ctx.unwatch(&grant)))
    }
}

impl Ctx {
    /// Reads the holder of one name.
    pub(crate) async fn holder(&self, names: &Names) -> Result<Option<Holder>, BackendError> {
        let Some(name) = names.as_slice().first() else {
            return Ok(None);
        };
        let call = self.backend.inspect(names.group(), name);
        let answer = self.within(self.call_timeout, call).await;
        answer.unwrap_or_else(|| Err(silence(self.call_timeout)))
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
        let silence = || ReleaseReply::Failed(silence(self.call_timeout));
        reply.unwrap_or_else(silence).outcome()
    }
}

/// Builds the outcome for a ticket whose grant has ended.
fn ended() -> NotGranted {
    NotGranted::Refused(Refusal::default())
}
