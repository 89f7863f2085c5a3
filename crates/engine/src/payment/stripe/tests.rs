//! Conversion of Stripe's objects to our types.

use serde_json::{Value, json};
use soldonce_core::{BookingId, PaymentState as P};

use super::shape::{RefundShape, intent, read as parsed};
use crate::payment::{Intent, ProviderError};

fn shape(status: &str) -> Value {
    json!({
        "id": "pi_1",
        "object": "payment_intent",
        "amount": 900,
        "amount_received": 0,
        "cancellation_reason": null,
        "client_secret": "pi_1_secret_2",
        "currency": "eur",
        "last_payment_error": null,
        "latest_charge": null,
        "livemode": false,
        "metadata": { "booking": BookingId::from_bits(7).to_string() },
        "status": status,
    })
}

fn charge(status: &str, amounts: [i64; 3]) -> Value {
    let [amount, captured, refunded] = amounts;
    json!({
        "id": "ch_1",
        "amount": amount,
        "amount_captured": captured,
        "amount_refunded": refunded,
        "status": status,
    })
}

fn with(mut shape: Value, fields: &[(&str, Value)]) -> Value {
    for (name, value) in fields {
        shape[name] = value.clone();
    }
    shape
}

fn charged(amounts: [i64; 3]) -> Value {
    let charge = charge("succeeded", amounts);
    with(shape("succeeded"), &[("latest_charge", charge)])
}

fn read(shape: &Value) -> Result<Intent, ProviderError> {
    intent(shape.to_string().as_bytes()).map(|seen| seen.intent)
}

/// Returns state, captured, refunded, and whether it may be paid.
fn told(shape: &Value) -> (P, i64, i64, bool) {
    let intent = read(shape).unwrap();
    let (captured, refunded) = (intent.captured.minor(), intent.refunded.minor());
    (intent.state, captured, refunded, intent.may_be_paid)
}

#[test]
fn each_status_is_a_state() {
    let of = |status| told(&shape(status));
    assert_eq!(of("requires_payment_method"), (P::Created, 0, 0, true));
    assert_eq!(of("requires_confirmation"), (P::Created, 0, 0, true));
    assert_eq!(of("requires_action"), (P::ActionRequired, 0, 0, true));
    assert_eq!(of("processing"), (P::Processing, 0, 0, true));
    assert_eq!(of("requires_capture"), (P::Authorised, 0, 0, false));
    assert_eq!(of("canceled"), (P::Failed, 0, 0, false));
}

#[test]
fn an_unknown_status_is_an_unknown_outcome() {
    let error = read(&shape("requires_blessing")).unwrap_err();
    assert!(error.may_be_repeated(), "{error}");
}

#[test]
fn a_declined_intent_may_still_be_paid() {
    let error = json!({ "code": "card_declined", "decline_code": "insufficient_funds" });
    let declined = with(
        shape("requires_payment_method"),
        &[("last_payment_error", error)],
    );
    assert_eq!(told(&declined), (P::Declined, 0, 0, true));
}

#[test]
fn totals_are_those_of_the_charge() {
    let of = |amounts| told(&charged(amounts));
    assert_eq!(of([900, 900, 0]), (P::Captured, 900, 0, false));
    assert_eq!(of([900, 900, 400]), (P::PartlyRefunded, 900, 400, false));
    assert_eq!(of([900, 900, 900]), (P::Refunded, 900, 900, false));
}

#[test]
fn what_was_never_taken_is_not_given_back() {
    let of = |amounts| told(&charged(amounts));
    assert_eq!(of([900, 600, 300]), (P::Captured, 600, 0, false));
    assert_eq!(of([900, 600, 500]), (P::PartlyRefunded, 600, 200, false));
    assert_eq!(of([900, 600, 900]), (P::Refunded, 600, 600, false));
}

#[test]
fn a_captured_intent_with_a_named_charge_is_as_it_was_captured() {
    let named = [
        ("latest_charge", json!("ch_1")),
        ("amount_received", json!(900)),
    ];
    assert_eq!(
        told(&with(shape("succeeded"), &named)),
        (P::Captured, 900, 0, false)
    );
}

