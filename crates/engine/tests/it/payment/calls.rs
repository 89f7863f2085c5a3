//! Each call when nothing goes wrong on the way: what is asked, and what state it leads to.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::Duration;

use fake_stripe::{CallFault, Route, Verdict};
use soldonce_core::{Amount, BookingId, PaymentState as P};
use soldonce_engine::payment::stripe::{API_VERSION, REFUND_FAILED};
use soldonce_engine::payment::{Intent, IntentId, PaymentProvider, ProviderError, ProviderKey};

use super::rig::{PRICE, Rig, adapter, ask};

/// State, captured, refunded.
fn told(intent: &Intent) -> (P, i64, i64) {
    (
        intent.state,
        intent.captured.minor(),
        intent.refunded.minor(),
    )
}

fn is_refused(result: Result<Intent, ProviderError>, expected: u16) -> bool {
    match result {
        Err(ProviderError::Refused { status, .. }) => status == expected,
        other => panic!("not refused: {other:?}"),
    }
}

#[tokio::test]
async fn an_intent_is_made_for_a_booking_and_captured_by_hand() {
    let rig = Rig::new();
    let intent = rig.create(7).await.unwrap();
    assert_eq!(told(&intent), (P::Created, 0, 0));
    assert_eq!(intent.amount.minor(), PRICE);
    assert_eq!(intent.currency.as_str(), "EUR");
    assert_eq!(intent.booking, Some(BookingId::from_bits(7)));
    assert!(intent.may_be_paid);
    let made = &rig.fake.intents()[0];
    assert_eq!(made["id"], intent.id.as_str());
    assert_eq!(made["capture_method"], "manual");
    assert_eq!(
        made["client_secret"],
        intent.client_secret.unwrap().expose()
    );
}

#[tokio::test]
async fn every_call_names_its_version_and_every_effect_its_key() {
    let rig = Rig::new();
    let intent = rig.captured(1).await;
    rig.refund(&intent, 100, "refund").await.unwrap();
    let other = rig.created(2).await;
    rig.cancel(&other).await.unwrap();
    let calls = rig.fake.calls();
    let versions = calls.iter().map(|call| call.version.as_deref());
    assert!(versions.eq(calls.iter().map(|_| Some(API_VERSION))));
    let key = |route: Route| {
        let call = calls.iter().find(|call| call.route == route).unwrap();
        call.key.clone()
    };
    assert_eq!(
        key(Route::CreateIntent).as_deref(),
        Some(ask(1).key.as_str())
    );
    assert_eq!(key(Route::Capture), Some(format!("{intent}.capture")));
    assert_eq!(key(Route::CreateRefund), Some(format!("{intent}.refund")));
    assert_eq!(key(Route::Cancel), Some(format!("{other}.cancel")));
    assert_eq!(key(Route::RetrieveIntent), None);
}

#[tokio::test]
async fn each_card_leads_to_its_state() {
    let rig = Rig::new();
    for (at, (card, state)) in (0..).zip([
        ("pm_card_visa", P::Authorised),
        ("pm_card_chargeDeclined", P::Declined),
        ("pm_card_chargeDeclinedInsufficientFunds", P::Declined),
        ("pm_card_threeDSecure2Required", P::ActionRequired),
        ("pm_card_undecided", P::Processing),
    ]) {
        let intent = rig.created(at).await;
        rig.fake.pay(intent.as_str(), card).await.unwrap();
        let shown = rig.shown(&intent).await;
        assert_eq!(shown.state, state, "{card}");
        assert_eq!(shown.may_be_paid, state != P::Authorised, "{card}");
    }
}

#[tokio::test]
async fn a_declined_intent_may_be_paid_with_another_card_until_it_is_cancelled() {
    let rig = Rig::new();
    let intent = rig.created(1).await;
    rig.fake
        .pay(intent.as_str(), "pm_card_declinedAtFirst")
        .await
        .unwrap();
    assert_eq!(rig.shown(&intent).await.state, P::Declined);
    rig.fake
        .pay(intent.as_str(), "pm_card_declinedAtFirst")
        .await
        .unwrap();
    assert_eq!(rig.shown(&intent).await.state, P::Authorised);
    assert_eq!(rig.cancel(&intent).await.unwrap().state, P::Voided);
}

#[tokio::test]
async fn money_is_taken_once_under_two_keys() {
    let rig = Rig::new();
    let intent = rig.authorised(1).await;
    assert_eq!(
        told(&rig.capture(&intent).await.unwrap()),
        (P::Captured, PRICE, 0)
    );
    let other_key = super::rig::key(&intent, "again");
    let again = rig.stripe.capture(&intent, other_key).await.unwrap();
    assert_eq!(told(&again), (P::Captured, PRICE, 0));
    assert_eq!(rig.money(&intent).captures, 1);
    assert!(is_refused(rig.cancel(&intent).await, 400));
}

