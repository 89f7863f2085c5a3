//! From a hold to its money: checkout pins the hold and asks the provider for an intent, the
//! provider's word confirms it, and what must be done at the provider afterwards leaves through
//! the outbox. Decides nothing about bookings; `core` does. Every call has a key made from the
//! booking and the step, and the step was committed before: a crash anywhere is made good by asking
//! again with the same key (model.md 6).

mod checkout;
mod effects;
mod notices;
mod outbox;
mod reconcile;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use soldonce_core::{
    Amount, Booking, BookingId, BookingState, Command, Currency, Effect, Origin, PaymentReport,
    PaymentState, Rejection, Text,
};

use super::{Engine, EngineError};
use crate::caller::Caller;
use crate::ledger::{RequestKey, Transaction};
use crate::payment::{CreateIntent, Intent, IntentId, PaymentProvider, ProviderError, ProviderKey};

pub use checkout::CheckoutAsk;
pub use outbox::run_outbox;
pub use reconcile::{Mismatch, Remedy, mismatches, run_reconciler};

/// Why a step at the provider was not done.
#[derive(Debug, thiserror::Error)]
pub(super) enum StepError {
    /// The provider did not do it, or the outcome is unknown.
    #[error(transparent)]
    Provider(#[from] ProviderError),
    /// The ledger did not take the report.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The step is not possible in the present state, or an answer makes no sense; says why.
    #[error("{0}")]
    Odd(String),
}

impl StepError {
    /// Converts the error to what the caller sees.
    fn told(self) -> EngineError {
        match self {
            Self::Engine(error) => error,
            Self::Provider(error) => EngineError::Provider(error),
            Self::Odd(what) => EngineError::Provider(ProviderError::Unknown(what)),
        }
    }
}

impl From<Rejection> for StepError {
    fn from(rejection: Rejection) -> Self {
        Self::Engine(rejection.into())
    }
}

impl Engine {
    /// Returns the engine with a payment provider. A provider that was set before stays.
    #[must_use]
    pub fn paid_by(self, provider: Arc<dyn PaymentProvider>) -> Self {
        self.parts.provider.set(provider).ok();
        self
    }

    /// Returns the engine in which shoppers confirm units of any price without a payment provider.
    #[must_use]
    pub fn with_free_sales(self) -> Self {
        self.parts.free_sales.store(true, Ordering::Relaxed);
        self
    }

    /// Tells whether shoppers confirm units that cost something: there is no payment provider, and
    /// the operator said so.
    pub fn gives_away(&self) -> bool {
        self.provider().is_none() && self.parts.free_sales.load(Ordering::Relaxed)
    }

    /// Tells whether a caller vouches for money that no provider has taken: a key does, for its
    /// shop. A shopper does not, unless there is no payment provider and the operator said so.
    pub(super) fn is_vouched(&self, caller: &Caller) -> bool {
        matches!(caller, Caller::Key { .. }) || self.gives_away()
    }

    /// Returns the payment provider, if one is set.
    pub fn provider(&self) -> Option<&Arc<dyn PaymentProvider>> {
        self.parts.provider.get()
    }

    /// Returns the intent that the buyer of a booking pays. Fails for a payment that ended without
    /// one: what is paid by a new one would buy nothing.
    async fn to_be_paid(&self, id: BookingId) -> Result<soldonce_core::Intent, StepError> {
        let booking = self.booking_for_step(id).await?;
        let is_over = booking.state != BookingState::PendingPayment;
        if is_over && intent_id(&booking)?.is_none() {
            let error = ProviderError::Refused {
                status: 409,
                code: "payment_ended".to_owned(),
                message: "this payment has ended".to_owned(),
            };
            return Err(error.into());
        }
        self.authorise(id).await
    }

