//! Calls that go wrong on the way: the outcome is asked for with the same key, and the effect takes
//! place once.

use std::time::Duration;

use fake_stripe::money::MoneyLine;
use fake_stripe::{CallFault, Plan, Route};
use soldonce_clock::{Clock, SystemClock};
use soldonce_core::{PaymentState as P, Span};
use soldonce_engine::payment::{Intent, IntentId, PaymentProvider, ProviderError};
use soldonce_testkit::Port;

use super::rig::{PRICE, Rig, adapter, key};

/// What may happen to a call, and how often it is then made: with its own key, and with a second one.
const FAULTS: [(CallFault, usize, usize); 5] = [
    (CallFault::CloseBefore, 2, 0),
    (CallFault::CloseAfter, 2, 0),
    (CallFault::RateLimited, 2, 0),
    // The second answer is the first one again: it will not change.
    (CallFault::ErrorBefore, 2, 1),
    (CallFault::ErrorAfter, 2, 1),
];

/// Shorter than any answer that is held.
const SHORT_MS: u64 = 2_000;

/// How often `route` was called with this key, and with a second one.
fn calls(rig: &Rig, route: Route, key: &str) -> (usize, usize) {
    let second = format!("{key}.2");
    let seen = rig.fake.calls();
    let count = |key: &str| {
        let is_it =
            |call: &&fake_stripe::SeenCall| call.route == route && call.key.as_deref() == Some(key);
        seen.iter().filter(is_it).count()
    };
    let all = seen
        .iter()
        .filter(|call| call.route == route && call.key.is_some());
    assert!(all.count() >= count(key) + count(&second));
    (count(key), count(&second))
}

#[tokio::test]
async fn an_intent_is_made_and_only_one_can_be_paid() {
    for (fault, own, second) in FAULTS {
        let rig = Rig::new();
        rig.fake.next_call(Route::CreateIntent, fault);
        let intent = rig.create(1).await.unwrap();
        let key = super::rig::ask(1).key;
        assert_eq!(
            calls(&rig, Route::CreateIntent, key.as_str()),
            (own, second),
            "{fault:?}"
        );
        // After a 500 that hid an intent there is one more, whose client secret no caller has.
        let made = rig.fake.intents().len();
        assert_eq!(
            made,
            if fault == CallFault::ErrorAfter { 2 } else { 1 },
            "{fault:?}"
        );
        let again = rig.create(1).await.unwrap();
        assert_eq!(again.id, intent.id, "{fault:?}: the key stands for it");
    }
}

#[tokio::test]
async fn money_is_taken_exactly_once() {
    for (fault, own, second) in FAULTS {
        let rig = Rig::new();
        let intent = rig.authorised(1).await;
        rig.fake.next_call(Route::Capture, fault);
        assert_eq!(
            rig.capture(&intent).await.unwrap().state,
            P::Captured,
            "{fault:?}"
        );
        let key = format!("{intent}.capture");
        assert_eq!(
            calls(&rig, Route::Capture, &key),
            (own, second),
            "{fault:?}"
        );
        assert_eq!(rig.money(&intent).captures, 1, "{fault:?}");
    }
}

#[tokio::test]
async fn what_is_reserved_is_let_go_exactly_once() {
    for (fault, own, second) in FAULTS {
        let rig = Rig::new();
        let intent = rig.authorised(1).await;
        rig.fake.next_call(Route::Cancel, fault);
        assert_eq!(
            rig.cancel(&intent).await.unwrap().state,
            P::Voided,
            "{fault:?}"
        );
        let key = format!("{intent}.cancel");
        assert_eq!(calls(&rig, Route::Cancel, &key), (own, second), "{fault:?}");
        let money = rig.money(&intent);
        assert_eq!((money.voids, money.reserved()), (1, 0), "{fault:?}");
    }
}

#[tokio::test]
async fn a_part_goes_back_exactly_once() {
    for (fault, own, second) in FAULTS {
        let rig = Rig::new();
        let intent = rig.captured(1).await;
        rig.fake.next_call(Route::CreateRefund, fault);
        let shown = rig.refund(&intent, 300, "refund").await.unwrap();
        assert_eq!(
            (shown.state, shown.refunded.minor()),
            (P::PartlyRefunded, 300),
            "{fault:?}"
        );
        // What is found needs no second key.
        let second = if fault == CallFault::ErrorAfter {
            0
        } else {
            second
        };
        let key = format!("{intent}.refund");
        assert_eq!(
            calls(&rig, Route::CreateRefund, &key),
            (own, second),
            "{fault:?}"
        );
        assert_eq!(rig.money(&intent).refunds, 1, "{fault:?}");
    }
}

