//! The outbox: carries out at the provider what commits have left to be done, the effects of one
//! booking one after the other, each until it is done. Nobody waits for it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use soldonce_core::{Amount, BookingId, Effect, PaymentState, Span, Timestamp};
use soldonce_lease::BootTime;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::{Engine, StepError, intent_id, is_final, key};
use crate::ledger::OpenEffect;
use crate::limits::{
    OUTBOX_ALERT_TRIES, OUTBOX_AT_ONCE_MAX, OUTBOX_AUTHORISE_AFTER_MS, OUTBOX_EVERY_MS,
    OUTBOX_KEEP_MS, OUTBOX_PAUSE_MS, OUTBOX_PAUSE_MS_MAX,
};
use crate::payment::{Intent, IntentId, ProviderError};

/// How often an effect was tried in vain, and when it is due again.
#[derive(Clone, Copy)]
struct Tries {
    effect: Effect,
    failed: u32,
    next: BootTime,
}

/// Carries out effects until `shutdown`.
///
/// # Cancel safety
/// Dropped, calls under way may still be carried out by the provider; they are asked again with the
/// same keys by whoever runs this next.
pub async fn run_outbox(engine: Engine, shutdown: CancellationToken) {
    let clock = Arc::clone(&engine.world().clock);
    let mut tries: BTreeMap<BookingId, Tries> = BTreeMap::new();
    loop {
        let next = clock.boot().plus(Duration::from_millis(OUTBOX_EVERY_MS));
        let wait = shutdown.run_until_cancelled(clock.sleep_until(next));
        if wait.await.is_none() {
            return;
        }
        let round = engine.empty_outbox(&mut tries);
        if shutdown.run_until_cancelled(round).await.is_none() {
            return;
        }
    }
}

impl Engine {
    /// Tries once each effect that is due.
    async fn empty_outbox(&self, tries: &mut BTreeMap<BookingId, Tries>) {
        let keep = Span::from_ms(OUTBOX_KEEP_MS);
        let ledger = &self.parts.ledger;
        let open = match ledger.take_effects(keep, OUTBOX_AT_ONCE_MAX).await {
            Ok(open) => open,
            Err(error) => {
                tracing::warn!(%error, "the outbox cannot be read");
                return;
            }
        };
        self.note_open(&open);
        let (now, clock) = (self.now(), Arc::clone(&self.world().clock));
        tries.retain(|_, of| open.iter().any(|open| open.effect == of.effect));
        let mut running = JoinSet::new();
        for open in open {
            let of = tries.get(&open.effect.booking());
            if !is_due(&open, now) || of.is_some_and(|of| of.next > clock.boot()) {
                continue;
            }
            let failed = of.map_or(0, |of| of.failed);
            let engine = self.clone();
            running.spawn(async move {
                let done = engine.carry_out(open.effect, failed).await;
                (open.effect, failed, done)
            });
        }
        while let Some(ended) = running.join_next().await {
            let Ok((effect, failed, done)) = ended else {
                tracing::error!("a step of the outbox ended by a panic");
                continue;
            };
            let Err(error) = done else {
                tries.remove(&effect.booking());
                continue;
            };
            let failed = failed.saturating_add(1);
            complain(effect, failed, &error);
            let next = clock.boot().plus(pause(failed));
            let of = Tries {
                effect,
                failed,
                next,
            };
            tries.insert(effect.booking(), of);
        }
    }

    fn note_open(&self, open: &[OpenEffect]) {
        let count = i64::try_from(open.len()).unwrap_or(i64::MAX);
        self.parts.metrics.outbox_pending.set(count);
    }