    /// Returns the intent of a booking; asks the provider for one if it has none.
    async fn authorise(&self, id: BookingId) -> Result<soldonce_core::Intent, StepError> {
        let booking = self.booking_for_step(id).await?;
        let payment = booking.payment.as_deref();
        if let Some(intent) = payment.and_then(|payment| payment.intent.clone()) {
            return Ok(intent);
        }
        let event = self.event_of(booking.event)?;
        let ask = CreateIntent {
            booking: id,
            amount: payment.map_or_else(|| booking.total(), |payment| payment.amount),
            currency: event.currency,
            key: key(id, "authorise")?,
        };
        let made = self.provider_or_err()?.create(ask).await;
        self.count("authorise", made.as_ref().err());
        match made {
            Ok(intent) => self.bind(id, &intent).await,
            Err(error) if is_final(&error) => {
                self.end_making(&booking, event.currency).await?;
                let payment = self.booking_for_step(id).await?.payment;
                // A call without an answer may have made one, which a notice named meanwhile.
                let live = payment.filter(|payment| payment.state != PaymentState::Failed);
                let intent = live.and_then(|payment| payment.intent);
                intent.ok_or_else(|| error.into())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Reports that the provider makes no intent for a booking.
    async fn end_making(&self, booking: &Booking, currency: Currency) -> Result<(), StepError> {
        let failed = PaymentReport {
            settles: Some(Effect::Authorise(booking.id)),
            ..PaymentReport::whole(booking, currency, PaymentState::Failed)
        };
        self.take_report(failed, None).await
    }

    /// Binds a booking to the intent that it is paid with from now on: this one, or another of the
    /// same booking that was made by a call whose answer was lost, and that a notice named first.
    /// The secret of the unused one is given to no one, so it cannot be paid.
    async fn bind(
        &self,
        id: BookingId,
        intent: &Intent,
    ) -> Result<soldonce_core::Intent, StepError> {
        let effect = Effect::Authorise(id);
        match self.tell(id, intent, Some(effect), None).await {
            Ok(()) => Ok(self.told(intent)?),
            Err(
                error @ StepError::Engine(EngineError::Rejected(Rejection::PaymentMismatch(_))),
            ) => {
                let known = self.booking_for_step(id).await?.payment;
                let known = known.and_then(|payment| payment.intent).ok_or(error)?;
                self.finish_effect(id, effect).await?;
                Ok(known)
            }
            Err(error) => Err(error),
        }
    }

    /// Records that an effect is done, without changing the payment.
    async fn finish_effect(&self, id: BookingId, effect: Effect) -> Result<(), StepError> {
        let booking = self.booking_for_step(id).await?;
        let Some(payment) = booking.payment.as_deref() else {
            return Ok(());
        };
        let currency = self.event_of(booking.event)?.currency;
        let report = PaymentReport {
            captured: payment.captured,
            refunded: payment.refunded,
            bounced: payment.bounced,
            settles: Some(effect),
            ..PaymentReport::whole(&booking, currency, payment.state)
        };
        self.take_report(report, None).await
    }

    async fn booking_for_step(&self, id: BookingId) -> Result<Booking, StepError> {
        let found = self.parts.ledger.booking(id).await;
        let found = found.map_err(EngineError::from)?;
        Ok(found.ok_or(Rejection::BookingNotFound)?)
    }

    fn provider_or_err(&self) -> Result<&Arc<dyn PaymentProvider>, StepError> {
        self.provider()
            .ok_or_else(|| StepError::Odd("no payment provider is set here".to_owned()))
    }

    /// Reports the state of an intent to the ledger, which then takes `effect` for done.
    async fn tell(
        &self,
        booking: BookingId,
        intent: &Intent,
        effect: Option<Effect>,
        key: Option<RequestKey>,
    ) -> Result<(), StepError> {
        let report = PaymentReport {
            booking,
            state: intent.state,
            amount: intent.amount,
            currency: intent.currency,
            captured: intent.captured,
            refunded: Amount::sum([intent.refunded, intent.bounced].into_iter()),
            bounced: intent.bounced,
            intent: Some(self.told(intent)?),
            settles: effect,
        };
        match self.take_report(report, key).await {
            Err(StepError::Engine(EngineError::Rejected(Rejection::PaymentMismatch(_))))
                if is_given_up(intent) =>
            {
                self.tell_given_up(booking, intent, effect).await
            }
            taken => taken,
        }
    }

    /// Reports that a booking's own intent, whose amount or currency is not the booking's, can't be
    /// paid any more: then it does not matter what it would have cost.
    async fn tell_given_up(
        &self,
        id: BookingId,
        intent: &Intent,
        effect: Option<Effect>,
    ) -> Result<(), StepError> {
        let booking = self.booking_for_step(id).await?;
        if intent_id(&booking)?.as_ref() != Some(&intent.id) {
            return Err(Rejection::PaymentMismatch(id).into());
        }
        tracing::warn!(booking = %id, intent = %intent.id, "an intent that did not fit is cancelled");
        let currency = self.event_of(booking.event)?.currency;
        let payment = booking.payment.as_deref();
        let report = PaymentReport {
            settles: effect,
            intent: payment.and_then(|payment| payment.intent.clone()),
            ..PaymentReport::whole(&booking, currency, intent.state)
        };
        self.take_report(report, None).await
    }

    async fn take_report(
        &self,
        report: PaymentReport,
        key: Option<RequestKey>,
    ) -> Result<(), StepError> {
        let transaction = Transaction {
            origin: Origin::system("payments"),
            command: Command::Payment(Box::new(report)),
            key,
            chart: None,
        };
        self.transact(transaction).await?;
        Ok(())
    }

    /// Converts an intent to the form in which the ledger keeps it.
    fn told(&self, intent: &Intent) -> Result<soldonce_core::Intent, StepError> {
        let text =
            |text: &str| Text::parse(text).map_err(|error| StepError::Odd(error.to_string()));
        let secret = intent.client_secret.as_ref();
        Ok(soldonce_core::Intent {
            provider: text(self.provider_or_err()?.name())?,
            id: text(intent.id.as_str())?,
            client_secret: text(secret.map_or("", |secret| secret.expose()))?,
        })
    }

    fn count(&self, step: &'static str, error: Option<&ProviderError>) {
        let outcome = match error {
            None => "ok",
            Some(ProviderError::Declined { .. }) => "declined",
            Some(ProviderError::Refused { .. }) => "refused",
            Some(ProviderError::Unknown(_)) => "unknown",
            Some(ProviderError::Busy { .. }) => "busy",
            Some(ProviderError::Misconfigured(_)) => "misconfigured",
        };
        let label = [("step", step), ("outcome", outcome)];
        self.parts.metrics.payments.get_or_create(&label).inc();
    }
}

/// Tells whether an intent ended without any money of the buyer, and can never be paid.
fn is_given_up(intent: &Intent) -> bool {
    let was_taken = intent.state.has_come() || intent.captured > Amount::ZERO;
    !was_taken && !intent.may_be_paid
}

/// Tells whether the provider will never carry out the step.
const fn is_final(error: &ProviderError) -> bool {
    matches!(
        error,
        ProviderError::Declined { .. } | ProviderError::Refused { .. }
    )
}

fn key(booking: BookingId, step: &str) -> Result<ProviderKey, StepError> {
    ProviderKey::of(booking, step).map_err(|error| StepError::Odd(error.to_string()))
}

/// Parses the id of a booking's intent; `None` if its checkout has none yet.
fn intent_id(booking: &Booking) -> Result<Option<IntentId>, StepError> {
    let payment = booking.payment.as_deref();
    let intent = payment.and_then(|payment| payment.intent.as_ref());
    let parsed = intent.map(|intent| IntentId::parse(intent.id.as_str()));
    let parsed = parsed.transpose();
    parsed.map_err(|error| StepError::Odd(error.to_string()))
}