#[tokio::test]
async fn further_keys_may_be_stuck_too() {
    // A fault is also used up by the call that hears the stored answer.
    for (failures, is_captured) in [(3, true), (9, true), (15, true), (17, false)] {
        let rig = Rig::new();
        let intent = rig.authorised(1).await;
        for _ in 0..failures {
            rig.fake.next_call(Route::Capture, CallFault::ErrorBefore);
        }
        let captured = rig.capture(&intent).await;
        assert_eq!(captured.is_ok(), is_captured, "{captured:?}");
        assert_eq!(rig.money(&intent).captures, u32::from(is_captured));
        if let Err(error) = captured {
            assert!(matches!(error, ProviderError::Unknown(_)), "{error}");
        }
    }
}

#[tokio::test]
async fn what_stays_unknown_says_so_and_the_same_key_settles_it() {
    let rig = Rig::new();
    let intent = rig.authorised(1).await;
    for _ in 0..3 {
        rig.fake.next_call(Route::Capture, CallFault::CloseBefore);
    }
    let error = rig.capture(&intent).await.unwrap_err();
    assert!(matches!(error, ProviderError::Unknown(_)), "{error}");
    assert_eq!((rig.fake.to_come(), rig.money(&intent).captures), (0, 0));
    assert_eq!(rig.capture(&intent).await.unwrap().state, P::Captured);
    assert_eq!(
        calls(&rig, Route::Capture, &format!("{intent}.capture")),
        (4, 0)
    );
}

#[tokio::test]
async fn a_provider_that_stays_busy_says_so() {
    let rig = Rig::new();
    let intent = rig.authorised(1).await;
    for _ in 0..3 {
        rig.fake.next_call(Route::Capture, CallFault::RateLimited);
    }
    let error = rig.capture(&intent).await.unwrap_err();
    assert_eq!(error, ProviderError::Busy { retry_after: None });
    assert_eq!(rig.money(&intent).captures, 0);
}

#[tokio::test]
async fn a_pause_that_the_provider_asks_for_is_kept_or_passed_on() {
    let rig = Rig::new();
    let busy = |seconds| CallFault::RateLimitedFor(Duration::from_secs(seconds));
    let count = |intent: &IntentId| calls(&rig, Route::Capture, &format!("{intent}.capture"));
    let intent = rig.authorised(1).await;
    rig.fake.next_call(Route::Capture, busy(1));
    let began = SystemClock.boot();
    assert_eq!(rig.capture(&intent).await.unwrap().state, P::Captured);
    assert!(SystemClock.boot().since(began) >= Duration::from_secs(1));
    assert_eq!(count(&intent), (2, 0));
    // Longer than one call waits: the caller keeps it.
    let intent = rig.authorised(2).await;
    rig.fake.next_call(Route::Capture, busy(60));
    let error = rig.capture(&intent).await.unwrap_err();
    let retry_after = Some(Span::from_ms(60_000));
    assert_eq!(error, ProviderError::Busy { retry_after });
    assert_eq!(count(&intent), (1, 0));
}

#[tokio::test]
async fn a_provider_that_hangs_is_waited_for_once() {
    let rig = Rig::new();
    let intent = rig.authorised(1).await;
    let stripe = adapter(rig.fake.secret_key(), &rig.fake.url(), SHORT_MS);
    rig.fake.next_call(Route::Capture, CallFault::HoldReply);
    let hung = stripe.capture(&intent, key(&intent, "capture")).await;
    let error = hung.unwrap_err();
    assert!(matches!(error, ProviderError::Unknown(_)), "{error}");
    let calls = rig.fake.calls();
    let tries = calls.iter().filter(|call| call.route == Route::Capture);
    assert_eq!(
        tries.count(),
        0,
        "the one that hangs is not answered, and there is no other"
    );
    assert_eq!(settle(&rig, &intent).await.state, P::Captured);
    assert_eq!(rig.money(&intent).captures, 1);
    rig.fake.release();
}

