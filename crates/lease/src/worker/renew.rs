//! Renewals and losses: acts on what [`super::live::Live`] finds due.

use std::sync::Arc;
use std::time::Duration;

use tracing::Instrument;

use super::ctx::Ctx;
use super::job::Why;
use super::live::{Due, Renewed, message};
use super::{Answer, Called, Worker};
use crate::backend::RenewReply;
use crate::grant::{Confirmed, Grant};
use crate::inbox::RenewalRecipient;
use crate::notice::NoticeKind;
use crate::{BackendError, BootTime, LostReason, Notice, RenewError, timing};

impl Worker {
    pub(super) fn act_on(&mut self, due: Due) {
        for grant in due.suspect {
            grant.notify_watchers();
            self.ctx.tell_of(NoticeKind::Suspect, &grant, String::new());
        }
        for grant in due.lost {
            self.lost(&grant, LostReason::Deadline);
        }
        for batch in due.renew {
            let ctx = self.ctx.clone();
            let span = tracing::debug_span!("lease.renew", count = batch.len());
            let call = async move {
                let shortest = batch.iter().map(|grant| grant.ttl()).min();
                let limit = timing::renew_timeout(shortest.unwrap_or_default());
                let asked = batch
                    .iter()
                    .map(|grant| (grant.clone(), automatic_ttl(grant)));
                Called::Renewed(send(&ctx, asked.collect(), limit).await)
            };
            self.calls.spawn(call.instrument(span));
        }
    }

    pub(super) fn renew_by_hand(&mut self, grant: Arc<Grant>, ttl: Duration, to: RenewalRecipient) {
        let ctx = self.ctx.clone();
        self.calls.spawn(async move {
            let limit = ctx.call_timeout;
            let mut answers = send(&ctx, vec![(grant, ttl)], limit).await;
            if let Some(answer) = answers.first_mut() {
                answer.to = Some(to);
            }
            Called::Renewed(answers)
        });
    }

    pub(super) fn renewed(&mut self, answers: Vec<Answer>) {
        for answer in answers {
            let grant = answer.grant;
            let try_again = timing::renew_again(grant.ttl(), self.ctx.draw());
            let (confirmed, reply) = (answer.confirmed, answer.reply);
            let mut table = self.ctx.table();
            let renewed = table.live.answered(&grant, confirmed, reply, try_again);
            drop(table);
            let result = self.renewal_ended(&grant, renewed);
            if let Some(to) = answer.to {
                // Fails when the caller no longer waits.
                drop(to.send(result));
            }
        }
    }

    fn renewal_ended(
        &mut self,
        grant: &Arc<Grant>,
        renewed: Renewed,
    ) -> Result<Duration, RenewError> {
        let ctx = &self.ctx;
        match renewed {
            Renewed::Live { recovered } => {
                ctx.counters.renewed.add(1);
                if recovered {
                    ctx.tell_of(NoticeKind::Recovered, grant, String::new());
                }
                if grant.is_newly_long() {
                    let why = "held for long, and no max_lifetime ends it";
                    tracing::warn!(name = ?grant.terms.names, why, "lease");
                    ctx.tell_of(NoticeKind::LongHeld, grant, why.to_owned());
                }
                Ok(grant.remaining())
            }
            Renewed::TooLate => {
                let reason = grant.lost();
                if reason.is_some() && grant.is_held_here() && !ctx.is_resumed_again(grant) {
                    // A late good answer revives nothing: what it kept alive is given back.
                    let job = ctx.job(grant, Why::Lost);
                    self.releases.push(job);
                }
                Err(RenewError::Lost(reason.unwrap_or(LostReason::Gone)))
            }
            Renewed::Lost(reason) => {
                self.lost(grant, reason);
                Err(RenewError::Lost(grant.lost().unwrap_or(reason)))
            }
            Renewed::Failed(error) => {
                ctx.counters.renew_failures.add(1);
                ctx.tell_of(NoticeKind::RenewFailed, grant, error.to_string());
                if let BackendError::Unknown(_) = error {
                    ctx.counters.unknown_renew.add(1);
                    return Err(RenewError::Unknown);
                }
                Err(RenewError::Unavailable(error))
            }
        }
    }

