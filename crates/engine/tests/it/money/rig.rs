//! An engine on a ledger, a provider, and everything that runs between them. The notices go through
//! an endpoint of the test, so that it can hold them back.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use fake_stripe::money::{MoneyLine, violations};
use fake_stripe::{FakeStripe, Sent};
use soldonce_clock::{BootTime, Clock, SeededEntropy, SleepFuture, SystemClock};
use soldonce_core::{
    Booking, BookingId, EventId, History, HoldId, HolderName, PaymentState, Policy, Span, Timestamp,
};
use soldonce_engine::keys::Scope;
use soldonce_engine::ledger::Ledger;
use soldonce_engine::ledger::postgres::{Durability, PostgresLedger, PostgresOptions, migrate};
use soldonce_engine::ledger::sqlite::{SqliteLedger, SqliteOptions};
use soldonce_engine::live::Live;
use soldonce_engine::metrics::Metrics;
use soldonce_engine::payment::stripe::{
    Capture, Stripe, StripeKey, StripeSettings, WebhookSecrets, verify,
};
use soldonce_engine::payment::{IntentId, Notice, PaymentProvider};
use soldonce_engine::{
    Call, Caller, CheckoutAsk, Engine, EngineError, GivenAsk, HoldAsk, Mismatch, NamedUnits, Reply,
    RequestKey, WishAsk, World, mismatches, run_outbox, run_sweeper,
};
use soldonce_testkit::postgres::Postgres;
use soldonce_testkit::webhooks::{Received, Receiver};
use soldonce_testkit::{PATIENCE, TempFolder};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::mortal::{Answers, HastyClock, Heart, MortalLedger, MortalProvider};
use crate::ledgers::{HALL, caller, log, new_event};

pub(super) const PRICE: i64 = 4_500;

/// Where the truth is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Store {
    Sqlite,
    Postgres,
}

impl Store {
    pub(super) const ALL: [Self; 2] = [Self::Sqlite, Self::Postgres];
}

/// The machine's clock, ahead by these milliseconds.
#[derive(Default)]
struct Ahead(AtomicI64);

impl Clock for Ahead {
    fn wall_ms(&self) -> i64 {
        SystemClock.wall_ms() + self.0.load(Ordering::Relaxed)
    }

    fn boot(&self) -> BootTime {
        SystemClock.boot()
    }

    fn sleep_until(&self, until: BootTime) -> SleepFuture<'_> {
        SystemClock.sleep_until(until)
    }
}

/// A ledger and what stands around it. It outlives the servers that work on it.
pub(super) struct Place {
    ledger: Arc<dyn Ledger>,
    clock: Arc<Ahead>,
    live: Arc<Live>,
    metrics: Arc<Metrics>,
    servers: AtomicU64,
    capture: Capture,
    pub(super) answers: Arc<Answers>,
    disk: (Option<TempFolder>, Option<Postgres>),
}

impl Place {
    pub(super) async fn new(store: Store) -> Arc<Self> {
        log();
        let metrics = Arc::new(Metrics::default());
        let live = Arc::new(Live::new(Arc::clone(&metrics)));
        let entropy = SeededEntropy::new(7);
        let clock = Arc::new(Ahead::default());
        let by = Arc::clone(&clock) as Arc<dyn Clock>;
        let mut disk = (None, None);
        let observer = Arc::clone(&live) as Arc<_>;
        let ledger: Arc<dyn Ledger> = match store {
            Store::Sqlite => {
                let folder = disk.0.insert(TempFolder::new().unwrap());
                let options = SqliteOptions::new(folder.path().to_owned());
                let opened = SqliteLedger::open(&options, by, &entropy, observer);
                Arc::new(opened.unwrap())
            }
            Store::Postgres => {
                let database = disk.1.insert(Postgres::start().unwrap());
                let options = PostgresOptions {
                    durability: Durability::Waived,
                    ..PostgresOptions::new(database.url())
                };
                migrate(&options).await.unwrap();
                let opened = PostgresLedger::open(&options, by, &entropy, observer);
                Arc::new(opened.await.unwrap())
            }
        };
        Arc::new(Self {
            ledger,
            clock,
            live,
            metrics,
            servers: AtomicU64::new(1),
            capture: Capture::Manual,
            answers: Arc::default(),
            disk,
        })
    }

    /// Where Stripe takes what a buyer pays at once.
    pub(super) async fn paid_at_once(store: Store) -> Arc<Self> {
        let mut place = Self::new(store).await;
        let alone = Arc::get_mut(&mut place).unwrap();
        alone.capture = Capture::Automatic;
        place
    }

