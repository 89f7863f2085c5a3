//! A server that dies before or after a chosen step: it is heard of no more, and what it was
//! waiting for is never answered. What was committed, or done at the provider, stays.

use std::collections::VecDeque;
use std::future::pending;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use soldonce_clock::{BootTime, Clock, SleepFuture, SystemClock};
use soldonce_core::{
    Amount, Booking, BookingId, Command, Commit, EventId, EventNo, History, Hold, HoldId, Holder,
    Origin, Span, Timestamp, UnitNo,
};
use soldonce_engine::keys::{ApiKey, KeyId};
use soldonce_engine::ledger::{
    Done, Ledger, LedgerFuture, MadeAt, MasterKey, OpenEffect, Page, Read, Transaction, Webhooks,
    Write,
};
use soldonce_engine::payment::stripe::Stripe;
use soldonce_engine::payment::{
    CreateIntent, Intent, IntentId, PaymentProvider, ProviderError, ProviderFuture, ProviderKey,
};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// Beats before and after every step; the server dies when it comes to its point once too often.
pub(super) struct Heart {
    point: String,
    left: AtomicU32,
    stopped: CancellationToken,
    wrongs: Mutex<Vec<String>>,
}

impl Heart {
    /// Dies when it comes to `point` again after `times` times.
    pub(super) fn until(point: &str, times: u32) -> Arc<Self> {
        Arc::new(Self {
            point: point.to_owned(),
            left: AtomicU32::new(times),
            stopped: CancellationToken::new(),
            wrongs: Mutex::default(),
        })
    }

    pub(super) fn immortal() -> Arc<Self> {
        Self::until("", 0)
    }

    pub(super) async fn stopped(&self) {
        self.stopped.cancelled().await;
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.is_cancelled()
    }

    /// What the provider was asked for and must never be.
    pub(super) fn wrongs(&self) -> Vec<String> {
        self.wrongs.lock().unwrap().clone()
    }

    async fn step<T>(&self, name: &str, work: impl Future<Output = T>) -> T {
        self.beat(&format!("before {name}")).await;
        let done = work.await;
        self.beat(&format!("after {name}")).await;
        done
    }

    async fn beat(&self, point: &str) {
        if point == self.point && self.left.fetch_sub(1, Ordering::Relaxed) == 0 {
            self.stopped.cancel();
        }
        if self.stopped.is_cancelled() {
            // No caller hears of it.
            pending::<()>().await;
        }
    }
}

/// Waits are short for it: nothing is decided by this clock.
pub(super) struct HastyClock;

const HASTE: u32 = 10;

impl Clock for HastyClock {
    fn wall_ms(&self) -> i64 {
        SystemClock.wall_ms()
    }

    fn boot(&self) -> BootTime {
        SystemClock.boot()
    }

    fn sleep_until(&self, until: BootTime) -> SleepFuture<'_> {
        let now = SystemClock.boot();
        let wait: Duration = until.since(now);
        SystemClock.sleep_until(now.plus(wait / HASTE))
    }
}

/// The real ledger as a mortal server has it.
pub(super) struct MortalLedger {
    inner: Arc<dyn Ledger>,
    heart: Arc<Heart>,
}

impl MortalLedger {
    pub(super) fn new(inner: Arc<dyn Ledger>, heart: Arc<Heart>) -> Self {
        Self { inner, heart }
    }
}

/// What a commit is called among the points; nothing when it is no step of a payment.
fn name_of(command: &Command) -> Option<&'static str> {
    #[expect(clippy::wildcard_enum_match_arm, reason = "only these are steps")]
    match command {
        Command::Checkout { .. } => Some("checkout"),
        Command::Abandon { .. } => Some("abandon"),
        Command::Payment(report) if report.settles.is_some() => Some("report of a step"),
        Command::Payment(_) => Some("report of a notice"),
        Command::Cancel { .. } => Some("cancel"),
        Command::Refund { .. } => Some("refund"),
        Command::Exchange { .. } => Some("exchange"),
        Command::Release { .. } => Some("release"),
        _ => None,
    }
}

