//! What is told of what happened: signed, at least once, and with every trick of the plan.

use std::time::Duration;

use fake_stripe::{CallFault, Delivery, Plan, Route, signature};
use soldonce_testkit::webhooks::{Answer, Received, Receiver};

use super::client::{Rig, until};

const NOW_S: i64 = 1_767_225_600;
const SUCCEEDED: &str = "payment_intent.succeeded";

fn is_signed(one: &Received, secret: &str, second: i64) -> bool {
    one.signature == signature::header(&[secret], second, &one.body)
}

/// The kinds of `one` among what came.
fn count(rig: &Rig, kind: &str) -> usize {
    rig.kinds().iter().filter(|own| *own == kind).count()
}

#[tokio::test]
async fn each_step_is_told_and_signed() {
    let rig = Rig::new();
    let intent = rig.captured_intent();
    rig.call("POST", "/v1/refunds", &format!("payment_intent={intent}"));
    let declined = rig.intent();
    rig.pay(&declined, "pm_card_chargeDeclined");
    rig.step(&declined, "cancel", "");
    rig.stripe.quiet().await;
    let expected = [
        "payment_intent.created",
        "charge.succeeded",
        "payment_intent.amount_capturable_updated",
        "charge.captured",
        SUCCEEDED,
        "refund.created",
        "charge.refunded",
        "payment_intent.created",
        "charge.failed",
        "payment_intent.payment_failed",
        "payment_intent.canceled",
    ];
    assert_eq!(rig.kinds(), expected);
    let secret = rig.stripe.webhook_secret();
    assert!(
        rig.inbox
            .received()
            .iter()
            .all(|one| is_signed(one, secret, NOW_S))
    );
    let listed = rig.call("GET", &format!("/v1/events?type={SUCCEEDED}"), "");
    assert_eq!(listed.text("/data/0/data/object/id"), intent);
    assert!(
        rig.notices()
            .iter()
            .all(|notice| notice.get("account").is_none())
    );
}

#[tokio::test]
async fn what_is_not_taken_is_sent_again_with_growing_waits() {
    let rig = Rig::new();
    rig.inbox.answer_next([500, 302, 400].map(Answer::Status));
    rig.intent();
    for (sent, wait) in [(1, 1), (2, 2), (3, 4)] {
        let is_due = || rig.stripe.sent().len() == sent && rig.stripe.waiting_notices() == 1;
        until("a notice that was not taken", is_due);
        rig.clock.advance(Duration::from_secs(wait));
    }
    rig.stripe.quiet().await;
    let statuses: Vec<_> = rig.stripe.sent().iter().map(|sent| sent.status).collect();
    assert_eq!(statuses, [500, 302, 400, 200].map(Some));
    let second = |one: &Received| one.signature.split(',').next().unwrap().to_owned();
    let times: Vec<_> = rig.inbox.received().iter().map(second).collect();
    let expected = [0, 1, 3, 7].map(|after| format!("t={}", NOW_S + after));
    assert_eq!(times, expected, "each try is signed anew");
}

#[tokio::test]
async fn a_notice_that_is_never_taken_is_given_up() {
    let rig = Rig::new();
    rig.inbox.answer_next(vec![Answer::Status(503); 16]);
    rig.intent();
    until("the last try", || {
        rig.stripe.retry_notices();
        rig.stripe.waiting_notices() == 0
    });
    assert_eq!(rig.stripe.sent().len(), 16);
}

#[tokio::test]
async fn five_copies_are_five() {
    let rig = Rig::new();
    rig.stripe.next_notice(SUCCEEDED, Delivery::Copies(5));
    rig.captured_intent();
    rig.stripe.quiet().await;
    assert_eq!(count(&rig, SUCCEEDED), 5);
    let bodies = rig.inbox.received();
    let own = |one: &&Received| String::from_utf8_lossy(&one.body).contains(SUCCEEDED);
    let mut bodies: Vec<_> = bodies.iter().filter(own).map(|one| &one.body).collect();
    bodies.dedup();
    assert_eq!(bodies.len(), 1);
}

#[tokio::test]
async fn one_may_overtake_another() {
    let rig = Rig::new();
    let kind = "payment_intent.amount_capturable_updated";
    rig.stripe.next_notice(kind, Delivery::AfterNext);
    rig.captured_intent();
    rig.stripe.quiet().await;
    let kinds = rig.kinds();
    let at = |kind: &str| kinds.iter().position(|own| own == kind).unwrap();
    assert_eq!(at(kind), at("charge.captured") + 1);
}

#[tokio::test]
async fn the_last_one_is_not_kept_for_ever() {
    let rig = Rig::new();
    rig.stripe.next_notice(SUCCEEDED, Delivery::AfterNext);
    rig.captured_intent();
    rig.stripe.quiet().await;
    assert_eq!(count(&rig, SUCCEEDED), 1);
}

#[tokio::test]
async fn one_that_comes_while_the_others_are_waited_for_is_waited_for_too() {
    let rig = Rig::new();
    rig.inbox.answer_next([Answer::Status(500)]);
    rig.intent();
    until("the first try", || !rig.stripe.sent().is_empty());
    let more = async {
        let kind = "payment_intent.created";
        rig.stripe.next_notice(kind, Delivery::AfterNext);
        rig.intent();
        rig.stripe.retry_notices();
    };
    tokio::join!(biased; rig.stripe.quiet(), more);
    assert_eq!(rig.stripe.waiting_notices(), 0);
    assert_eq!(rig.kinds().len(), 3, "the first one twice");
}

