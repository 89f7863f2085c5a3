//! Which state follows which, and where the money is.

use std::time::Duration;

use fake_stripe::Verdict;

use super::client::Rig;

#[test]
fn money_is_reserved_then_taken_once() {
    let rig = Rig::new();
    let intent = rig.authorised_intent();
    let reserved = rig.money(&intent);
    assert_eq!((reserved.reserved(), reserved.captured), (900, 0));
    let taken = rig.step(&intent, "capture", "");
    assert_eq!((taken.status, taken.number("/amount_received")), (200, 900));
    let again = rig.step(&intent, "capture", "");
    assert_eq!(again.status, 400);
    assert_eq!(again.text("/error/code"), "payment_intent_unexpected_state");
    assert_eq!(again.text("/error/payment_intent/status"), "succeeded");
    let money = rig.money(&intent);
    assert_eq!(
        (money.kept(), money.captures, money.reserved()),
        (900, 1, 0)
    );
    assert_eq!(money.booking.as_deref(), Some("b1"));
}

#[test]
fn what_is_not_taken_of_a_part_is_let_go() {
    let rig = Rig::new();
    let intent = rig.authorised_intent();
    assert_eq!(
        rig.step(&intent, "capture", "amount_to_capture=901").status,
        400
    );
    rig.step(&intent, "capture", "amount_to_capture=600");
    let shown = rig.shown(&intent);
    assert_eq!(shown.number("/latest_charge/amount_captured"), 600);
    assert_eq!(shown.number("/latest_charge/amount_refunded"), 300);
    let money = rig.money(&intent);
    assert_eq!(
        (money.kept(), money.released, money.reserved()),
        (600, 300, 0)
    );
}

#[test]
fn a_cancel_lets_go_and_nothing_follows_it() {
    let rig = Rig::new();
    let intent = rig.authorised_intent();
    let cancelled = rig.step(&intent, "cancel", "cancellation_reason=abandoned");
    assert_eq!(cancelled.text("/status"), "canceled");
    assert_eq!(cancelled.text("/cancellation_reason"), "abandoned");
    assert_eq!(rig.step(&intent, "capture", "").status, 400);
    assert_eq!(rig.step(&intent, "cancel", "").status, 400);
    assert_eq!(rig.pay(&intent, "pm_card_visa").status, 400);
    let money = rig.money(&intent);
    assert_eq!((money.reserved(), money.captured, money.voids), (0, 0, 1));
}

#[test]
fn taken_money_cannot_be_cancelled() {
    let rig = Rig::new();
    let intent = rig.captured_intent();
    assert_eq!(rig.step(&intent, "cancel", "").status, 400);
    assert_eq!(rig.money(&intent).kept(), 900);
}

#[test]
fn a_declined_card_leaves_the_intent_to_another() {
    let rig = Rig::new();
    let intent = rig.intent();
    let declined = rig.pay(&intent, "pm_card_chargeDeclinedInsufficientFunds");
    assert_eq!(declined.status, 402);
    assert_eq!(declined.text("/error/decline_code"), "insufficient_funds");
    let shown = rig.shown(&intent);
    assert_eq!(shown.text("/status"), "requires_payment_method");
    assert_eq!(shown.text("/last_payment_error/code"), "card_declined");
    assert_eq!(shown.text("/latest_charge/status"), "failed");
    assert_eq!(rig.step(&intent, "capture", "").status, 400);
    assert_eq!(
        rig.pay(&intent, "pm_card_visa").text("/status"),
        "requires_capture"
    );
    assert_eq!(rig.shown(&intent).text("/last_payment_error/code"), "");
    assert_eq!(rig.money(&intent).authorisations, 1);
}

#[test]
fn a_card_may_decline_at_first() {
    let rig = Rig::new();
    let intent = rig.intent();
    assert_eq!(rig.pay(&intent, "pm_card_declinedAtFirst").status, 402);
    let paid = rig.pay(&intent, "pm_card_declinedAtFirst");
    assert_eq!(paid.text("/status"), "requires_capture");
}

#[test]
fn the_bank_page_says_yes_or_no() {
    let rig = Rig::new();
    for (ok, status) in [
        ("true", "requires_capture"),
        ("false", "requires_payment_method"),
    ] {
        let intent = rig.intent();
        let asked = rig.pay(&intent, "pm_card_threeDSecure2Required");
        assert_eq!(asked.text("/status"), "requires_action");
        let page = asked.text("/next_action/redirect_to_url/url").to_owned();
        let path = page.strip_prefix(&rig.stripe.url()).unwrap();
        let body = format!("{{\"ok\":{ok}}}");
        let done = rig.try_call("POST", path, &body, "").unwrap();
        assert_eq!((done.status, done.text("/status")), (200, status));
        assert_eq!(rig.try_call("POST", path, &body, "").unwrap().status, 400);
    }
}