#[tokio::test]
async fn nothing_is_taken_of_what_is_not_reserved() {
    let rig = Rig::new();
    let created = rig.created(1).await;
    assert!(is_refused(rig.capture(&created).await, 400));
    let voided = rig.authorised(2).await;
    rig.cancel(&voided).await.unwrap();
    assert!(is_refused(rig.capture(&voided).await, 400));
    let lapsed = rig.authorised(3).await;
    rig.clock.advance(Duration::from_hours(7 * 24));
    assert_eq!(rig.shown(&lapsed).await.state, P::Lapsed);
    assert!(is_refused(rig.capture(&lapsed).await, 400));
    for intent in [created, voided, lapsed] {
        assert_eq!(rig.money(&intent).captures, 0);
    }
}

#[tokio::test]
async fn a_cancel_that_was_refused_while_a_bank_was_silent_is_done_when_it_has_answered() {
    let rig = Rig::new();
    let intent = rig.created(1).await;
    rig.fake.pay(intent.as_str(), "pm_card_late").await.unwrap();
    assert!(is_refused(rig.cancel(&intent).await, 400));
    assert!(is_refused(rig.cancel(&intent).await, 400));
    let answered = rig.fake.decide(intent.as_str(), Verdict::Approved).await;
    answered.unwrap();
    assert_eq!(told(&rig.shown(&intent).await), (P::Authorised, 0, 0));
    let given_up = rig.cancel(&intent).await.unwrap();
    assert_eq!(told(&given_up), (P::Voided, 0, 0));
    assert_eq!(told(&rig.cancel(&intent).await.unwrap()), (P::Voided, 0, 0));
}

#[tokio::test]
async fn a_cancel_ends_an_intent_once_under_two_keys() {
    let rig = Rig::new();
    let paid = rig.authorised(1).await;
    let never_paid = rig.created(2).await;
    for (intent, state) in [(paid, P::Voided), (never_paid, P::Failed)] {
        let cancelled = rig.cancel(&intent).await.unwrap();
        assert_eq!((cancelled.state, cancelled.may_be_paid), (state, false));
        let other_key = super::rig::key(&intent, "again");
        let again = rig.stripe.cancel(&intent, other_key).await.unwrap();
        assert_eq!((again.state, again.may_be_paid), (state, false));
        assert!(rig.money(&intent).voids <= 1);
    }
}

#[tokio::test]
async fn a_card_that_decides_late_is_seen() {
    let rig = Rig::new();
    let intent = rig.created(1).await;
    rig.fake
        .pay(intent.as_str(), "pm_card_undecided")
        .await
        .unwrap();
    rig.fake
        .decide(intent.as_str(), Verdict::Approved)
        .await
        .unwrap();
    assert_eq!(rig.shown(&intent).await.state, P::Authorised);
}

#[tokio::test]
async fn refunds_add_up_to_what_was_taken() {
    let rig = Rig::new();
    let intent = rig.captured(1).await;
    let part = rig.refund(&intent, 400, "refund-1").await.unwrap();
    assert_eq!(told(&part), (P::PartlyRefunded, PRICE, 400));
    assert!(is_refused(rig.refund(&intent, 501, "refund-2").await, 400));
    let all = rig.refund(&intent, 500, "refund-3").await.unwrap();
    assert_eq!(told(&all), (P::Refunded, PRICE, PRICE));
    assert!(is_refused(rig.refund(&intent, 1, "refund-4").await, 400));
    assert_eq!(rig.money(&intent).kept(), 0);
}

/// Stripe lists a hundred at a time, the newest first.
#[tokio::test]
async fn refunds_add_up_over_pages() {
    let rig = Rig::new();
    let intent = rig.captured(1).await;
    let first = rig.refund(&intent, 1, "refund-1").await.unwrap();
    assert_eq!(told(&first), (P::PartlyRefunded, PRICE, 1));
    for nth in 2..=102 {
        let back = rig.refund(&intent, 1, &format!("refund-{nth}")).await;
        assert_eq!(told(&back.unwrap()), (P::PartlyRefunded, PRICE, nth));
    }
    rig.refund(&intent, 1, "refund-1").await.unwrap();
    assert_eq!(rig.money(&intent).refunds, 102, "the first is found");
}

#[tokio::test]
async fn the_key_of_a_refund_works_once_for_good() {
    let rig = Rig::new();
    let intent = rig.captured(1).await;
    for _ in 0..3 {
        let part = rig.refund(&intent, 400, "refund-1").await.unwrap();
        assert_eq!(told(&part), (P::PartlyRefunded, PRICE, 400));
        rig.clock.advance(Duration::from_hours(25));
    }
    assert_eq!(rig.money(&intent).refunds, 1);
}