    /// So much of the ledger's time passes at once.
    pub(super) fn skip_ms(&self, ms: i64) {
        self.clock.0.fetch_add(ms, Ordering::Relaxed);
        if let Some(database) = &self.disk.1 {
            let step = format!("UPDATE clock SET at = at + {ms}");
            database.query(&step).unwrap();
        }
    }

    /// A server on this ledger, which lives as long as its heart beats.
    async fn server(&self, fake: &FakeStripe, heart: &Arc<Heart>) -> Engine {
        let seed = self.servers.fetch_add(1, Ordering::Relaxed);
        let ledger = MortalLedger::new(Arc::clone(&self.ledger), Arc::clone(heart));
        let provider = MortalProvider {
            inner: adapter(fake, self.capture),
            ledger: Arc::clone(&self.ledger),
            heart: Arc::clone(heart),
            answers: Arc::clone(&self.answers),
        };
        let world = World {
            clock: Arc::new(HastyClock),
            entropy: Arc::new(SeededEntropy::new(seed)),
        };
        let (live, metrics) = (Arc::clone(&self.live), Arc::clone(&self.metrics));
        let engine = Engine::new(Arc::new(ledger), live, metrics, world);
        engine.await.unwrap().paid_by(Arc::new(provider))
    }
}

/// Dropping it judges: money went only where it may.
pub(super) struct Rig {
    pub(super) engine: Engine,
    pub(super) fake: FakeStripe,
    pub(super) place: Arc<Place>,
    event: EventId,
    inbox: Receiver,
    seen: AtomicUsize,
    keys: AtomicU64,
    tasks: JoinSet<()>,
}

impl Rig {
    pub(super) async fn on(store: Store, change: impl Fn(&mut Policy)) -> Self {
        Self::at(Place::new(store).await, "hamlet-1", change).await
    }

    /// With an event and a provider of its own, on a ledger where no other event's money is open.
    pub(super) async fn at(place: Arc<Place>, event: &str, change: impl Fn(&mut Policy)) -> Self {
        let (fake, inbox) = (FakeStripe::start().unwrap(), Receiver::start().unwrap());
        fake.deliver_to(&inbox.url()).unwrap();
        let rig = Self {
            engine: place.server(&fake, &Heart::immortal()).await,
            fake,
            place,
            event: EventId::parse(event).unwrap(),
            inbox,
            seen: AtomicUsize::new(0),
            keys: AtomicU64::new(0),
            tasks: JoinSet::new(),
        };
        let new = new_event(event, HALL, change);
        let chart = Arc::from(HALL.as_bytes());
        let made = rig.engine.create_event(&rig.call(), new, chart).await;
        made.unwrap();
        rig
    }

    /// The server is gone with everything that it was doing; another one takes its place.
    pub(super) async fn replace_server(&mut self, heart: &Arc<Heart>) {
        self.tasks.shutdown().await;
        self.engine = self.place.server(&self.fake, heart).await;
    }

    /// Lets effects be carried out from now on.
    pub(super) fn run_outbox(&mut self) {
        let end = CancellationToken::new();
        self.tasks
            .spawn(run_outbox(self.engine.clone(), end.clone()));
        self.tasks.spawn(run_sweeper(self.engine.clone(), end));
    }

    /// A request with a key of its own.
    pub(super) fn call(&self) -> Call {
        let n = self.keys.fetch_add(1, Ordering::Relaxed);
        self.call_named(&format!("call {n}"))
    }

    /// A request with this key: asked again, it is the same one.
    pub(super) fn call_named(&self, name: &str) -> Call {
        let key = format!("{} {name}", self.event);
        let staff = Caller::Key {
            id: caller(),
            scopes: Arc::from([Scope::Admin]),
        };
        Call {
            key: Some(RequestKey::new(caller(), "test", &key, &[], b"").into()),
            ..Call::new(staff, "test")
        }
    }

    pub(super) async fn hold(&self, who: &str, seats: &[&str]) -> Result<HoldId, EngineError> {
        self.hold_by(&self.call(), who, seats).await
    }

    pub(super) async fn hold_by(
        &self,
        call: &Call,
        who: &str,
        seats: &[&str],
    ) -> Result<HoldId, EngineError> {
        let units = NamedUnits {
            seats: seats.iter().map(|seat| (*seat).into()).collect(),
            ..NamedUnits::default()
        };
        let ask = HoldAsk {
            holder: Some(HolderName::parse(who).unwrap()),
            wish: WishAsk::Named(units),
            ttl: None,
        };
        let held = self.engine.hold(call, &self.event, ask).await?;
        Ok(HoldId::from_bytes(held.stored.subject))
    }

