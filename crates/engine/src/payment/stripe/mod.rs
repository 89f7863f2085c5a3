//! Stripe: six calls by hand and its notices. Money is reserved when the buyer pays and taken by
//! `capture`, so that a lost race is a cancel and not a refund; where [`Capture`] says so it is taken at
//! once, and a lost race is a refund.
//!
//! Stripe remembers the first answer to a key for a day, also a 500. Such an answer tells nothing and
//! will not change, so what can be done twice without harm is then done with another key made from the
//! first: an intent whose client secret was given to no one cannot be paid, and a capture or cancel of what
//! is captured or cancelled is refused. So is a cancel while the bank decides, and that refusal is kept too:
//! when the bank has answered, the same request is sent with a key of the new state. A refund cannot be
//! repeated, so its key is stored with it at Stripe, and it is looked for before it is made: its key works
//! once for good, not for a day.
//!
//! Reading order: the calls below, one call over HTTP (`wire`), what an answer means (`shape`,
//! `refusal`), notices (`webhook`).

mod currency;
mod refusal;
mod settings;
mod shape;
#[cfg(test)]
mod tests;
mod webhook;
mod wire;

use std::sync::Arc;

use soldonce_clock::Clock;
use soldonce_core::{Amount, Currency};

use super::{
    CreateIntent, Intent, IntentId, PaymentProvider, ProviderError, ProviderFuture, ProviderKey,
};
use crate::payment::limits::{STRIPE_KEYS_MAX, STRIPE_PAGE_MAX, STRIPE_REFUNDS_MAX};
use refusal::CallError;
use shape::{RefundShape, RefundsShape, Status, StripeIntent};
use wire::{Ask, Wire};

pub use settings::{Capture, StripeKey, StripeSettings, StripeSetupError};
pub use webhook::{WebhookError, WebhookSecrets, verify};

/// The version of Stripe's API whose words are understood here; sent with each call.
pub const API_VERSION: &str = "2025-03-31.basil";

/// Stripe's code for a refusal because an intent is in another state.
const UNEXPECTED_STATE: &str = "payment_intent_unexpected_state";

/// The code with which a refund that failed at the buyer's bank is [`ProviderError::Refused`].
pub const REFUND_FAILED: &str = "refund_failed";

/// Stripe as a payment provider.
pub struct Stripe {
    wire: Wire,
    capture: Capture,
}

/// A request that leads an intent to one state, however often it is made.
#[derive(Clone, Copy)]
enum Ending {
    Capture,
    Cancel,
}

impl Ending {
    const fn word(self) -> &'static str {
        match self {
            Self::Capture => "capture",
            Self::Cancel => "cancel",
        }
    }

    const fn status(self) -> Status {
        match self {
            Self::Capture => Status::Succeeded,
            Self::Cancel => Status::Canceled,
        }
    }

    /// Tells whether an intent of this status can be ended so.
    const fn may_follow(self, status: Status) -> bool {
        match self {
            Self::Capture => matches!(status, Status::RequiresCapture),
            Self::Cancel => !matches!(
                status,
                Status::Processing | Status::Succeeded | Status::Canceled
            ),
        }
    }
}

impl Stripe {
    /// Creates the provider with these settings; makes no call yet.
    ///
    /// # Errors
    /// [`StripeSetupError`] when it is to be reached without encryption beyond this machine, or TLS
    /// cannot be set up.
    pub fn new(settings: StripeSettings, clock: Arc<dyn Clock>) -> Result<Self, StripeSetupError> {
        let capture = settings.capture;
        let wire = Wire::new(settings, clock)?;
        Ok(Self { wire, capture })
    }

    async fn create_intent(&self, ask: CreateIntent) -> Result<Intent, ProviderError> {
        let fields = [
            ("amount", ask.amount.minor().to_string()),
            ("currency", ask.currency.as_str().to_ascii_lowercase()),
            ("capture_method", self.capture.as_str().to_owned()),
            ("automatic_payment_methods[enabled]", "true".to_owned()),
            ("metadata[booking]", ask.booking.to_string()),
        ];
        let body = self
            .post_harmless("/v1/payment_intents", &fields, ask.key.as_str())
            .await?;
        Ok(shape::intent(&body)?.intent)
    }

    async fn seen(&self, intent: &IntentId) -> Result<StripeIntent, ProviderError> {
        let path = format!("/v1/payment_intents/{intent}?expand%5B%5D=latest_charge");
        let body = self.wire.call(&Ask::get(&path)).await?;
        let seen = shape::intent(&body)?;
        if seen.status == Status::Succeeded {
            return seen.with(&self.refunds(intent).await?);
        }
        Ok(seen)
    }

    /// Lists every refund of an intent.
    async fn refunds(&self, intent: &IntentId) -> Result<RefundsShape, ProviderError> {
        let page = format!("/v1/refunds?limit={STRIPE_PAGE_MAX}&payment_intent={intent}");
        let body = self.wire.call(&Ask::get(&page)).await?;
        let mut refunds: RefundsShape = shape::read(&body)?;
        while let Some(after) = refunds.next_after() {
            if refunds.len() >= STRIPE_REFUNDS_MAX {
                return Err(ProviderError::Refused {
                    status: 200,
                    code: "too_many_refunds".to_owned(),
                    message: format!("more than {STRIPE_REFUNDS_MAX} refunds of one intent"),
                });
            }
            let next = format!("{page}&starting_after={after}");
            let body = self.wire.call(&Ask::get(&next)).await?;
            let more: RefundsShape = shape::read(&body)?;
            if more.len() == 0 {
                break;
            }
            refunds = refunds.and(more);
        }
        Ok(refunds)
    }

