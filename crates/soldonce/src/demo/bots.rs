//! Bots: simulated shoppers who look, hold, hesitate, pay or leave. Each makes the same engine
//! calls as a person's requests. Some cancel later, so that a sold-out hall does not stay sold out.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;

use soldonce_core::{BookingId, HoldId, Intent, Rejection, StateKind, Together};
use soldonce_engine::ledger::{Fingerprint, RequestKey, ScopedKey};
use soldonce_engine::{
    Call, Caller, CheckoutAsk, Engine, EngineError, EventSummary, HoldAsk, Listing, NamedUnits,
    Reply, WishAsk,
};
use soldonce_server::{CardAnswer, TestPaymentRefusal};
use tokio_util::sync::CancellationToken;

use super::bank::Bank;
use super::cards;
use crate::limits::{DEMO_BOT_BOOKINGS_MAX, DEMO_FREE_PERCENT_MIN};

/// Runs one bot until `stop`.
///
/// # Cancel safety
/// When it is dropped, its hold expires.
pub(super) async fn run(engine: Engine, bank: Arc<Bank>, number: u32, stop: CancellationToken) {
    let (session, _) = engine.open_session();
    let caller = Caller::Shopper(session);
    let mut bot = Bot {
        engine,
        bank,
        caller,
        number,
        bookings: VecDeque::new(),
    };
    stop.run_until_cancelled(bot.live()).await;
}

/// Tells whether a visitor still finds seats to choose from. Bots that look at the same moment may
/// each take a little more than that.
fn leaves_enough(summary: &EventSummary) -> bool {
    let total = summary.snapshot.total;
    let least = u64::from(total.total()) * u64::from(DEMO_FREE_PERCENT_MIN);
    u64::from(total.free) * 100 > least
}

struct Bot {
    engine: Engine,
    bank: Arc<Bank>,
    caller: Caller,
    number: u32,
    bookings: VecDeque<BookingId>,
}

impl Bot {
    async fn live(&mut self) {
        loop {
            self.wait_ms(800, 4_000).await;
            let (events, _) = self.engine.events(Listing::Listed, None, 10).await;
            let Some(summary) = self.one_of(&events) else {
                continue;
            };
            if !leaves_enough(summary) {
                self.cancel_oldest().await;
                continue;
            }
            self.visit(summary).await;
            if self.bookings.len() > DEMO_BOT_BOOKINGS_MAX {
                self.cancel_oldest().await;
            }
        }
    }

    /// Makes a hold, waits, then buys it, releases it or lets it expire.
    async fn visit(&mut self, summary: &EventSummary) {
        let Some(reply) = self.hold(summary).await else {
            return;
        };
        self.wait_ms(1_500, 9_000).await;
        let hold = HoldId::from_bytes(reply.stored.subject);
        if self.chance(60) {
            self.buy(hold).await;
        } else if self.chance(75) {
            self.release(hold).await;
        }
    }

    /// Pays for a hold, at times with a card that is declined before another one is charged.
    async fn buy(&mut self, hold: HoldId) {
        let Some((booking, intent)) = self.begin_payment(hold).await else {
            return;
        };
        // What costs nothing is not paid.
        if let Some(intent) = intent
            && self.charge(&intent).await.is_err()
        {
            return;
        }
        self.bookings.push_back(booking);
    }

    /// Charges a card, at times after a declined one. A refusal is expected when time has run out.
    async fn charge(&mut self, intent: &Intent) -> Result<CardAnswer, TestPaymentRefusal> {
        let intent = intent.id.as_str();
        if self.chance(10) {
            self.bank.charge_card(intent, &cards::DECLINED).await?;
            self.wait_ms(1_000, 4_000).await;
        }
        self.bank.charge_card(intent, &cards::GOOD).await
    }