    /// Begins payment, asking again with the same key while the provider does not answer.
    pub(super) async fn checkout(&self, hold: HoldId) -> Result<Paying, EngineError> {
        self.checkout_by(&self.call(), hold).await
    }

    pub(super) async fn checkout_by(
        &self,
        call: &Call,
        hold: HoldId,
    ) -> Result<Paying, EngineError> {
        self.checkout_for(call, hold, None).await
    }

    /// In exchange for lines of another booking.
    pub(super) async fn checkout_for(
        &self,
        call: &Call,
        hold: HoldId,
        exchange: Option<GivenAsk<'_>>,
    ) -> Result<Paying, EngineError> {
        let ask = CheckoutAsk {
            exchange,
            ..CheckoutAsk::default()
        };
        for _ in 0..20 {
            match self.engine.checkout(call, hold, ask.clone()).await {
                Ok(reply) => return Ok(Paying::of(&reply)),
                Err(EngineError::Provider(error)) if error.may_be_repeated() => {}
                Err(error) => return Err(error),
            }
        }
        panic!("the provider never answers");
    }

    pub(super) async fn begun(&self, who: &str, seats: &[&str]) -> (HoldId, Paying) {
        let hold = self.hold(who, seats).await.unwrap();
        (hold, self.checkout(hold).await.unwrap())
    }

    pub(super) async fn cancel_all(&self, booking: BookingId) {
        let all = NamedUnits::default();
        let cancelled = self.engine.cancel(&self.call(), booking, &all).await;
        cancelled.unwrap();
    }

    pub(super) async fn pay(&self, paying: &Paying, card: &str) {
        self.fake.pay(&paying.intent, card).await.unwrap();
    }

    /// Takes the notices that came since the last time. One that is not believed, or not taken, is
    /// for the reconciler.
    pub(super) async fn take_notices(&self) {
        for notice in self.notices().await {
            self.engine.take_notice(&notice).await.ok();
        }
    }

    /// The genuine notices that came since the last time, which no call has taken yet.
    pub(super) async fn notices(&self) -> Vec<Notice> {
        let quiet = in_time("the notices", self.fake.quiet()).await;
        quiet.unwrap_or_else(|late| panic!("{late}: {:#?}", self.unsent()));
        let received = self.inbox.received();
        // Others may have taken more meanwhile.
        let from = self.seen.fetch_max(received.len(), Ordering::Relaxed);
        let received = received.get(from..).unwrap_or_default();
        let second = self.fake.second_webhook_secret();
        let secrets = WebhookSecrets::new(self.fake.webhook_secret(), Some(second)).unwrap();
        let now = Timestamp::from_ms(SystemClock.wall_ms());
        let believed = |one: &Received| verify(&one.body, &one.signature, &secrets, now).ok();
        let of_ours = |notice: &Notice| notice.account.is_none();
        let genuine = received.iter().filter_map(believed);
        genuine.filter(of_ours).collect()
    }

    /// What of the notices was not taken, newest last, and how many wait.
    fn unsent(&self) -> (usize, Vec<Sent>) {
        let sent = self.fake.sent().into_iter();
        let missed = sent.filter(|one| one.is_genuine && !one.is_taken());
        (self.fake.waiting_notices(), missed.collect())
    }

    pub(super) async fn booking(&self, id: BookingId) -> Booking {
        let found = self.engine.ledger().booking(id).await.unwrap();
        found.unwrap()
    }

    pub(super) async fn payment_state(&self, id: BookingId) -> PaymentState {
        self.booking(id).await.payment.unwrap().state
    }

    /// Notices, effects and the reconciler, until nothing is left to be done.
    pub(super) async fn settle(&self) {
        let end = SystemClock.boot().plus(2 * PATIENCE);
        loop {
            self.take_notices().await;
            self.mend_all().await;
            let later = self.engine.now().plus(Span::from_ms(1));
            let ledger = self.engine.ledger();
            let open = ledger.take_effects(Span::from_ms(1), 1_000).await.unwrap();
            let unsettled = ledger.unsettled(later, (None, 1_000)).await.unwrap();
            if open.is_empty() && unsettled.is_empty() {
                return;
            }
            let now = SystemClock.boot();
            let calls = || {
                self.fake
                    .calls()
                    .into_iter()
                    .rev()
                    .take(40)
                    .collect::<Vec<_>>()
            };
            assert!(
                now < end,
                "never settled: {open:?} {unsettled:?}, the last calls: {:#?}",
                calls()
            );
            let soon = now.plus(Duration::from_millis(20));
            SystemClock.sleep_until(soon).await;
        }
    }