    /// Returns the intent of an answer; retrieves it, if the answer did not tell all of it.
    async fn in_full(&self, seen: StripeIntent) -> Result<Intent, ProviderError> {
        if seen.is_half {
            return Ok(self.seen(&seen.intent.id).await?.intent);
        }
        Ok(seen.intent)
    }

    async fn end(
        &self,
        intent: &IntentId,
        key: &ProviderKey,
        ending: Ending,
    ) -> Result<Intent, ProviderError> {
        let refused = match self.end_once(intent, key.as_str(), ending).await {
            Err(error) if is_of_state(&error) => error,
            answered => return answered,
        };
        let seen = self.seen(intent).await?;
        if seen.status == ending.status() {
            return Ok(seen.intent);
        }
        if !ending.may_follow(seen.status) {
            return Err(refused);
        }
        // The refusal is about a state that is over, and the key keeps it for a day.
        let key = format!("{}.{}", key.as_str(), seen.status.as_str());
        self.end_once(intent, &key, ending).await
    }

    async fn end_once(
        &self,
        intent: &IntentId,
        key: &str,
        ending: Ending,
    ) -> Result<Intent, ProviderError> {
        let path = format!("/v1/payment_intents/{intent}/{}", ending.word());
        let fields = [("expand[]", "latest_charge".to_owned())];
        let body = self.post_harmless(&path, &fields, key).await?;
        self.in_full(shape::intent(&body)?).await
    }

    async fn refund_once(
        &self,
        intent: &IntentId,
        amount: Amount,
        key: &ProviderKey,
    ) -> Result<Intent, ProviderError> {
        if !self.has_refunded(intent, key).await? {
            self.make_refund(intent, amount, key).await?;
        }
        Ok(self.seen(intent).await?.intent)
    }

    async fn make_refund(
        &self,
        intent: &IntentId,
        amount: Amount,
        key: &ProviderKey,
    ) -> Result<(), ProviderError> {
        let fields = [
            ("payment_intent", intent.as_str().to_owned()),
            ("amount", amount.minor().to_string()),
            ("metadata[key]", key.as_str().to_owned()),
        ];
        for key_in_turn in keys(key.as_str()) {
            let ask = Ask::post("/v1/refunds", &fields, &key_in_turn);
            match self.wire.call(&ask).await {
                // The call that got that answer first has ended: there is a refund now, or none comes.
                Err(CallError::Stuck(_)) if self.has_refunded(intent, key).await? => return Ok(()),
                Err(CallError::Stuck(_)) => {}
                answered => return shape::read::<RefundShape>(&answered?)?.require_alive(),
            }
        }
        Err(all_stuck())
    }

    /// Tells whether the refund of this key is made; fails if that refund failed.
    async fn has_refunded(
        &self,
        intent: &IntentId,
        key: &ProviderKey,
    ) -> Result<bool, ProviderError> {
        match self.refunds(intent).await?.of_key(key.as_str()) {
            Some(refund) => refund.require_alive().map(|()| true),
            None => Ok(false),
        }
    }

    /// Posts a request that may be made twice without harm.
    async fn post_harmless(
        &self,
        path: &str,
        fields: &[(&str, String)],
        key: &str,
    ) -> Result<Vec<u8>, ProviderError> {
        for key_in_turn in keys(key) {
            let ask = Ask::post(path, fields, &key_in_turn);
            match self.wire.call(&ask).await {
                Err(CallError::Stuck(_)) => {}
                answered => return Ok(answered?),
            }
        }
        Err(all_stuck())
    }
}

/// Lists a key, and those that are used in its place when it is stuck for a day.
fn keys(key: &str) -> impl Iterator<Item = String> {
    let first = key.to_owned();
    let further = (2..=STRIPE_KEYS_MAX).map(move |at| format!("{key}.{at}"));
    std::iter::once(first).chain(further)
}

/// Tells whether a call was refused because of the state of the intent.
fn is_of_state(error: &ProviderError) -> bool {
    matches!(error, ProviderError::Refused { code, .. } if code == UNEXPECTED_STATE)
}

fn all_stuck() -> ProviderError {
    let why = format!("{STRIPE_KEYS_MAX} keys are stuck at a failure of Stripe");
    ProviderError::Unknown(why)
}

impl PaymentProvider for Stripe {
    fn name(&self) -> &'static str {
        "stripe"
    }

    fn require_chargeable(&self, currency: Currency, price: Amount) -> Result<(), String> {
        currency::require_chargeable(currency, price)
    }

    fn require_refundable(&self, currency: Currency, amount: Amount) -> Result<(), String> {
        currency::require_step(currency, amount)
    }

    fn create(&self, ask: CreateIntent) -> ProviderFuture<'_, Intent> {
        Box::pin(self.create_intent(ask))
    }

    fn retrieve<'a>(&'a self, intent: &'a IntentId) -> ProviderFuture<'a, Intent> {
        Box::pin(async move { Ok(self.seen(intent).await?.intent) })
    }

    fn capture<'a>(&'a self, intent: &'a IntentId, key: ProviderKey) -> ProviderFuture<'a, Intent> {
        Box::pin(async move { self.end(intent, &key, Ending::Capture).await })
    }

    fn cancel<'a>(&'a self, intent: &'a IntentId, key: ProviderKey) -> ProviderFuture<'a, Intent> {
        Box::pin(async move { self.end(intent, &key, Ending::Cancel).await })
    }

    fn refund<'a>(
        &'a self,
        intent: &'a IntentId,
        amount: Amount,
        key: ProviderKey,
    ) -> ProviderFuture<'a, Intent> {
        Box::pin(async move { self.refund_once(intent, amount, &key).await })
    }
}