    /// Starts the checkout, or confirms what costs nothing. None if refused: late, or called off.
    async fn begin_payment(&self, hold: HoldId) -> Option<(BookingId, Option<Intent>)> {
        let call = self.keyed_call();
        let begun = self.engine.checkout(&call, hold, CheckoutAsk::default());
        let begun = match begun.await {
            Err(EngineError::Rejected(Rejection::Invalid(_))) => {
                let call = self.keyed_call();
                self.engine.confirm(&call, hold, None, None).await.ok()?
            }
            begun => begun.ok()?,
        };
        Some((BookingId::from_bytes(begun.stored.subject), begun.intent))
    }

    async fn hold(&self, summary: &EventSummary) -> Option<Reply> {
        let quantity = 1 + self.draw(3);
        let seats = self.free_neighbours(summary, quantity);
        let wish = if seats.is_empty() || self.chance(30) {
            WishAsk::Best {
                quantity: u32::try_from(quantity).ok()?,
                category: None,
                together: Together::Preferred,
            }
        } else {
            WishAsk::Named(NamedUnits {
                seats,
                ..NamedUnits::default()
            })
        };
        let ask = HoldAsk {
            holder: None,
            wish,
            ttl: None,
        };
        self.engine
            .hold(&self.call(), &summary.event.id, ask)
            .await
            .ok()
    }

    /// Finds free seats next to a random one, as a person who looks at the map would choose.
    fn free_neighbours<'a>(&self, summary: &'a EventSummary, most: usize) -> Vec<Cow<'a, str>> {
        let chart = &summary.event.chart;
        let rows = chart.rows();
        let Some(row) = rows.get(self.draw(rows.len().max(1))) else {
            return Vec::new();
        };
        let skip = self.draw(usize::try_from(row.seats).unwrap_or(1).max(1));
        row.units()
            .skip(skip)
            .take_while(|unit| summary.snapshot.seat(*unit) == Some(StateKind::Free))
            .take(most)
            .map(|unit| Cow::Owned(chart.unit_name(unit).to_string()))
            .collect()
    }

    async fn release(&self, hold: HoldId) {
        if let Err(error) = self.engine.release(&self.call(), hold, None).await {
            tracing::debug!(bot = self.number, %error, "a bot's release was refused");
        }
    }

    async fn cancel_oldest(&mut self) {
        let Some(booking) = self.bookings.pop_front() else {
            return;
        };
        let all = NamedUnits::default();
        if let Err(error) = self.engine.cancel(&self.keyed_call(), booking, &all).await {
            tracing::debug!(bot = self.number, %error, "a bot's cancel was refused");
            // Its payment may be on the way. Without it the bots would keep its seats for good.
            if self.bookings.len() < DEMO_BOT_BOOKINGS_MAX {
                self.bookings.push_back(booking);
            }
        }
    }

    fn call(&self) -> Call {
        Call::new(self.caller.clone(), &format!("bot-{}", self.number))
    }

    /// Builds a call with an idempotency key of its own, so that it takes effect once.
    fn keyed_call(&self) -> Call {
        let bits = self.engine.ids().bits().to_be_bytes();
        let key = RequestKey {
            scoped: ScopedKey(bits),
            fingerprint: Fingerprint(bits),
        };
        Call {
            key: Some(key.into()),
            ..self.call()
        }
    }

    async fn wait_ms(&self, least: u64, most: u64) {
        let clock = &self.engine.world().clock;
        let extra = self.draw(usize::try_from(most - least).unwrap_or(1));
        let ms = least + u64::try_from(extra).unwrap_or(0);
        clock.sleep_until(clock.boot().plus_ms(ms)).await;
    }

    fn chance(&self, percent: usize) -> bool {
        self.draw(100) < percent
    }

    /// Draws a random number below `end`, which is not 0.
    fn draw(&self, end: usize) -> usize {
        let mut bytes = [0; 8];
        self.engine.world().entropy.fill(&mut bytes);
        let end = u64::try_from(end.max(1)).unwrap_or(1);
        usize::try_from(u64::from_le_bytes(bytes) % end).unwrap_or(0)
    }

    fn one_of<'a>(&self, events: &'a [EventSummary]) -> Option<&'a EventSummary> {
        events.get(self.draw(events.len().max(1)))
    }
}