#[test]
fn a_cancelled_intent_was_voided_lapsed_or_never_reserved() {
    let of = |status, amounts, reason| {
        let fields = [
            ("latest_charge", charge(status, amounts)),
            ("cancellation_reason", json!(reason)),
        ];
        told(&with(shape("canceled"), &fields))
    };
    let all = [900, 0, 900];
    assert_eq!(of("succeeded", all, None::<&str>), (P::Voided, 0, 0, false));
    let asked = Some("requested_by_customer");
    assert_eq!(of("succeeded", all, asked), (P::Voided, 0, 0, false));
    assert_eq!(
        of("succeeded", all, Some("automatic")),
        (P::Lapsed, 0, 0, false)
    );
    assert_eq!(
        of("succeeded", all, Some("expired")),
        (P::Lapsed, 0, 0, false)
    );
    assert_eq!(of("failed", [900, 0, 0], None), (P::Failed, 0, 0, false));
}

#[test]
fn a_cancelled_intent_without_its_charge_in_full_is_only_half_told() {
    let named = with(shape("canceled"), &[("latest_charge", json!("ch_1"))]);
    let mut untold = shape("canceled");
    untold.as_object_mut().unwrap().remove("latest_charge");
    let half = |shape: &Value| intent(shape.to_string().as_bytes()).unwrap().is_half;
    assert!(half(&named));
    assert!(half(&untold), "an old API has `charges`");
    assert!(!half(&shape("canceled")));
    assert!(!half(&shape("succeeded")));
}

#[test]
fn names_and_money_are_ours() {
    let intent = read(&shape("requires_capture")).unwrap();
    assert_eq!(intent.id.as_str(), "pi_1");
    assert_eq!(intent.amount.minor(), 900);
    assert_eq!(intent.currency.as_str(), "EUR");
    assert_eq!(intent.booking, Some(BookingId::from_bits(7)));
    assert_eq!(intent.client_secret.unwrap().expose(), "pi_1_secret_2");
    let foreign = with(shape("processing"), &[("metadata", json!({}))]);
    assert_eq!(read(&foreign).unwrap().booking, None);
}

#[test]
fn odd_money_is_not_believed() {
    for odd in [
        with(shape("processing"), &[("amount", json!(-1))]),
        with(shape("processing"), &[("amount", json!(1.5))]),
        with(shape("processing"), &[("amount", json!("900"))]),
        with(shape("processing"), &[("currency", json!("euro"))]),
        with(shape("processing"), &[("id", json!("pi_1/capture"))]),
        charged([900, 900, 901]),
        charged([900, 900, -1]),
        charged([900, -1, 0]),
        charged([i64::MIN, 1, i64::MAX]),
    ] {
        let error = read(&odd).unwrap_err();
        assert!(matches!(error, ProviderError::Unknown(_)), "{odd}");
    }
}

#[test]
fn an_answer_that_cannot_be_read_is_not_repeated_in_the_error() {
    let secret = "{\"id\": 7, \"client_secret\": \"pi_1_secret_2\"}";
    let error = intent(secret.as_bytes()).unwrap_err().to_string();
    assert!(!error.contains("secret_2"), "{error}");
}

#[test]
fn a_refund_that_failed_is_a_refusal() {
    let of = |status| {
        let body = json!({ "id": "re_1", "amount": 9, "status": status }).to_string();
        let refund: RefundShape = parsed(body.as_bytes()).unwrap();
        refund.require_alive()
    };
    for alive in ["succeeded", "pending", "requires_action"] {
        assert_eq!(of(alive), Ok(()), "{alive}");
    }
    for dead in ["failed", "canceled"] {
        let error = of(dead).unwrap_err();
        let is_it =
            matches!(&error, ProviderError::Refused { code, .. } if code == "refund_failed");
        assert!(is_it && !error.may_be_repeated(), "{error}");
    }
}