#[tokio::test]
async fn a_refund_that_failed_needs_another_key() {
    let rig = Rig::new();
    let intent = rig.captured(1).await;
    for step in ["refund-1", "refund-2"] {
        rig.fake
            .next_call(Route::CreateRefund, CallFault::RefundFails);
        for _ in 0..2 {
            let error = rig.refund(&intent, PRICE, step).await.unwrap_err();
            let is_it =
                matches!(&error, ProviderError::Refused { code, .. } if code == REFUND_FAILED);
            assert!(is_it, "{error}");
        }
    }
    let done = rig.refund(&intent, PRICE, "refund-3").await.unwrap();
    assert_eq!(told(&done), (P::Refunded, PRICE, PRICE));
    let money = rig.money(&intent);
    assert_eq!((money.refunds, money.failed_refunds), (3, 2));
}

#[tokio::test]
async fn what_was_never_made_is_not_found() {
    let rig = Rig::new();
    let none = IntentId::parse("pi_none").unwrap();
    assert!(is_refused(rig.stripe.retrieve(&none).await, 404));
    assert!(is_refused(rig.capture(&none).await, 404));
    assert!(is_refused(rig.refund(&none, 1, "refund").await, 404));
}

#[tokio::test]
async fn a_wrong_key_is_a_matter_of_settings() {
    let rig = Rig::new();
    let intent = rig.created(1).await;
    let stranger = adapter("sk_test_other", &rig.fake.url(), 30_000);
    let refused = [
        stranger.create(ask(2)).await,
        stranger.retrieve(&intent).await,
        stranger
            .cancel(&intent, super::rig::key(&intent, "cancel"))
            .await,
    ];
    for result in refused {
        let error = result.unwrap_err();
        assert!(matches!(error, ProviderError::Misconfigured(_)), "{error}");
        assert!(!error.to_string().contains("sk_test"), "{error}");
    }
    assert_eq!(rig.fake.intents().len(), 1);
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let rig = Rig::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let elsewhere = format!("http://{}", listener.local_addr().unwrap());
    let location = format!("{}/v1/payment_intents/pi_1", rig.fake.url());
    let answering = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut asked = [0; 4096];
        let length = stream.read(&mut asked).unwrap();
        let answer = format!(
            "HTTP/1.1 307 -\r\nLocation: {location}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        );
        stream.write_all(answer.as_bytes()).unwrap();
        length
    });
    let stripe = adapter("sk_test_x", &elsewhere, 30_000);
    let intent = IntentId::parse("pi_1").unwrap();
    let error = stripe.retrieve(&intent).await.unwrap_err();
    assert!(matches!(error, ProviderError::Misconfigured(_)), "{error}");
    assert!(answering.join().unwrap() > 0);
    assert!(rig.fake.calls().is_empty());
}

#[tokio::test]
async fn nothing_secret_is_shown() {
    let rig = Rig::new();
    let intent = rig.create(1).await.unwrap();
    let secret = intent.client_secret.clone().unwrap();
    let shown = format!("{:?} {intent:?}", rig.stripe);
    assert!(!shown.contains(secret.expose()) && !shown.contains(rig.fake.secret_key()));
}

/// A platform's key acts for a connected account: each call names it.
#[tokio::test]
async fn every_call_names_the_connected_account() {
    let rig = Rig::new();
    rig.fake.connect();
    let refused = rig.create(1).await.unwrap_err();
    assert!(
        matches!(refused, ProviderError::Misconfigured(_)),
        "{refused}"
    );
    let own = rig.fake.account().to_owned();
    let stripe = rig.for_account(&own);
    let intent = stripe.create(ask(1)).await.unwrap().id;
    rig.fake.pay(intent.as_str(), "pm_card_visa").await.unwrap();
    let key = |step| ProviderKey::of(BookingId::from_bits(1), step).unwrap();
    stripe.capture(&intent, key("capture")).await.unwrap();
    let part = Amount::from_minor(100);
    stripe.refund(&intent, part, key("refund")).await.unwrap();
    let calls = rig.fake.calls();
    let named = calls
        .iter()
        .filter(|call| call.account.as_ref() == Some(&own));
    assert_eq!(named.count(), calls.len() - 1, "{calls:?}");
    let stranger = rig.for_account("acct_of_no_one");
    let refused = stranger.create(ask(2)).await.unwrap_err();
    assert!(
        matches!(refused, ProviderError::Misconfigured(_)),
        "{refused}"
    );
}
