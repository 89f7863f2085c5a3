//! What runs now and then: the reconciler comes to every payment, and what drops events stops when it is told to.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use soldonce_clock::SeededEntropy;
use soldonce_core::limits::DROP_AFTER_MS_MIN;
use soldonce_core::{
    Amount, BookingId, Command, Event, Hold, PaymentReport, PaymentState, Span, Text,
};
use soldonce_engine::ledger::Ledger;
use soldonce_engine::ledger::sqlite::{SqliteLedger, SqliteOptions};
use soldonce_engine::limits::{RECONCILE_AT_ONCE_MAX, RECONCILE_EVERY_MS};
use soldonce_engine::live::Live;
use soldonce_engine::metrics::Metrics;
use soldonce_engine::payment::{
    CreateIntent, Intent, IntentId, PaymentProvider, ProviderError, ProviderFuture, ProviderKey,
};
use soldonce_engine::{Engine, World, run_dropper, run_outbox, run_reconciler};
use soldonce_testkit::{PATIENCE, TempFolder, until};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::mortal::{Heart, MortalLedger};
use super::rig::in_time;
use crate::ledgers::{TestLedger, booked, euro, held, on};

/// A provider that never answers, and knows what it was asked for. Its client may break instead.
#[derive(Default)]
struct Silent {
    asked: Mutex<BTreeSet<String>>,
    panics: bool,
}

fn silence<'a>() -> ProviderFuture<'a, Intent> {
    let error = ProviderError::Unknown("no answer".to_owned());
    Box::pin(std::future::ready(Err(error)))
}

impl PaymentProvider for Silent {
    fn name(&self) -> &'static str {
        "silent"
    }

    fn create(&self, _: CreateIntent) -> ProviderFuture<'_, Intent> {
        silence()
    }

    fn retrieve<'a>(&'a self, intent: &'a IntentId) -> ProviderFuture<'a, Intent> {
        assert!(!self.panics, "as planned");
        self.asked.lock().unwrap().insert(intent.to_string());
        silence()
    }

    fn capture<'a>(&'a self, _: &'a IntentId, _: ProviderKey) -> ProviderFuture<'a, Intent> {
        silence()
    }

    fn cancel<'a>(&'a self, _: &'a IntentId, _: ProviderKey) -> ProviderFuture<'a, Intent> {
        silence()
    }

    fn refund<'a>(
        &'a self,
        _: &'a IntentId,
        _: Amount,
        _: ProviderKey,
    ) -> ProviderFuture<'a, Intent> {
        silence()
    }
}

async fn engine(test: &TestLedger, ledger: Arc<dyn Ledger>, live: Arc<Live>) -> Engine {
    let world = World {
        clock: Arc::new(test.clock.clone()),
        entropy: Arc::new(SeededEntropy::new(11)),
    };
    let metrics = Arc::new(Metrics::default());
    Engine::new(ledger, live, metrics, world).await.unwrap()
}

/// Begins to pay for a seat: the intent is known, and the provider is to be asked for it.
async fn begin_paying(test: &TestLedger, event: &Event, seat: &str) -> BookingId {
    let hold = test.hold(event, seat, &[seat]).await.unwrap();
    pay_for(test, &hold).await
}

