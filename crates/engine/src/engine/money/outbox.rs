//! The outbox: carries out at the provider the effects that commits have left, those of one booking
//! one after the other, each until it is done. No caller waits for it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use soldonce_clock::BootTime;
use soldonce_core::{Amount, Booking, BookingId, Effect, PaymentState, Rejection, Span, Timestamp};
use tokio::task::{self, JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

use super::{Engine, EngineError, StepError, intent_id, is_final, key};
use crate::ledger::OpenEffect;
use crate::limits::{
    OUTBOX_ALERT_TRIES, OUTBOX_AT_ONCE_MAX, OUTBOX_AUTHORISE_AFTER_MS, OUTBOX_EVERY_MS,
    OUTBOX_KEEP_MS, OUTBOX_PAUSE_MS, OUTBOX_PAUSE_MS_MAX,
};
use crate::payment::{Intent, IntentId, ProviderError};
use crate::trouble::Trouble;

/// The failed attempts of an effect, and when it is due again.
#[derive(Clone, Copy)]
struct Tries {
    effect: Effect,
    failed: u32,
    /// The number of the refund's next idempotency key.
    round: u32,
    next: BootTime,
}

/// Carries out effects until `shutdown`.
///
/// # Cancel safety
/// Dropped, calls under way may still be carried out by the provider; they are asked again with the
/// same keys by the next run.
pub async fn run_outbox(engine: Engine, shutdown: CancellationToken) {
    let clock = Arc::clone(&engine.world().clock);
    let mut outbox = Outbox {
        engine,
        tries: BTreeMap::new(),
        unread: Trouble::default(),
        under_way: BTreeMap::new(),
        calls: JoinSet::new(),
    };
    let mut next = clock.boot();
    loop {
        tokio::select! {
            () = shutdown.cancelled() => return,
            Some(ended) = outbox.calls.join_next() => outbox.note(ended),
            () = clock.sleep_until(next) => {
                if shutdown.run_until_cancelled(outbox.begin_due()).await.is_none() {
                    return;
                }
                next = clock.boot().plus_ms(OUTBOX_EVERY_MS);
            }
        }
    }
}

/// The outcome of one attempt, with the round of the next one.
type AttemptResult = (Effect, u32, Result<(), StepError>);

/// The running outbox. A slow call does not delay others: rounds go on while it is under way.
struct Outbox {
    engine: Engine,
    tries: BTreeMap<BookingId, Tries>,
    /// Whether the ledger cannot be read, for the log.
    unread: Trouble,
    under_way: BTreeMap<BookingId, (task::Id, Effect)>,
    calls: JoinSet<AttemptResult>,
}

impl Outbox {
    /// Starts an attempt of each effect that is due.
    async fn begin_due(&mut self) {
        let keep = Span::from_ms(OUTBOX_KEEP_MS);
        let ledger = &self.engine.parts.ledger;
        // Those that wait or are under way must not hide the others behind them.
        let known = self.tries.len().saturating_add(self.under_way.len());
        let limit = known.saturating_add(OUTBOX_AT_ONCE_MAX);
        let open = match ledger.take_effects(keep, limit).await {
            Ok(open) => open,
            Err(error) => {
                if self.unread.lasts(self.engine.world().clock.boot()) {
                    tracing::warn!(%error, "the outbox cannot be read");
                }
                return;
            }
        };
        if self.unread.ends() {
            tracing::info!("the outbox can be read again");
        }
        let count = |of: usize| i64::try_from(of).unwrap_or(i64::MAX);
        let metrics = &self.engine.parts.metrics;
        metrics.outbox_pending.set(count(open.len()));
        metrics.outbox_stuck.set(count(self.stuck()));
        let now = self.engine.now();
        let left: BTreeMap<_, _> = open.iter().map(|of| (of.effect.booking(), of)).collect();
        self.tries
            .retain(|id, of| left.get(id).is_some_and(|open| open.effect == of.effect));
        for open in open.iter().filter(|open| is_due(open, now)) {
            self.begin(open.effect);
        }
    }

    fn stuck(&self) -> usize {
        let is_stuck = |of: &&Tries| of.failed >= OUTBOX_ALERT_TRIES;
        self.tries.values().filter(is_stuck).count()
    }

    fn begin(&mut self, effect: Effect) {
        let id = effect.booking();
        let of = self.tries.get(&id);
        let waits = of.is_some_and(|of| of.next > self.engine.world().clock.boot());
        let is_full = self.under_way.len() >= OUTBOX_AT_ONCE_MAX;
        if waits || is_full || self.under_way.contains_key(&id) {
            return;
        }
        let mut round = of.map_or(0, |of| of.round);
        let engine = self.engine.clone();
        let call = self.calls.spawn(async move {
            let done = engine.carry_out(effect, &mut round).await;
            (effect, round, done)
        });
        self.under_way.insert(id, (call.id(), effect));
    }

    fn note(&mut self, ended: Result<AttemptResult, JoinError>) {
        let (effect, round, done) = match ended {
            Ok((effect, round, done)) => (effect, Some(round), done.map_err(Some)),
            Err(error) => {
                let mut calls = self.under_way.values();
                let Some((_, effect)) = calls.find(|(call, _)| *call == error.id()) else {
                    return;
                };
                tracing::error!(?effect, %error, "a step of the outbox ended by a panic");
                (*effect, None, Err(None))
            }
        };
        let id = effect.booking();
        self.under_way.remove(&id);
        let Err(error) = done else {
            self.tries.remove(&id);
            return;
        };
        let before = self.tries.get(&id);
        let failed = before.map_or(0, |of| of.failed).saturating_add(1);
        let round = round.unwrap_or_else(|| before.map_or(0, |of| of.round));
        let pause = pause(failed).max(error.map_or(Duration::ZERO, |error| {
            complain(effect, failed, &error);
            asked_pause(&error)
        }));
        let next = self.engine.world().clock.boot().plus(pause);
        let of = Tries {
            effect,
            failed,
            round,
            next,
        };
        self.tries.insert(id, of);
    }
}

impl Engine {
    /// Carries out an effect at the provider, and reports the outcome to the ledger. A refund is
    /// asked for with the key of `round`, which is increased when that was refused.
    pub(super) async fn carry_out(&self, effect: Effect, round: &mut u32) -> Result<(), StepError> {
        let id = effect.booking();
        if let Effect::Authorise(_) = effect {
            return match self.authorise(id).await {
                // It is known already, or it will never be: both are written down.
                Ok(_) => self.finish_effect(id, effect).await,
                Err(StepError::Provider(error)) if is_final(&error) => Ok(()),
                Err(error) => Err(error),
            };
        }
        let booking = self.booking_for_step(id).await?;
        let is_open = !is_settled_elsewhere(effect, &booking);
        let Some(intent) = intent_id(&booking)?.filter(|_| is_open) else {
            // There never was a payment that could be taken or given up, or the provider is not asked any more.
            return self.finish_effect(id, effect).await;
        };
        if let Effect::CancelIntent(_) = effect
            && self.take_payment_in_time(&booking, &intent).await?
        {
            // What is left to be done of it is in the outbox.
            return Ok(());
        }
        let known = match effect {
            Effect::Capture(_) => self.capture(id, &intent).await?,
            Effect::Void(_) | Effect::CancelIntent(_) => self.give_up(id, &intent).await?,
            Effect::Refund { total, .. } => self.give_back(&booking, &intent, total, round).await?,
            Effect::Authorise(_) => return Ok(()),
        };
        let is_done = is_done(effect, &booking, &known);
        self.tell(id, &known, is_done.then_some(effect), None)
            .await?;
        if is_done {
            return Ok(());
        }
        Err(StepError::Odd(format!(
            "{effect:?}: the provider says `{}`, {} taken, {} given back",
            known.state.as_str(),
            known.captured.minor(),
            known.refunded.minor()
        )))
    }

    async fn capture(&self, id: BookingId, intent: &IntentId) -> Result<Intent, StepError> {
        let key = key(id, "capture")?;
        let done = self.provider_or_err()?.capture(intent, &key).await;
        self.or_retrieved("capture", intent, done).await
    }

    /// Tells whether an intent that is to be cancelled was paid without the ledger knowing: then
    /// the ledger records it as it does for a notice, and decides again. What is paid before an
    /// intent is cancelled was paid in time, maybe with all of its notices lost.
    async fn take_payment_in_time(
        &self,
        booking: &Booking,
        intent: &IntentId,
    ) -> Result<bool, StepError> {
        let told = self.provider_or_err()?.retrieve(intent).await?;
        let known = booking.payment.as_deref().map(|payment| payment.state);
        let is_news = known.is_some_and(|known| known.may_become(told.state));
        if !told.state.has_money() || !is_news {
            return Ok(false);
        }
        match self.tell(booking.id, &told, None, None).await {
            Ok(()) => Ok(true),
            // Of a wrong amount it buys nothing.
            Err(StepError::Engine(EngineError::Rejected(Rejection::PaymentMismatch(_)))) => {
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    async fn give_up(&self, id: BookingId, intent: &IntentId) -> Result<Intent, StepError> {
        let key = key(id, "cancel")?;
        let done = self.provider_or_err()?.cancel(intent, &key).await;
        self.or_retrieved("cancel", intent, done).await
    }

    /// Refunds what is missing to `total`, if anything is.
    async fn give_back(
        &self,
        booking: &Booking,
        intent: &IntentId,
        total: Amount,
        round: &mut u32,
    ) -> Result<Intent, StepError> {
        let known = self.provider_or_err()?.retrieve(intent).await?;
        let owed = owed(total, booking, &known);
        let missing = owed.checked_sub(known.refunded).unwrap_or_default();
        if missing <= Amount::ZERO || was_never_taken(&known) {
            return Ok(known);
        }
        // A refund that failed for good, then or later, needs another key; one of unknown outcome the same, so only
        // a refusal moves on. A server that knows of no round begins with the first: those that were refused are
        // refused again until it comes to the one whose outcome is unknown, which it cannot pass.
        let (total, bounced) = (total.minor(), known.bounced.minor());
        let key = key(booking.id, &format!("refund-{total}-{bounced}-{round}"))?;
        let done = self.provider_or_err()?.refund(intent, missing, &key).await;
        if done.as_ref().is_err_and(is_final) {
            *round = round.saturating_add(1);
        }
        self.or_retrieved("refund", intent, done).await
    }

    /// Counts a step and returns its intent; after a refusal reads it: another server may have done the step already.
    async fn or_retrieved(
        &self,
        step: &'static str,
        intent: &IntentId,
        done: Result<Intent, ProviderError>,
    ) -> Result<Intent, StepError> {
        self.count(step, done.as_ref().err());
        match done {
            Err(error) if is_final(&error) => {
                tracing::info!(%intent, %error, "the provider refused a step");
                Ok(self.provider_or_err()?.retrieve(intent).await?)
            }
            done => Ok(done?),
        }
    }
}

/// Tells whether an effect may be carried out now. A recent intent is left to the caller that asked
/// for it and waits for it. An effect that is later than now was written before the clock was set
/// back.
fn is_due(open: &OpenEffect, now: Timestamp) -> bool {
    let is_recent = open.at <= now && now < open.at.plus(Span::from_ms(OUTBOX_AUTHORISE_AFTER_MS));
    !matches!(open.effect, Effect::Authorise(_)) || !is_recent
}

/// Tells whether the provider has nothing more to do for an effect.
fn is_done(effect: Effect, booking: &Booking, intent: &Intent) -> bool {
    match effect {
        Effect::Authorise(_) => true,
        // Taken, or it never can be: the booking says so.
        Effect::Capture(_) => intent.state != PaymentState::Authorised,
        // Given up, or taken after all: then the report has asked for a refund.
        Effect::Void(_) | Effect::CancelIntent(_) => {
            !intent.may_be_paid && intent.state != PaymentState::Authorised
        }
        Effect::Refund { total, .. } => {
            intent.refunded >= owed(total, booking, intent) || was_never_taken(intent)
        }
    }
}

/// Tells whether nothing of a refund is left to the provider, because staff settled the rest elsewhere.
fn is_settled_elsewhere(effect: Effect, booking: &Booking) -> bool {
    let Effect::Refund { total, .. } = effect else {
        return false;
    };
    booking.payment.as_deref().is_some_and(|payment| {
        payment.elsewhere > Amount::ZERO && payment.owed_of(total) == Amount::ZERO
    })
}

/// Returns how much of `total` can go back by the provider: no more than was taken, once it was, and without
/// what staff settled elsewhere.
fn owed(total: Amount, booking: &Booking, intent: &Intent) -> Amount {
    let all = if intent.captured == Amount::ZERO {
        total
    } else {
        total.min(intent.captured)
    };
    let payment = booking.payment.as_deref();
    all.less(payment.map_or(Amount::ZERO, |payment| payment.elsewhere))
}

/// Tells whether the money was given up, or its reservation ran out, before any of it was taken:
/// then nothing can go back.
fn was_never_taken(intent: &Intent) -> bool {
    intent.captured == Amount::ZERO
        && matches!(intent.state, PaymentState::Voided | PaymentState::Lapsed)
}

fn pause(failed: u32) -> Duration {
    let doubled = OUTBOX_PAUSE_MS.saturating_mul(1 << failed.min(16));
    Duration::from_millis(doubled.min(OUTBOX_PAUSE_MS_MAX))
}

/// Returns how long the provider asks to wait, at most the longest pause.
fn asked_pause(error: &StepError) -> Duration {
    let asked = match error {
        StepError::Provider(ProviderError::Busy { retry_after }) => retry_after.map(Span::ms),
        StepError::Provider(_) | StepError::Engine(_) | StepError::Odd(_) => None,
    };
    Duration::from_millis(asked.unwrap_or_default().min(OUTBOX_PAUSE_MS_MAX))
}

fn complain(effect: Effect, failed: u32, error: &StepError) {
    if failed >= OUTBOX_ALERT_TRIES {
        tracing::error!(?effect, failed, %error, "an effect is stuck: look at the provider");
    } else {
        tracing::warn!(?effect, failed, %error, "an effect is not done yet");
    }
}
