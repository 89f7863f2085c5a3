//! A provider, the adapter in front of it, and what they did with money.

use std::sync::Arc;

use fake_stripe::FakeStripe;
use fake_stripe::money::{MoneyLine, violations};
use soldonce_clock::{ManualClock, SystemClock};
use soldonce_core::{Amount, BookingId, Currency, Span};
use soldonce_engine::payment::stripe::{Stripe, StripeKey, StripeSettings};
use soldonce_engine::payment::{
    AccountId, CreateIntent, Intent, IntentId, PaymentProvider, ProviderError, ProviderKey,
};
use soldonce_testkit::webhooks::Receiver;

/// 2026-01-01.
pub(super) const BEGIN_MS: i64 = 1_767_225_600_000;

/// Long enough for any answer that comes.
const PATIENT_MS: u64 = 30_000;

pub(super) const PRICE: i64 = 900;

/// Dropping it judges: money went only where it may.
pub(super) struct Rig {
    pub(super) fake: FakeStripe,
    pub(super) clock: ManualClock,
    pub(super) inbox: Receiver,
    pub(super) stripe: Stripe,
}

impl Rig {
    pub(super) fn new() -> Self {
        let clock = ManualClock::at(BEGIN_MS);
        let fake = FakeStripe::start_at(Arc::new(clock.clone())).unwrap();
        let inbox = Receiver::start().unwrap();
        fake.deliver_to(&inbox.url()).unwrap();
        let stripe = adapter(fake.secret_key(), &fake.url(), PATIENT_MS);
        Self {
            fake,
            clock,
            inbox,
            stripe,
        }
    }

    /// An adapter for a connected account.
    pub(super) fn for_account(&self, account: &str) -> Stripe {
        let settings = StripeSettings {
            base_url: self.fake.url(),
            account: Some(AccountId::parse(account).unwrap()),
            ..StripeSettings::new(StripeKey::parse(self.fake.secret_key()).unwrap())
        };
        Stripe::new(settings, Arc::new(SystemClock)).unwrap()
    }

    pub(super) async fn create(&self, booking: u128) -> Result<Intent, ProviderError> {
        self.stripe.create(ask(booking)).await
    }

    pub(super) async fn created(&self, booking: u128) -> IntentId {
        self.create(booking).await.unwrap().id
    }

    pub(super) async fn authorised(&self, booking: u128) -> IntentId {
        let intent = self.created(booking).await;
        self.fake
            .pay(intent.as_str(), "pm_card_visa")
            .await
            .unwrap();
        intent
    }

    pub(super) async fn captured(&self, booking: u128) -> IntentId {
        let intent = self.authorised(booking).await;
        self.capture(&intent).await.unwrap();
        intent
    }

    pub(super) async fn capture(&self, intent: &IntentId) -> Result<Intent, ProviderError> {
        self.stripe.capture(intent, key(intent, "capture")).await
    }

    pub(super) async fn cancel(&self, intent: &IntentId) -> Result<Intent, ProviderError> {
        self.stripe.cancel(intent, key(intent, "cancel")).await
    }

    pub(super) async fn refund(
        &self,
        intent: &IntentId,
        minor: i64,
        step: &str,
    ) -> Result<Intent, ProviderError> {
        let amount = Amount::from_minor(minor);
        self.stripe.refund(intent, amount, key(intent, step)).await
    }

    pub(super) async fn shown(&self, intent: &IntentId) -> Intent {
        self.stripe.retrieve(intent).await.unwrap()
    }

    pub(super) fn money(&self, intent: &IntentId) -> MoneyLine {
        self.fake
            .money()
            .remove(intent.as_str())
            .unwrap_or_default()
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let violations = violations(&self.fake.effects());
            assert!(violations.is_empty(), "money went astray: {violations:#?}");
        }
    }
}

pub(super) fn adapter(key: &str, url: &str, call_timeout_ms: u64) -> Stripe {
    let settings = StripeSettings {
        base_url: url.to_owned(),
        call_timeout: Span::from_ms(call_timeout_ms),
        retry_wait: Span::from_ms(1),
        ..StripeSettings::new(StripeKey::parse(key).unwrap())
    };
    Stripe::new(settings, Arc::new(SystemClock)).unwrap()
}

pub(super) fn ask(booking: u128) -> CreateIntent {
    let booking = BookingId::from_bits(booking);
    CreateIntent {
        booking,
        amount: Amount::from_minor(PRICE),
        currency: Currency::parse("EUR").unwrap(),
        key: ProviderKey::of(booking, "create").unwrap(),
    }
}

pub(super) fn key(intent: &IntentId, step: &str) -> ProviderKey {
    ProviderKey::parse(&format!("{intent}.{step}")).unwrap()
}
