//! Money that goes back, and some that returns.

use fake_stripe::{CallFault, Route};

use super::client::{HttpAnswer, Rig};

fn refund(rig: &Rig, intent: &str, amount: i64) -> HttpAnswer {
    let form = format!("payment_intent={intent}&amount={amount}&metadata%5Bkey%5D=k{amount}");
    rig.call("POST", "/v1/refunds", &form)
}

#[test]
fn parts_go_back_until_nothing_is_left() {
    let rig = Rig::new();
    let intent = rig.captured_intent();
    assert_eq!(refund(&rig, &intent, 400).text("/status"), "succeeded");
    let too_much = refund(&rig, &intent, 501);
    assert_eq!(
        (too_much.status, too_much.text("/error/code")),
        (400, "amount_too_large")
    );
    assert_eq!(refund(&rig, &intent, 500).status, 200);
    let more = refund(&rig, &intent, 1);
    assert_eq!(
        (more.status, more.text("/error/code")),
        (400, "charge_already_refunded")
    );
    assert_eq!(
        rig.shown(&intent).number("/latest_charge/amount_refunded"),
        900
    );
    let money = rig.money(&intent);
    assert_eq!((money.kept(), money.refunds), (0, 2));
}

#[test]
fn without_an_amount_all_goes_back() {
    let rig = Rig::new();
    let intent = rig.captured_intent();
    refund(&rig, &intent, 100);
    let rest = rig.call("POST", "/v1/refunds", &format!("payment_intent={intent}"));
    assert_eq!(rest.number("/amount"), 800);
}

#[test]
fn what_was_not_taken_cannot_go_back() {
    let rig = Rig::new();
    for intent in [rig.intent(), rig.authorised_intent()] {
        assert_eq!(refund(&rig, &intent, 1).status, 400);
        rig.step(&intent, "cancel", "");
        assert_eq!(refund(&rig, &intent, 1).status, 400);
    }
    let part = rig.authorised_intent();
    rig.step(&part, "capture", "amount_to_capture=600");
    assert_eq!(refund(&rig, &part, 601).status, 400, "300 were never taken");
    assert_eq!(refund(&rig, &part, 600).status, 200);
    assert_eq!(refund(&rig, "pi_none", 1).status, 404);
}

#[test]
fn refunds_are_found_by_name_and_by_intent() {
    let rig = Rig::new();
    let (intent, other) = (rig.captured_intent(), rig.captured_intent());
    let first = refund(&rig, &intent, 100).text("/id").to_owned();
    refund(&rig, &other, 1);
    let second = refund(&rig, &intent, 200).text("/id").to_owned();
    let listed = rig.call("GET", &format!("/v1/refunds?payment_intent={intent}"), "");
    let found = [listed.text("/data/0/id"), listed.text("/data/1/id")];
    assert_eq!(found, [second.as_str(), first.as_str()]);
    assert_eq!(listed.text("/data/1/metadata/key"), "k100");
    let page = rig.call("GET", "/v1/refunds?limit=2", "");
    assert_eq!(page.json["has_more"], true);
    let last = page.text("/data/1/id");
    let rest = rig.call(
        "GET",
        &format!("/v1/refunds?limit=2&starting_after={last}"),
        "",
    );
    assert_eq!(rest.json["has_more"], false);
    assert_eq!(
        (rest.text("/data/0/id"), rest.text("/data/1/id")),
        (&*first, "")
    );
    let unknown = rig.call("GET", "/v1/refunds?starting_after=re_none", "");
    assert_eq!(unknown.status, 400);
    let shown = rig.call("GET", &format!("/v1/refunds/{first}"), "");
    assert_eq!(shown.number("/amount"), 100);
}

#[tokio::test]
async fn a_refund_that_fails_later_leaves_the_money_here() {
    let rig = Rig::new();
    let intent = rig.captured_intent();
    let refund = refund(&rig, &intent, 900).text("/id").to_owned();
    for _ in 0..2 {
        rig.stripe.fail_refund(&refund).await.unwrap();
    }
    let shown = rig.call("GET", &format!("/v1/refunds/{refund}"), "");
    assert_eq!(shown.text("/status"), "failed");
    assert_eq!(
        rig.shown(&intent).number("/latest_charge/amount_refunded"),
        0
    );
    let money = rig.money(&intent);
    assert_eq!((money.kept(), money.failed_refunds), (900, 1));
    assert!(rig.stripe.fail_refund("re_none").await.is_err());
}

#[test]
fn a_refund_may_fail_twice_and_then_go() {
    let rig = Rig::new();
    let intent = rig.captured_intent();
    for _ in 0..2 {
        rig.stripe
            .next_call(Route::CreateRefund, CallFault::RefundFails);
        assert_eq!(refund(&rig, &intent, 900).text("/status"), "failed");
    }
    assert_eq!(refund(&rig, &intent, 900).text("/status"), "succeeded");
    let money = rig.money(&intent);
    assert_eq!(
        (money.kept(), money.refunds, money.failed_refunds),
        (0, 3, 2)
    );
}