impl Ledger for MortalLedger {
    fn transact(&self, transaction: Transaction) -> Write<'_, Done> {
        Box::pin(async move {
            match name_of(&transaction.command) {
                Some(name) => {
                    let name = format!("the commit of {name}");
                    self.heart
                        .step(&name, self.inner.transact(transaction))
                        .await
                }
                None => self.inner.transact(transaction).await,
            }
        })
    }

    fn hold(&self, hold: HoldId) -> Read<'_, Option<Hold>> {
        self.inner.hold(hold)
    }

    fn booking(&self, booking: BookingId) -> Read<'_, Option<Booking>> {
        self.inner.booking(booking)
    }

    fn holds_of(&self, holder: Holder, page: Page<HoldId>) -> Read<'_, Vec<Hold>> {
        self.inner.holds_of(holder, page)
    }

    fn bookings_of(&self, holder: Holder, page: Page<BookingId>) -> Read<'_, Vec<Booking>> {
        self.inner.bookings_of(holder, page)
    }

    fn holds_in(&self, event: EventNo, page: Page<HoldId>) -> Read<'_, Vec<Hold>> {
        self.inner.holds_in(event, page)
    }

    fn bookings_in(&self, event: EventNo, page: Page<BookingId>) -> Read<'_, Vec<Booking>> {
        self.inner.bookings_in(event, page)
    }

    fn take_effects(&self, keep: Span, limit: usize) -> Read<'_, Vec<OpenEffect>> {
        self.inner.take_effects(keep, limit)
    }

    fn overdue_effects(&self, before: Timestamp) -> Read<'_, Vec<OpenEffect>> {
        self.inner.overdue_effects(before)
    }

    fn unsettled(&self, before: Timestamp, page: Page<MadeAt>) -> Read<'_, Vec<Booking>> {
        self.inner.unsettled(before, page)
    }

    fn unit_history(&self, event: EventNo, unit: UnitNo, limit: usize) -> Read<'_, Vec<Commit>> {
        self.inner.unit_history(event, unit, limit)
    }

    fn history(&self, event: EventId) -> Read<'_, History> {
        self.inner.history(event)
    }

    fn drop_event(&self, event: EventNo, keep: Span, origin: Origin) -> Write<'_, Timestamp> {
        let dropped = self.inner.drop_event(event, keep, origin);
        Box::pin(self.heart.step("the drop of an event", dropped))
    }

    fn clear_dropped(&self) -> Write<'_, bool> {
        self.inner.clear_dropped()
    }

    fn keys(&self) -> Read<'_, Vec<ApiKey>> {
        self.inner.keys()
    }

    fn add_key(&self, key: ApiKey) -> Write<'_, ()> {
        self.inner.add_key(key)
    }

    fn revoke_key(&self, key: KeyId, at: Timestamp) -> Write<'_, bool> {
        self.inner.revoke_key(key, at)
    }

    fn webhooks(&self) -> &dyn Webhooks {
        self.inner.webhooks()
    }

    fn master_keys(&self) -> Vec<MasterKey> {
        self.inner.master_keys()
    }

    fn now(&self) -> Timestamp {
        self.inner.now()
    }

    fn is_writable(&self) -> bool {
        self.inner.is_writable()
    }

    fn close(&self) -> LedgerFuture<'_, ()> {
        self.inner.close()
    }
}

/// What the provider says to calls that are to come, in place of doing them; and the keys of all refunds that it was
/// asked for.
#[derive(Default)]
pub(super) struct Answers {
    pub(super) creates: Mutex<VecDeque<ProviderError>>,
    /// The next of `creates` says that it was called, and waits.
    pub(super) held: Mutex<Option<(oneshot::Sender<()>, oneshot::Receiver<()>)>>,
    pub(super) refunds: Mutex<VecDeque<ProviderError>>,
    pub(super) refund_keys: Mutex<Vec<String>>,
}

/// The real adapter as a mortal server has it. It also looks whether money is taken only for what was
/// sold before, by the ledger's word.
pub(super) struct MortalProvider {
    pub(super) inner: Stripe,
    pub(super) ledger: Arc<dyn Ledger>,
    pub(super) heart: Arc<Heart>,
    pub(super) answers: Arc<Answers>,
}

impl MortalProvider {
    async fn refuse(&self, error: ProviderError) -> Result<Intent, ProviderError> {
        let held = self.answers.held.lock().unwrap().take();
        if let Some((called, go)) = held {
            called.send(()).unwrap();
            go.await.unwrap();
        }
        Err(error)
    }

    async fn require_sold(&self, key: &ProviderKey) {
        let booking = key.as_str().split('.').next().unwrap().parse().unwrap();
        let found = self.ledger.booking(booking).await.unwrap();
        if found.is_none_or(|booking| booking.confirmed_at.is_none()) {
            let wrong = format!("{booking}: its money is taken before it was sold");
            self.heart.wrongs.lock().unwrap().push(wrong);
        }
    }
}

impl PaymentProvider for MortalProvider {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn create(&self, ask: CreateIntent) -> ProviderFuture<'_, Intent> {
        if let Some(error) = self.answers.creates.lock().unwrap().pop_front() {
            return Box::pin(self.refuse(error));
        }
        let call = self.inner.create(ask);
        Box::pin(self.heart.step("the call of create", call))
    }

    fn retrieve<'a>(&'a self, intent: &'a IntentId) -> ProviderFuture<'a, Intent> {
        let call = self.inner.retrieve(intent);
        Box::pin(self.heart.step("the call of retrieve", call))
    }

    fn capture<'a>(&'a self, intent: &'a IntentId, key: ProviderKey) -> ProviderFuture<'a, Intent> {
        Box::pin(async move {
            self.require_sold(&key).await;
            let call = self.inner.capture(intent, key);
            self.heart.step("the call of capture", call).await
        })
    }

    fn cancel<'a>(&'a self, intent: &'a IntentId, key: ProviderKey) -> ProviderFuture<'a, Intent> {
        let call = self.inner.cancel(intent, key);
        Box::pin(self.heart.step("the call of cancel", call))
    }

    fn refund<'a>(
        &'a self,
        intent: &'a IntentId,
        amount: Amount,
        key: ProviderKey,
    ) -> ProviderFuture<'a, Intent> {
        self.answers
            .refund_keys
            .lock()
            .unwrap()
            .push(key.as_str().to_owned());
        if let Some(error) = self.answers.refunds.lock().unwrap().pop_front() {
            return Box::pin(std::future::ready(Err(error)));
        }
        let call = self.inner.refund(intent, amount, key);
        Box::pin(self.heart.step("the call of refund", call))
    }
}