    /// Does what an effect says, and has the ledger take note of what came of it.
    pub(super) async fn carry_out(&self, effect: Effect, failed: u32) -> Result<(), StepError> {
        let id = effect.booking();
        if let Effect::Authorise(_) = effect {
            return match self.authorise(id).await {
                // It is known already, or it will never be: both are written down.
                Ok(_) => self.settle(id, effect).await,
                Err(StepError::Provider(error)) if is_final(&error) => Ok(()),
                Err(error) => Err(error),
            };
        }
        let booking = self.booking_for_step(id).await?;
        let Some(intent) = intent_id(&booking)? else {
            // There never was a payment that could be taken or given up.
            return self.settle(id, effect).await;
        };
        let known = match effect {
            Effect::Capture(_) => self.capture(id, &intent).await?,
            Effect::Void(_) | Effect::CancelIntent(_) => self.give_up(id, &intent).await?,
            Effect::Refund { total, .. } => self.give_back(id, &intent, total, failed).await?,
            Effect::Authorise(_) => return Ok(()),
        };
        let is_done = is_done(effect, &known);
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
        let done = self.cashier()?.capture(intent, &key).await;
        self.count("capture", done.as_ref().err());
        self.or_retrieved(intent, done).await
    }

    async fn give_up(&self, id: BookingId, intent: &IntentId) -> Result<Intent, StepError> {
        let key = key(id, "cancel")?;
        let done = self.cashier()?.cancel(intent, &key).await;
        self.count("cancel", done.as_ref().err());
        self.or_retrieved(intent, done).await
    }

    /// Gives back what is missing to `total`, if anything is.
    async fn give_back(
        &self,
        id: BookingId,
        intent: &IntentId,
        total: Amount,
        failed: u32,
    ) -> Result<Intent, StepError> {
        let known = self.cashier()?.retrieve(intent).await?;
        let missing = total.checked_sub(known.refunded).unwrap_or_default();
        if missing <= Amount::ZERO {
            return Ok(known);
        }
        // A refund that failed for good needs another key, one of unknown outcome the same.
        let mut round = 0;
        loop {
            let key = key(id, &format!("refund-{}-{round}", total.minor()))?;
            let done = self.cashier()?.refund(intent, missing, &key).await;
            self.count("refund", done.as_ref().err());
            match done {
                Err(error) if is_final(&error) && round < failed => round += 1,
                done => return self.or_retrieved(intent, done).await,
            }
        }
    }

    /// What a refused step finds: somebody else may have taken it already.
    async fn or_retrieved(
        &self,
        intent: &IntentId,
        done: Result<Intent, ProviderError>,
    ) -> Result<Intent, StepError> {
        match done {
            Err(error) if is_final(&error) => {
                tracing::info!(%intent, %error, "the provider refused a step");
                Ok(self.cashier()?.retrieve(intent).await?)
            }
            done => Ok(done?),
        }
    }
}

/// Whoever asked for the intent is at it just now, and waits for it.
fn is_due(open: &OpenEffect, now: Timestamp) -> bool {
    let after = Span::from_ms(OUTBOX_AUTHORISE_AFTER_MS);
    !matches!(open.effect, Effect::Authorise(_)) || open.at.plus(after) <= now
}

/// Whether the provider has nothing more to do for an effect.
fn is_done(effect: Effect, intent: &Intent) -> bool {
    match effect {
        Effect::Authorise(_) => true,
        // Taken, or it never can be: the booking says so.
        Effect::Capture(_) => intent.state != PaymentState::Authorised,
        // Given up, or taken after all: then the report has asked for a refund.
        Effect::Void(_) | Effect::CancelIntent(_) => {
            !intent.may_be_paid && intent.state != PaymentState::Authorised
        }
        Effect::Refund { total, .. } => intent.refunded >= total,
    }
}

fn pause(failed: u32) -> Duration {
    let doubled = OUTBOX_PAUSE_MS.saturating_mul(1 << failed.min(16));
    Duration::from_millis(doubled.min(OUTBOX_PAUSE_MS_MAX))
}

fn complain(effect: Effect, failed: u32, error: &StepError) {
    if failed >= OUTBOX_ALERT_TRIES {
        tracing::error!(?effect, failed, %error, "an effect is stuck: look at the provider");
    } else {
        tracing::warn!(?effect, failed, %error, "an effect is not done yet");
    }
}
