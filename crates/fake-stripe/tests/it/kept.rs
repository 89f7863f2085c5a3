//! An account that outlives its process, in a file.

use std::path::{Path, PathBuf};

use fake_stripe::FakeStripe;
use serde_json::Value;

use super::client::{HttpAnswer, call};

const CREATE: &str = "amount=900&currency=eur&capture_method=manual";

fn file(name: &str) -> PathBuf {
    let own = format!("stripe-{name}-{}.jsonl", std::process::id());
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(own);
    // What an earlier run of this number left, if anything.
    std::fs::remove_file(&path).ok();
    path
}

fn post(stripe: &FakeStripe, path: &str, body: &str, key: &str) -> HttpAnswer {
    let bearer = stripe.secret_key();
    let lines = format!("Authorization: Bearer {bearer}\r\nIdempotency-Key: {key}\r\n");
    call(&stripe.url(), "POST", path, (body, &lines)).unwrap()
}

fn step(stripe: &FakeStripe, intent: &str, step: &str, body: &str) -> HttpAnswer {
    let path = format!("/v1/payment_intents/{intent}/{step}");
    post(stripe, &path, body, &format!("{step}-{intent}"))
}

fn create(stripe: &FakeStripe, key: &str) -> String {
    let created = post(stripe, "/v1/payment_intents", CREATE, key);
    created.text("/id").to_owned()
}

fn sold(stripe: &FakeStripe, key: &str) -> String {
    let intent = create(stripe, key);
    step(stripe, &intent, "confirm", "payment_method=pm_card_visa");
    let taken = step(stripe, &intent, "capture", "");
    assert_eq!(taken.text("/status"), "succeeded");
    intent
}

fn refund(stripe: &FakeStripe, intent: &str, amount: i64, key: &str) -> HttpAnswer {
    let body = format!("payment_intent={intent}&amount={amount}");
    post(stripe, "/v1/refunds", &body, key)
}

fn status_of(stripe: &FakeStripe, intent: &str) -> String {
    let intents = stripe.intents();
    let found = intents.iter().find(|one| one["id"] == intent).unwrap();
    found["status"].as_str().unwrap().to_owned()
}

#[test]
fn what_was_taken_goes_back_after_a_restart_and_once() {
    let path = file("refund");
    let first = FakeStripe::start_kept(&path).unwrap();
    let intent = sold(&first, "k");
    let half = refund(&first, &intent, 400, "half");
    drop(first);

    let second = FakeStripe::start_kept(&path).unwrap();
    assert_eq!(create(&second, "k"), intent, "the key was forgotten");
    let again = refund(&second, &intent, 400, "half");
    assert_eq!(again.json, half.json, "the same refund, told again");
    assert_eq!(refund(&second, &intent, 501, "more").status, 400);
    assert_eq!(refund(&second, &intent, 500, "rest").status, 200);
    drop(second);

    let third = FakeStripe::start_kept(&path).unwrap();
    assert_eq!(refund(&third, &intent, 1, "none").status, 400);
    std::fs::remove_file(path).unwrap();
}

#[test]
fn an_intent_is_found_as_it_was_left() {
    let path = file("states");
    let first = FakeStripe::start_kept(&path).unwrap();
    let cards = [
        "chargeDeclined",
        "threeDSecure2Required",
        "undecided",
        "visa",
    ];
    let left = cards.map(|card| {
        let intent = create(&first, card);
        let method = format!("payment_method=pm_card_{card}");
        step(&first, &intent, "confirm", &method);
        intent
    });
    let before = first.intents();
    let address = first.url();
    drop(first);

    let second = FakeStripe::start_kept(&path).unwrap();
    let text = |intents: &[Value]| serde_json::to_string(intents).unwrap();
    // The bank's page is where the provider is now.
    assert_eq!(
        text(&second.intents()),
        text(&before).replace(&address, &second.url())
    );
    assert_eq!(second.undecided(), [left[2].clone()]);
    let fresh = create(&second, "fresh");
    assert!(left.iter().all(|earlier| *earlier < fresh), "names go on");
    std::fs::remove_file(path).unwrap();
}

#[test]
fn a_line_cut_by_a_kill_is_as_if_nothing_was_asked() {
    let path = file("torn");
    let first = FakeStripe::start_kept(&path).unwrap();
    let intent = sold(&first, "k");
    drop(first);
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&path, &whole[..whole.len() - 9]).unwrap();

    let second = FakeStripe::start_kept(&path).unwrap();
    assert_eq!(status_of(&second, &intent), "requires_capture");
    step(&second, &intent, "capture", "");
    drop(second);
    let third = FakeStripe::start_kept(&path).unwrap();
    assert_eq!(status_of(&third, &intent), "succeeded");
    drop(third);

    std::fs::write(&path, [b"no line of ours\n", whole.as_slice()].concat()).unwrap();
    assert!(FakeStripe::start_kept(&path).is_err());
    std::fs::remove_file(path).unwrap();
}