async fn pay_for(test: &TestLedger, hold: &Hold) -> BookingId {
    let booking = booked(test.ask(test.checkout_command(hold)).await).unwrap();
    let report = PaymentReport {
        intent: Some(soldonce_core::Intent {
            provider: Text::parse("silent").unwrap(),
            id: Text::parse(&format!("pi_{}", booking.id)).unwrap(),
            client_secret: Text::parse("secret").unwrap(),
        }),
        ..PaymentReport::whole(&booking, euro(), PaymentState::Created)
    };
    test.ask(Command::Payment(Box::new(report))).await.unwrap();
    booking.id
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn payments_that_nothing_settles_hide_no_later_one() {
    let test = TestLedger::sqlite();
    let rows = r#"{"format":"grid","rows":6,"seats_per_row":50,"category":"Standard"}"#;
    let event = test.event_on(rows, |_| {}).await;
    for n in 0..=RECONCILE_AT_ONCE_MAX {
        let row = char::from(b'A' + u8::try_from(n / 50).unwrap());
        begin_paying(&test, &event, &format!("{row}-{}", n % 50 + 1)).await;
    }
    let live = Arc::new(Live::new(Arc::default()));
    let provider = Arc::new(Silent::default());
    let engine = engine(&test, Arc::clone(&test.ledger), live).await;
    let engine = engine.paid_by(Arc::clone(&provider) as Arc<dyn PaymentProvider>);
    test.advance_ms(1);
    let open = engine
        .open_money(soldonce_core::Timestamp::MAX)
        .await
        .unwrap();
    assert_eq!(open.unsettled.len(), RECONCILE_AT_ONCE_MAX + 1);
    let (mut tasks, end) = (JoinSet::new(), CancellationToken::new());
    tasks.spawn(run_reconciler(engine, end.clone()));
    for pass in ["first", "second"] {
        let asked = until(pass, PATIENCE, || {
            test.advance_ms(RECONCILE_EVERY_MS);
            provider.asked.lock().unwrap().len() > RECONCILE_AT_ONCE_MAX
        });
        asked.unwrap_or_else(|late| panic!("{late}: {}", provider.asked.lock().unwrap().len()));
        provider.asked.lock().unwrap().clear();
    }
    end.cancel();
    tasks.join_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_ledger_that_is_slow_to_drop_an_event_holds_up_no_shutdown() {
    let (base, folder) = (TestLedger::sqlite(), TempFolder::new().unwrap());
    let live = Arc::new(Live::new(Arc::default()));
    let opened = SqliteLedger::open(
        &SqliteOptions::new(folder.path()),
        Arc::new(base.clock.clone()),
        &SeededEntropy::new(7),
        Arc::clone(&live) as Arc<_>,
    );
    let test = base.with_ledger(opened.unwrap());
    let (event, reason) = (test.event().await.no, Text::parse("ill").unwrap());
    test.ask(Command::CancelEvent { event, reason })
        .await
        .unwrap();
    test.advance_ms(2 * DROP_AFTER_MS_MIN);
    let heart = Heart::until("before the drop of an event", 0);
    let mortal = MortalLedger::new(Arc::clone(&test.ledger), Arc::clone(&heart));
    let engine = engine(&test, Arc::new(mortal), live).await;
    let (mut tasks, end) = (JoinSet::new(), CancellationToken::new());
    let keep = Some(Span::from_ms(DROP_AFTER_MS_MIN));
    tasks.spawn(run_dropper(engine, keep, end.clone()));
    let begun = until("it drops", PATIENCE, || {
        test.advance_ms(120_000);
        heart.is_stopped()
    });
    begun.unwrap();
    end.cancel();
    in_time("the shutdown", tasks.join_all()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_step_that_panics_is_tried_less_and_less_often_and_told() {
    let test = TestLedger::sqlite();
    let event = test.event().await;
    let hold = test.hold(&event, "ann", &["A-1"]).await.unwrap();
    pay_for(&test, &hold).await;
    let release = Command::Release { on: on(&hold) };
    held(test.ask(release).await).unwrap();
    let metrics = Arc::new(Metrics::default());
    let live = Arc::new(Live::new(Arc::clone(&metrics)));
    let world = World {
        clock: Arc::new(test.clock.clone()),
        entropy: Arc::new(SeededEntropy::new(11)),
    };
    let ledger = Arc::clone(&test.ledger);
    let engine = Engine::new(ledger, live, Arc::clone(&metrics), world);
    let provider = Silent {
        panics: true,
        ..Silent::default()
    };
    let engine = engine.await.unwrap().paid_by(Arc::new(provider));
    let (mut tasks, end) = (JoinSet::new(), CancellationToken::new());
    tasks.spawn(run_outbox(engine, end.clone()));
    let told = until("the step is told as stuck", PATIENCE, || {
        test.advance_ms(200);
        metrics.outbox_stuck.get() == 1
    });
    told.unwrap();
    end.cancel();
    tasks.join_all().await;
}
