//! One attempt of an effect at the provider, and whether the effect is done by then.

use soldonce_core::{Amount, Booking, BookingId, Effect, PaymentState, Rejection};

use super::{Engine, EngineError, StepError, intent_id, is_final, key};
use crate::payment::{Intent, IntentId, ProviderError};

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
        let done = self.provider_or_err()?.capture(intent, key).await;
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
        let done = self.provider_or_err()?.cancel(intent, key).await;
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
        let done = self.provider_or_err()?.refund(intent, missing, key).await;
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
