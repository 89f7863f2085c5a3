//! The buyers' bank of the demo, and their test payments: charges the page's test cards at the
//! provider, and answers later for cards whose bank is slow. It tells the ledger nothing: the
//! provider's webhooks do that.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fake_stripe::{Charged, FakeStripe, Verdict};
use soldonce_clock::BootTime;
use soldonce_core::BookingId;
use soldonce_engine::Engine;
use soldonce_server::{
    BankAnswer, CardAnswer, ShownCard, TestIntent, TestPaymentFuture, TestPaymentRefusal,
    TestPayments,
};
use tokio_util::sync::CancellationToken;

use super::cards::{self, Silence, TestCard};
use crate::limits::{DEMO_BANK_EVERY_MS, DEMO_BANK_SILENCE_MS, DEMO_SILENCES_MAX};

/// The route of the server that receives the provider's webhooks.
const NOTICES: &str = "/v1/webhooks/stripe";

/// The provider, and the payments whose bank has not answered yet.
pub(super) struct Bank {
    stripe: FakeStripe,
    silent: Mutex<Vec<Silent>>,
    cards: Vec<ShownCard>,
}

/// A payment whose bank has not answered yet.
struct Silent {
    intent: String,
    until: Silence,
    /// When the silence was first seen by [`Bank::end_silences`].
    since: Option<BootTime>,
}

impl std::fmt::Debug for Bank {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bank").finish_non_exhaustive()
    }
}

impl Bank {
    /// Creates the bank. Payments that an earlier demo left undecided are approved after a while.
    pub(super) fn new(stripe: FakeStripe) -> Self {
        let silent = stripe.undecided().into_iter().map(|intent| Silent {
            intent,
            until: Silence::ForAWhile,
            since: None,
        });
        Self {
            silent: Mutex::new(silent.collect()),
            stripe,
            cards: cards::ALL.iter().map(|card| card.shown).collect(),
        }
    }

    /// Sets the server to which the provider sends its webhooks.
    pub(super) fn tell(&self, server: SocketAddr) {
        self.stripe.deliver_to_own(server, NOTICES);
    }

    /// Charges a card.
    ///
    /// # Cancel safety
    /// When it is dropped, the card may have been charged.
    pub(super) async fn charge_card(
        &self,
        intent: &str,
        card: &TestCard,
    ) -> Result<CardAnswer, TestPaymentRefusal> {
        let charged = self.stripe.pay(intent, card.payment_method).await;
        if charged.map_err(|_| TestPaymentRefusal::State)? == Charged::Declined {
            return Ok(CardAnswer::Declined);
        }
        let mut silent = self.silent();
        if card.silence != Silence::None && silent.len() < DEMO_SILENCES_MAX {
            silent.push(Silent {
                intent: intent.to_owned(),
                until: card.silence,
                since: None,
            });
        }
        Ok(CardAnswer::Taken)
    }

    /// Approves payments once the silence of their bank is over, until `stop`.
    ///
    /// # Cancel safety
    /// When it is dropped, undecided payments stay undecided.
    pub(super) async fn end_silences(self: Arc<Self>, engine: Engine, stop: CancellationToken) {
        let clock = Arc::clone(&engine.world().clock);
        loop {
            let next = clock.boot().plus_ms(DEMO_BANK_EVERY_MS);
            let wait = stop.run_until_cancelled(clock.sleep_until(next));
            if wait.await.is_none() {
                return;
            }
            self.ask_silent(&engine, clock.boot()).await;
        }
    }

    /// Approves the payments whose silence is over at `now`, and keeps the others.
    async fn ask_silent(&self, engine: &Engine, now: BootTime) {
        let silent = std::mem::take(&mut *self.silent());
        for one in silent {
            if self.is_over(engine, now, &one).await {
                let decided = self.stripe.decide(&one.intent, Verdict::Approved).await;
                // The card may have been answered before: then there is nothing left to decide.
                decided.ok();
            } else {
                let since = one.since.or(Some(now));
                self.silent().push(Silent { since, ..one });
            }
        }
    }

    async fn is_over(&self, engine: &Engine, now: BootTime, one: &Silent) -> bool {
        match one.until {
            Silence::None => true,
            Silence::ForAWhile => {
                let is_over = |since: BootTime| now >= since.plus_ms(DEMO_BANK_SILENCE_MS);
                one.since.is_some_and(is_over)
            }
            Silence::UntilHoldEnds => self.has_no_hold(engine, &one.intent).await,
        }
    }

    /// Tells whether the hold that is paid with an intent is over. False if the ledger cannot be
    /// read: the next round asks again.
    async fn has_no_hold(&self, engine: &Engine, intent: &str) -> bool {
        let booking = self.stripe.booking_of(intent);
        let Some(booking) = booking.and_then(|id| id.parse::<BookingId>().ok()) else {
            return true;
        };
        let Ok(Some(booking)) = engine.ledger().booking(booking).await else {
            return false;
        };
        let Some(hold) = booking.hold else {
            return true;
        };
        match engine.ledger().hold(hold).await {
            Ok(Some(hold)) => !hold.is_live(engine.now()),
            Ok(None) => true,
            Err(_) => false,
        }
    }

    fn silent(&self) -> MutexGuard<'_, Vec<Silent>> {
        self.silent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn require_own(&self, of: TestIntent<'_>) -> Result<(), TestPaymentRefusal> {
        if self.stripe.is_paid_with(of.intent, of.client_secret) {
            Ok(())
        } else {
            Err(TestPaymentRefusal::Unknown)
        }
    }

    async fn bank_says(&self, intent: &str, verdict: Verdict) -> Result<(), TestPaymentRefusal> {
        if self.stripe.prove(intent, verdict).await.is_ok() {
            return Ok(());
        }
        let decided = self.stripe.decide(intent, verdict).await;
        decided.map_err(|_| TestPaymentRefusal::State)
    }
}

impl TestPayments for Bank {
    fn cards(&self) -> &[ShownCard] {
        &self.cards
    }

    fn charge<'a>(
        &'a self,
        of: TestIntent<'a>,
        card: &'a str,
    ) -> TestPaymentFuture<'a, CardAnswer> {
        Box::pin(async move {
            self.require_own(of)?;
            let chosen = cards::ALL.iter().find(|known| known.shown.card == card);
            let chosen = chosen.ok_or(TestPaymentRefusal::Card)?;
            self.charge_card(of.intent, chosen).await
        })
    }

    fn answer<'a>(&'a self, of: TestIntent<'a>, answer: BankAnswer) -> TestPaymentFuture<'a> {
        Box::pin(async move {
            self.require_own(of)?;
            let verdict = match answer {
                BankAnswer::Yes => Verdict::Approved,
                BankAnswer::No => Verdict::Declined,
            };
            self.bank_says(of.intent, verdict).await
        })
    }
}