#[tokio::test]
async fn one_may_come_before_the_answer() {
    let rig = Rig::new();
    rig.stripe.next_notice(SUCCEEDED, Delivery::BeforeReply);
    rig.stripe.next_call(Route::Capture, CallFault::CloseAfter);
    let intent = rig.authorised_intent();
    let path = format!("/v1/payment_intents/{intent}/capture");
    assert!(rig.with_key(&path, "", "k").is_none());
    assert_eq!(count(&rig, SUCCEEDED), 1, "no wait was needed");
    rig.stripe.quiet().await;
    assert_eq!(count(&rig, SUCCEEDED), 1);
}

#[tokio::test]
async fn some_are_held_back_and_some_never_come() {
    let rig = Rig::new();
    rig.stripe.next_notice(SUCCEEDED, Delivery::HeldBack);
    rig.stripe.next_notice("charge.captured", Delivery::Dropped);
    rig.captured_intent();
    rig.stripe.quiet().await;
    assert_eq!((count(&rig, SUCCEEDED), rig.stripe.held_notices()), (0, 1));
    rig.stripe.release_notices();
    rig.stripe.quiet().await;
    assert_eq!((count(&rig, SUCCEEDED), rig.stripe.held_notices()), (1, 0));
    assert_eq!(count(&rig, "charge.captured"), 0);
}

#[tokio::test]
async fn replays_are_old_or_signed_anew() {
    let rig = Rig::new();
    for (way, age) in [
        (Delivery::ReplayedOld, 600),
        (Delivery::ReplayedResigned, 0),
    ] {
        rig.stripe.next_notice(SUCCEEDED, way);
        let before = rig.inbox.received().len();
        rig.captured_intent();
        rig.stripe.quiet().await;
        let received = rig.inbox.received();
        let own = |one: &&Received| String::from_utf8_lossy(&one.body).contains(SUCCEEDED);
        let own: Vec<_> = received[before..].iter().filter(own).collect();
        assert_eq!(own[0].body, own[1].body);
        let secret = rig.stripe.webhook_secret();
        assert!(is_signed(own[0], secret, NOW_S) && is_signed(own[1], secret, NOW_S - age));
    }
}

#[tokio::test]
async fn lies_are_signed_and_forgeries_are_not() {
    let rig = Rig::new();
    for (way, pointer, is_by_us) in [
        (Delivery::WrongAmount, "/data/object/amount", true),
        (Delivery::WrongCurrency, "/data/object/currency", true),
        (Delivery::WrongAccount, "/account", true),
        (Delivery::Forged, "/data/object/amount", false),
    ] {
        rig.stripe.next_notice(SUCCEEDED, way);
        let before = rig.inbox.received().len();
        rig.captured_intent();
        rig.stripe.quiet().await;
        let (received, notices) = (rig.inbox.received(), rig.notices());
        let own = (before..received.len()).filter(|at| notices[*at]["type"] == SUCCEEDED);
        let own: Vec<usize> = own.collect();
        let [lie, truth] = own[..] else {
            panic!("{way:?}: {own:?}");
        };
        let secret = rig.stripe.webhook_secret();
        assert_eq!(
            is_signed(&received[lie], secret, NOW_S),
            is_by_us,
            "{way:?}"
        );
        assert!(is_signed(&received[truth], secret, NOW_S));
        assert_ne!(
            notices[lie].pointer(pointer),
            notices[truth].pointer(pointer)
        );
        assert_eq!(
            notices[lie]["id"] == notices[truth]["id"],
            !is_by_us,
            "{way:?}"
        );
    }
}

#[tokio::test]
async fn the_second_secret_signs_alone() {
    let rig = Rig::new();
    rig.stripe
        .next_notice("payment_intent.created", Delivery::SecondSecret);
    rig.intent();
    rig.stripe.quiet().await;
    let one = &rig.inbox.received()[0];
    assert!(is_signed(one, rig.stripe.second_webhook_secret(), NOW_S));
    assert!(!is_signed(one, rig.stripe.webhook_secret(), NOW_S));
}

#[tokio::test]
async fn under_a_hostile_plan_every_notice_that_is_not_dropped_is_taken() {
    let rig = Rig::new();
    let plan = Plan {
        calls: Vec::new(),
        ..Plan::hostile(5)
    };
    rig.stripe.plan(plan);
    for _ in 0..30 {
        rig.captured_intent();
    }
    rig.stripe.quiet().await;
    let listed = rig.call("GET", "/v1/events?limit=100", "");
    let taken = rig.stripe.sent();
    let is_taken = |id: &str| taken.iter().any(|sent| sent.id == id && sent.is_taken());
    let missing = listed.json["data"].as_array().unwrap().iter();
    let missing = missing
        .filter(|notice| !is_taken(notice["id"].as_str().unwrap()))
        .count();
    assert!(
        (1..20).contains(&missing),
        "{missing} of 100 dropped, about five expected"
    );
}

#[test]
fn notices_are_for_this_machine_alone() {
    let rig = Rig::new();
    assert!(rig.stripe.deliver_to("http://192.0.2.1:80/").is_err());
    assert!(
        rig.stripe
            .deliver_to(&Receiver::start().unwrap().url())
            .is_ok()
    );
}