#[tokio::test]
async fn a_card_that_does_not_decide_stays_in_between() {
    let rig = Rig::new();
    for (verdict, status) in [
        (Verdict::Approved, "requires_capture"),
        (Verdict::Declined, "requires_payment_method"),
    ] {
        let intent = rig.intent();
        assert_eq!(
            rig.pay(&intent, "pm_card_undecided").text("/status"),
            "processing"
        );
        assert_eq!(rig.step(&intent, "capture", "").status, 400);
        rig.stripe.decide(&intent, verdict).await.unwrap();
        assert_eq!(rig.shown(&intent).text("/status"), status);
        assert!(rig.stripe.decide(&intent, verdict).await.is_err());
    }
}

#[tokio::test]
async fn a_late_card_cannot_be_called_back_until_it_has_decided() {
    let rig = Rig::new();
    let intent = rig.intent();
    let asked = rig.pay(&intent, "pm_card_late");
    assert_eq!(asked.text("/status"), "processing");
    assert_eq!(rig.step(&intent, "cancel", "").status, 400);
    let decided = rig.stripe.decide(&intent, Verdict::Approved).await;
    decided.unwrap();
    assert_eq!(rig.step(&intent, "cancel", "").status, 200);
    assert_eq!(rig.money(&intent).reserved(), 0);
}

#[tokio::test]
async fn a_transfer_takes_the_money_with_the_yes() {
    let rig = Rig::new();
    let intent = rig.intent();
    rig.pay(&intent, "pm_card_transfer");
    assert_eq!(rig.step(&intent, "cancel", "").status, 400);
    let decided = rig.stripe.decide(&intent, Verdict::Approved).await;
    decided.unwrap();
    assert_eq!(rig.shown(&intent).text("/status"), "succeeded");
    assert_eq!(rig.money(&intent).kept(), 900);
}

#[tokio::test]
async fn a_page_has_the_secret_of_its_own_intent_and_proves_its_buyer() {
    let rig = Rig::new();
    let (intent, other) = (rig.intent(), rig.intent());
    let secret = rig.shown(&intent).text("/client_secret").to_owned();
    assert!(rig.stripe.is_paid_with(&intent, &secret));
    assert!(!rig.stripe.is_paid_with(&other, &secret));
    assert!(rig.stripe.prove(&intent, Verdict::Approved).await.is_err());
    rig.pay(&intent, "pm_card_threeDSecure2Required");
    rig.stripe.prove(&intent, Verdict::Declined).await.unwrap();
    assert_eq!(
        rig.shown(&intent).text("/status"),
        "requires_payment_method"
    );
}

#[test]
fn an_authorisation_lapses_after_seven_days() {
    let rig = Rig::new();
    let intent = rig.authorised_intent();
    let days = Duration::from_hours(7 * 24);
    rig.clock
        .advance(days.checked_sub(Duration::from_millis(1)).unwrap());
    assert_eq!(rig.shown(&intent).text("/status"), "requires_capture");
    rig.clock.advance(Duration::from_millis(1));
    let shown = rig.shown(&intent);
    assert_eq!(shown.text("/status"), "canceled");
    assert_eq!(shown.text("/cancellation_reason"), "automatic");
    assert_eq!(rig.step(&intent, "capture", "").status, 400);
    let money = rig.money(&intent);
    assert_eq!((money.reserved(), money.voids, money.released), (0, 0, 900));
}

#[tokio::test]
async fn an_authorisation_alone_lapses() {
    let rig = Rig::new();
    let (created, authorised, taken) =
        (rig.intent(), rig.authorised_intent(), rig.captured_intent());
    rig.stripe.lapse(&authorised).await.unwrap();
    for (intent, status) in [
        (created, "requires_payment_method"),
        (authorised, "canceled"),
        (taken, "succeeded"),
    ] {
        assert!(rig.stripe.lapse(&intent).await.is_err(), "{status}");
        assert_eq!(rig.shown(&intent).text("/status"), status);
    }
}

#[test]
fn automatic_capture_takes_at_once() {
    let rig = Rig::new();
    let created = rig.call("POST", "/v1/payment_intents", "amount=5&currency=eur");
    let intent = created.text("/id").to_owned();
    assert_eq!(
        rig.pay(&intent, "pm_card_visa").text("/status"),
        "succeeded"
    );
    assert_eq!(rig.money(&intent).kept(), 5);
}

#[test]
fn each_answer_has_its_charge_in_full_if_that_is_asked_for() {
    let rig = Rig::new();
    let intent = rig.authorised_intent();
    for step in ["capture", "cancel"] {
        let intent = rig.authorised_intent();
        let answer = rig.step(&intent, step, "expand%5B%5D=latest_charge");
        assert_eq!(answer.number("/latest_charge/amount"), 900, "{step}");
    }
    let answer = rig.step(&intent, "capture", "");
    assert!(answer.text("/latest_charge").starts_with("ch_"));
}

#[test]
fn an_unknown_card_is_refused() {
    let rig = Rig::new();
    let intent = rig.intent();
    assert_eq!(rig.pay(&intent, "pm_card_unheardOf").status, 400);
    assert_eq!(
        rig.shown(&intent).text("/status"),
        "requires_payment_method"
    );
}
