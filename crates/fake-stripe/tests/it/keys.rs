//! Idempotency keys over the socket; the rules by themselves are tested in the crate.

use std::time::Duration;

use fake_stripe::{CallFault, Route};

use super::client::{Rig, call};

const CREATE: &str = "amount=900&currency=eur&capture_method=manual";
const PATH: &str = "/v1/payment_intents";

#[test]
fn the_same_key_is_one_intent_and_says_so() {
    let rig = Rig::new();
    let first = rig.with_key(PATH, CREATE, "k").unwrap();
    let again = rig.with_key(PATH, CREATE, "k").unwrap();
    assert_eq!(first.json, again.json);
    assert!(!first.head.contains("idempotent-replayed"));
    assert!(again.head.contains("idempotent-replayed: true"));
    assert_eq!(rig.stripe.intents().len(), 1);
}

#[test]
fn the_same_key_for_something_else_is_refused() {
    let rig = Rig::new();
    rig.with_key(PATH, CREATE, "k").unwrap();
    let other = rig.with_key(PATH, "amount=901&currency=eur", "k").unwrap();
    assert_eq!(
        (other.status, other.text("/error/type")),
        (400, "idempotency_error")
    );
    let path = "/v1/refunds";
    assert_eq!(rig.with_key(path, CREATE, "k").unwrap().status, 400);
    assert_eq!(rig.stripe.intents().len(), 1);
}

#[test]
fn a_key_is_as_good_as_new_after_a_day() {
    let rig = Rig::new();
    let first = rig.with_key(PATH, CREATE, "k").unwrap();
    rig.clock.advance(Duration::from_hours(24));
    let later = rig.with_key(PATH, CREATE, "k").unwrap();
    assert_ne!(first.text("/id"), later.text("/id"));
}

#[test]
fn a_call_that_did_not_run_uses_up_no_key() {
    let rig = Rig::new();
    assert_eq!(rig.with_key(PATH, "amount=0", "k").unwrap().status, 400);
    assert_eq!(rig.with_key(PATH, CREATE, "k").unwrap().status, 200);
}

#[test]
fn a_refusal_that_ran_is_remembered() {
    let rig = Rig::new();
    let intent = rig.intent();
    let path = format!("{PATH}/{intent}/capture");
    assert_eq!(rig.with_key(&path, "", "k").unwrap().status, 400);
    rig.pay(&intent, "pm_card_visa");
    let again = rig.with_key(&path, "", "k").unwrap();
    assert!(again.status == 400 && again.head.contains("idempotent-replayed: true"));
    assert_eq!(rig.with_key(&path, "", "other").unwrap().status, 200);
}

#[test]
fn a_failure_after_the_effect_is_remembered_and_took_effect_once() {
    let rig = Rig::new();
    let intent = rig.authorised_intent();
    let path = format!("{PATH}/{intent}/capture");
    rig.stripe.next_call(Route::Capture, CallFault::ErrorAfter);
    for _ in 0..3 {
        assert_eq!(rig.with_key(&path, "", "k").unwrap().status, 500);
    }
    assert_eq!(rig.money(&intent).captures, 1);
    assert_eq!(rig.shown(&intent).text("/status"), "succeeded");
}

#[tokio::test]
async fn a_key_at_work_is_in_conflict() {
    let rig = Rig::new();
    rig.stripe
        .next_call(Route::CreateIntent, CallFault::HoldCall);
    let (url, lines) = (rig.stripe.url(), rig.authorised("Idempotency-Key: k\r\n"));
    let first = std::thread::spawn(move || call(&url, "POST", PATH, (CREATE, &lines)).unwrap());
    rig.stripe.until_held(1).await;
    let second = rig.with_key(PATH, CREATE, "k").unwrap();
    assert_eq!(
        (second.status, second.text("/error/code")),
        (409, "idempotency_key_in_use")
    );
    assert!(rig.stripe.intents().is_empty());
    rig.stripe.release();
    let first = first.join().unwrap();
    assert_eq!(first.status, 200);
    let third = rig.with_key(PATH, CREATE, "k").unwrap();
    assert_eq!(third.text("/id"), first.text("/id"));
}