#[tokio::test]
async fn a_call_that_is_still_at_work_is_busy_and_takes_effect_once() {
    let rig = Rig::new();
    let intent = rig.authorised(1).await;
    rig.fake.next_call(Route::Capture, CallFault::HoldCall);
    // Its caller goes away.
    tokio::select! {
        known = rig.capture(&intent) => panic!("{known:?}"),
        () = rig.fake.until_held(1) => {}
    }
    let error = rig.capture(&intent).await.unwrap_err();
    assert_eq!(error, ProviderError::Busy { retry_after: None });
    assert_eq!(rig.money(&intent).captures, 0);
    rig.fake.release();
    let settled = settle(&rig, &intent).await;
    assert_eq!(
        (settled.state, rig.money(&intent).captures),
        (P::Captured, 1)
    );
}

/// Captures with the same key until it is known.
async fn settle(rig: &Rig, intent: &IntentId) -> Intent {
    loop {
        match rig.capture(intent).await {
            Ok(settled) => return settled,
            Err(error) => assert!(error.may_be_repeated(), "{error}"),
        }
    }
}

#[tokio::test]
async fn an_answer_that_is_none_leaves_the_outcome_unknown() {
    let rig = Rig::new();
    let intent = rig.authorised(1).await;
    rig.fake.next_call(Route::Capture, CallFault::Garbage);
    let error = rig.capture(&intent).await.unwrap_err();
    assert!(matches!(error, ProviderError::Unknown(_)), "{error}");
    assert_eq!(rig.capture(&intent).await.unwrap().state, P::Captured);
    assert_eq!(rig.money(&intent).captures, 1);
}

#[tokio::test]
async fn an_answer_without_end_is_not_read() {
    let rig = Rig::new();
    let intent = rig.created(1).await;
    for _ in 0..3 {
        rig.fake
            .next_call(Route::RetrieveIntent, CallFault::Oversized);
    }
    let error = rig.stripe.retrieve(&intent).await;
    let error = error.unwrap_err().to_string();
    assert!(error.contains("longer than 1048576 bytes"), "{error}");
}

#[tokio::test]
async fn no_provider_at_all_is_unknown() {
    let rig = Rig::new();
    let closed = Port::reserve().unwrap();
    let url = format!("http://127.0.0.1:{}", closed.number());
    let stripe = adapter("sk_test_x", &url, SHORT_MS);
    let intent = IntentId::parse("pi_1").unwrap();
    let error = stripe.retrieve(&intent).await;
    assert!(matches!(error, Err(ProviderError::Unknown(_))), "{error:?}");
    assert!(rig.fake.calls().is_empty());
}

/// Asks with the same key until the outcome is known.
macro_rules! insist {
    ($call:expr) => {
        loop {
            match $call.await {
                Err(error) if error.may_be_repeated() => {}
                settled => break settled,
            }
        }
    };
}

#[tokio::test]
async fn under_hostile_plans_every_step_takes_effect_once() {
    for seed in 0..10 {
        let rig = Rig::new();
        rig.fake.plan(Plan::hostile(seed));
        for booking in 0..10 {
            live_once(&rig, booking).await;
        }
        let lines = rig.fake.money();
        let reserved: i64 = lines.values().map(MoneyLine::reserved).sum();
        assert_eq!(reserved, 0, "seed {seed}: nothing is left reserved");
    }
}

/// One intent from its beginning to its end.
async fn live_once(rig: &Rig, booking: u128) {
    let intent = insist!(rig.create(booking)).unwrap().id;
    let paid = rig.fake.pay(intent.as_str(), "pm_card_visa");
    paid.await.unwrap();
    if booking.is_multiple_of(3) {
        let_go(rig, &intent).await;
    } else {
        take_and_give_back(rig, &intent).await;
    }
}

async fn let_go(rig: &Rig, intent: &IntentId) {
    insist!(rig.cancel(intent)).unwrap();
    let money = rig.money(intent);
    assert_eq!((money.voids, money.reserved()), (1, 0));
}

async fn take_and_give_back(rig: &Rig, intent: &IntentId) {
    insist!(rig.capture(intent)).unwrap();
    insist!(rig.refund(intent, 100, "refund-1")).unwrap();
    let shown = insist!(rig.refund(intent, 200, "refund-2")).unwrap();
    assert_eq!(shown.refunded.minor(), 300);
    let money = rig.money(intent);
    assert_eq!((money.captures, money.refunds), (1, 2));
    assert_eq!(money.kept(), PRICE - 300);
}