    fn lost(&mut self, grant: &Arc<Grant>, reason: LostReason) {
        let ended = grant.lose(reason);
        self.ctx.unwatch(grant);
        if let Some(reason) = ended {
            self.settle_loss(grant, reason);
        }
    }

    /// Reports a loss, and releases what the backend still keeps of the grant. A holder elsewhere is answered alone: it
    /// may ask again and again.
    pub(super) fn settle_loss(&mut self, grant: &Arc<Grant>, reason: LostReason) {
        self.ctx.unwatch(grant);
        if grant.is_held_here() {
            let job = self.ctx.job(grant, Why::Lost);
            self.releases.push(job);
            self.ctx.tell_loss(grant, reason);
        }
    }

    /// Ends all live grants as gone: after this they are not renewed or released.
    pub(super) fn abandon(&mut self) {
        let mut table = self.ctx.table();
        table.close();
        let held = table.live.drain();
        drop(table);
        for grant in held {
            if !grant.abandon() {
                continue;
            }
            self.ctx.counters.lost_gone.add(1);
            let why = "the lease thread has ended".to_owned();
            // How long it lasted for certain: the clock is not looked at.
            let sent = || grant.sent();
            self.ctx.tell_at(NoticeKind::Lost, &grant, sent, why);
        }
        self.ctx.counters.live.set(0);
        // Dropped without the lock: callers that wait for an outcome are woken.
        let left_behind = self.ctx.left_behind().take();
        drop(left_behind);
        if let Some(place) = &self.ctx.in_place {
            place.end();
        }
    }
}

impl Ctx {
    /// Counts and reports a loss.
    pub(super) fn tell_loss(&self, grant: &Grant, reason: LostReason) {
        let counters = &self.counters;
        let (counter, what) = match reason {
            LostReason::Deadline => (&counters.lost_deadline, NoticeKind::Lost),
            LostReason::Gone => (&counters.lost_gone, NoticeKind::Lost),
            LostReason::Taken { .. } => (&counters.lost_taken, NoticeKind::Lost),
            LostReason::CapReached => (&counters.lost_cap, NoticeKind::Lost),
            LostReason::Overtaken { .. } => (&counters.lost_overtaken, NoticeKind::Overtaken),
        };
        counter.add(1);
        tracing::warn!(names = %grant.terms.names, %reason, "lease lost");
        self.tell_of(what, grant, reason.to_string());
    }

    fn tell_of(&self, what: NoticeKind, grant: &Grant, reason: String) {
        self.tell_at(what, grant, || grant.now(), reason);
    }

    /// Sends a notice with the age of the grant at the instant that `at` returns. `at` is called
    /// only if there has been a subscription.
    fn tell_at(
        &self,
        what: NoticeKind,
        grant: &Grant,
        at: impl FnOnce() -> BootTime,
        reason: String,
    ) {
        self.tell(what, |notice| Notice {
            name: grant.terms.names.routing_key().cloned(),
            token: Some(grant.terms.token),
            elapsed: at().since(grant.terms.born),
            reason,
            ..notice
        });
    }
}

/// Returns the ttl an automatic renewal asks for; zero, which only asks, for manual renewals.
fn automatic_ttl(grant: &Grant) -> Duration {
    if grant.terms.manual {
        Duration::ZERO
    } else {
        grant.ttl()
    }
}

pub(super) async fn send(
    ctx: &Ctx,
    asked: Vec<(Arc<Grant>, Duration)>,
    limit: Duration,
) -> Vec<Answer> {
    let message = |(grant, ttl): &(Arc<Grant>, Duration)| message(grant, *ttl);
    let batch: Vec<_> = asked.iter().map(message).collect();
    // Read on the thread that sends, before anything can be sent (LT2).
    let sent = ctx.now();
    let replies = ctx.within(limit, ctx.backend.renew(&batch)).await;
    let mut replies = replies.unwrap_or_default().into_iter();
    let silence = || RenewReply::Failed(BackendError::unanswered(limit));
    let answer = |(grant, asked)| Answer {
        grant,
        confirmed: Confirmed {
            sent,
            granted: Duration::ZERO,
            asked,
        },
        reply: replies.next().unwrap_or_else(silence),
        to: None,
    };
    asked.into_iter().map(answer).collect()
}