    /// As the reconciler does now and then. What is not repaired now is found again.
    pub(super) async fn mend_all(&self) {
        for mismatch in self.mismatches().await {
            self.engine.repair(&mismatch).await.ok();
        }
    }

    /// What the reconciler finds just now.
    pub(super) async fn mismatches(&self) -> Vec<Mismatch> {
        let open = self
            .engine
            .open_money(soldonce_core::Timestamp::MAX)
            .await
            .unwrap();
        let provider = self.engine.provider().unwrap();
        mismatches(&**provider, &open).await
    }

    pub(super) async fn until_paid_as(&self, id: BookingId, state: PaymentState) {
        let end = SystemClock.boot().plus(PATIENCE);
        while self.payment_state(id).await != state {
            assert!(SystemClock.boot() < end, "never {state:?}");
            self.take_notices().await;
            let soon = SystemClock.boot().plus(Duration::from_millis(10));
            SystemClock.sleep_until(soon).await;
        }
    }

    /// What the provider has of ours in the end.
    pub(super) fn kept(&self) -> i64 {
        self.fake.money().values().map(MoneyLine::kept).sum()
    }

    /// What was taken and what went back of one booking.
    pub(super) fn money_of(&self, id: BookingId) -> (i64, i64) {
        let id = Some(id.to_string());
        let lines = self.fake.money().into_values();
        lines
            .filter(|line| line.booking == id)
            .fold((0, 0), |(captured, refunded), line| {
                (captured + line.captured, refunded + line.refunded)
            })
    }

    /// Where the ledger and the provider do not agree about a booking's payment, in words.
    pub(super) async fn differences(&self, booking: &Booking) -> Vec<String> {
        let id = booking.id;
        let payment = booking.payment.as_ref().unwrap();
        let known = (payment.captured.minor(), payment.refunded.minor());
        let real = self.money_of(id);
        let mut found = Vec::new();
        if known != real {
            found.push(format!(
                "{id}: the ledger has {known:?}, the provider {real:?}"
            ));
        }
        let Some(intent) = &payment.intent else {
            return found;
        };
        let intent = IntentId::parse(intent.id.as_str()).unwrap();
        let told = ask(&self.fake, &intent).await;
        if told.has_come() && told != payment.state {
            let state = payment.state;
            found.push(format!(
                "{id}: the ledger says {state:?}, the provider {told:?}"
            ));
        }
        found
    }

    pub(super) async fn history(&self) -> History {
        let history = self.place.ledger.history(self.event.clone()).await;
        history.unwrap()
    }

    /// What is reserved and neither taken nor given up.
    pub(super) fn reserved(&self) -> i64 {
        self.fake.money().values().map(MoneyLine::reserved).sum()
    }
}

/// What comes of it, unless it takes longer than anything of a test may: a rig that hangs says where.
pub(super) async fn in_time<T>(
    what: &'static str,
    work: impl Future<Output = T>,
) -> Result<T, String> {
    let end = SystemClock.boot().plus(2 * PATIENCE);
    tokio::select! {
        done = work => Ok(done),
        () = SystemClock.sleep_until(end) => Err(format!("{what}: not within two minutes")),
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

/// A payment that has begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Paying {
    pub(super) booking: BookingId,
    pub(super) intent: String,
}

impl Paying {
    fn of(reply: &Reply) -> Self {
        Self {
            booking: BookingId::from_bytes(reply.stored.subject),
            intent: reply.intent.clone().unwrap().id.to_string(),
        }
    }
}

/// What the provider says of an intent, as often asked as it takes.
async fn ask(fake: &FakeStripe, intent: &IntentId) -> PaymentState {
    let adapter = adapter(fake, Capture::Manual);
    for _ in 0..100 {
        if let Ok(intent) = adapter.retrieve(intent).await {
            return intent.state;
        }
    }
    panic!("the provider never answers");
}

fn adapter(fake: &FakeStripe, capture: Capture) -> Stripe {
    let settings = StripeSettings {
        base_url: fake.url(),
        capture,
        retry_wait: Span::from_ms(1),
        ..StripeSettings::new(StripeKey::parse(fake.secret_key()).unwrap())
    };
    Stripe::new(settings, Arc::new(SystemClock)).unwrap()
}
