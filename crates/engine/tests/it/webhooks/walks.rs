//! From a commit to an endpoint, on every ledger.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use soldonce_clock::{Entropy, SeededEntropy};
use soldonce_core::{
    Amount, Authority, Booking, Command, Difference, GivenLines, LineChoice, PaymentReport,
    PaymentState, PolicyChange, Selection, Text, UnitNo,
};
use soldonce_engine::webhook::{DeliveryState, EndpointChange, Kinds, MessageKind};
use soldonce_testkit::webhooks::{Answer, is_by_one_of};

use super::rig::{Rig, engine_with, every_ledger};
use crate::ledgers::{TestLedger, booked, caller, euro, on};

/// Five attempts or so.
const HOUR_MS: u64 = 3_600_000;

fn cancel(booking: &Booking, lines: LineChoice) -> Command {
    Command::Cancel {
        booking: booking.id,
        by: Authority::Caller(caller()),
        lines,
    }
}

fn paid(booking: &Booking, state: PaymentState, refunded: i64) -> Command {
    let report = PaymentReport::whole(booking, euro(), state);
    Command::Payment(Box::new(PaymentReport {
        refunded: Amount::from_minor(refunded),
        ..report
    }))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_confirmed_booking_is_told_signed() {
    for test in every_ledger().await {
        let mut rig = Rig::on(test).await;
        rig.run();
        let event = rig.test.event().await;
        rig.sold(&event, "early", "A-3").await;
        let (endpoint, secret) = rig.endpoint().await;
        let hold = rig.test.hold(&event, "ann", &["A-1", "A-2"]).await.unwrap();
        let booking = rig.test.confirm(&hold).await.unwrap();
        let log = rig.until_over(&endpoint, 1).await;
        assert_eq!(log[0].state, DeliveryState::Delivered);
        assert_eq!((log[0].attempts, log[0].status), (1, Some(200)));
        let request = &rig.receiver.received()[0];
        assert_eq!(request.path, "/hooks");
        assert_eq!(request.id, log[0].message.to_string());
        let body: serde_json::Value = serde_json::from_slice(&request.body).unwrap();
        assert_eq!(body["type"], "booking.confirmed");
        assert_eq!(body["data"]["id"], booking.id.to_string());
        assert_eq!(body["data"]["state"], "confirmed");
        assert_eq!(body["data"]["lines"][1]["seat"], "A-2");
        let at = body["timestamp"].as_str().unwrap();
        assert!(at.ends_with('Z') && at.contains('T'), "{at}");
        let told = [(booking.id.to_string(), "booking.confirmed")];
        rig.assert_heard(&[&secret], &told);
        assert!(!is_by_one_of(&["whsec_AAAA"], request));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_change_is_told_once_and_in_its_sequence() {
    for test in every_ledger().await {
        let mut rig = Rig::on(test).await;
        let event = rig.test.event().await;
        let (endpoint, secret) = rig.endpoint().await;
        let hold = rig.test.hold(&event, "ann", &["A-1", "A-2"]).await.unwrap();
        let checkout = rig.test.checkout_command(&hold);
        let booking = booked(rig.test.ask(checkout).await).unwrap();
        for state in [PaymentState::Authorised, PaymentState::Captured] {
            rig.test.ask(paid(&booking, state, 0)).await.unwrap();
        }
        let first = LineChoice::Some {
            units: vec![UnitNo(0)],
            places: Selection::default(),
        };
        rig.test.ask(cancel(&booking, first)).await.unwrap();
        let partly = paid(&booking, PaymentState::PartlyRefunded, 4_500);
        rig.test.ask(partly.clone()).await.unwrap();
        rig.test.ask(partly).await.unwrap();
        rig.test
            .ask(cancel(&booking, LineChoice::All))
            .await
            .unwrap();
        let whole = paid(&booking, PaymentState::Refunded, 9_000);
        rig.test.ask(whole).await.unwrap();
        let slow = rig.test.hold(&event, "bob", &["B-1"]).await.unwrap();
        rig.test.advance_ms(600_000);
        rig.sweep().await;
        rig.run();
        rig.until_over(&endpoint, 6).await;
        let id = booking.id.to_string();
        let told = [
            (id.clone(), "booking.confirmed"),
            (id.clone(), "booking.cancelled"),
            (id.clone(), "booking.refunded"),
            (id.clone(), "booking.cancelled"),
            (id, "booking.refunded"),
            (slow.id.to_string(), "hold.expired"),
        ];
        rig.assert_heard(&[&secret], &told);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn money_that_staff_sent_elsewhere_is_told() {
    for test in every_ledger().await {
        let mut rig = Rig::on(test).await;
        let event = rig.test.event().await;
        let (endpoint, secret) = rig.endpoint().await;
        let hold = rig.test.hold(&event, "ann", &["A-1"]).await.unwrap();
        let checkout = rig.test.checkout_command(&hold);
        let booking = booked(rig.test.ask(checkout).await).unwrap();
        let settle = Command::SettleRefund {
            booking: booking.id,
            amount: booking.total(),
        };
        for command in [
            paid(&booking, PaymentState::Captured, 0),
            cancel(&booking, LineChoice::All),
            settle,
        ] {
            rig.test.ask(command).await.unwrap();
        }
        rig.run();
        rig.until_over(&endpoint, 3).await;
        let id = booking.id.to_string();
        let told = [
            (id.clone(), "booking.confirmed"),
            (id.clone(), "booking.cancelled"),
            (id, "booking.refunded"),
        ];
        rig.assert_heard(&[&secret], &told);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_exchange_and_late_money_are_told() {
    for test in every_ledger().await {
        let mut rig = Rig::on(test).await;
        let event = rig.test.event().await;
        let (endpoint, secret) = rig.endpoint().await;
        let hold = rig.test.hold(&event, "ann", &["A-1"]).await.unwrap();
        let booking = rig.test.confirm(&hold).await.unwrap();
        let new = rig.test.hold(&event, "ann", &["B-1"]).await.unwrap();
        let exchange = Command::Exchange {
            given: GivenLines {
                booking: booking.id,
                units: vec![UnitNo(0)],
            },
            on: on(&new),
            difference: Difference::Unpaid,
        };
        rig.test.ask(exchange).await.unwrap();
        let late = rig.test.hold(&event, "bob", &["A-2"]).await.unwrap();
        let checkout = rig.test.checkout_command(&late);
        let expired = booked(rig.test.ask(checkout).await).unwrap();
        rig.test.advance_ms(600_000);
        rig.sweep().await;
        let money = paid(&expired, PaymentState::Authorised, 0);
        rig.test.ask(money).await.unwrap();
        rig.run();
        rig.until_over(&endpoint, 4).await;
        let told = [
            (booking.id.to_string(), "booking.confirmed"),
            (booking.id.to_string(), "booking.exchanged"),
            (late.id.to_string(), "hold.expired"),
            (expired.id.to_string(), "booking.confirmed"),
        ];
        rig.assert_heard(&[&secret], &told);
        // One line: the late sale waited for the end of its hold.
        let types: Vec<String> = rig.receiver.taken().iter().map(kind).collect();
        let at = |kind: &str| types.iter().rposition(|one| one == kind).unwrap();
        assert!(at("hold.expired") < at("booking.confirmed"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_staff_end_is_told_once() {
    for test in every_ledger().await {
        let mut rig = Rig::on(test).await;
        let event = rig.test.event().await;
        let (endpoint, secret) = rig.endpoint().await;
        let reason = || Text::parse("flood").unwrap();
        let revoked = rig.test.hold(&event, "ann", &["A-1"]).await.unwrap();
        let revoke = Command::Revoke {
            hold: revoked.id,
            reason: reason(),
        };
        let over = rig.test.hold(&event, "bob", &["A-2"]).await.unwrap();
        rig.test.ask(revoke.clone()).await.unwrap();
        rig.test.ask(revoke).await.unwrap();
        rig.test.advance_ms(600_000);
        let live = rig.test.hold(&event, "cid", &["B-1"]).await.unwrap();
        let cancel = Command::CancelEvent {
            event: event.no,
            reason: reason(),
        };
        rig.test.ask(cancel.clone()).await.unwrap();
        rig.test.ask(cancel).await.unwrap();
        let change = Command::UpdateEvent {
            event: event.no,
            change: Box::new(PolicyChange::from(&event.policy).into()),
        };
        rig.test.ask(change).await.unwrap();
        rig.run();
        rig.until_over(&endpoint, 4).await;
        let told = [
            (revoked.id.to_string(), "hold.revoked"),
            (over.id.to_string(), "hold.expired"),
            (live.id.to_string(), "hold.revoked"),
            (event.id.to_string(), "event.cancelled"),
        ];
        rig.assert_heard(&[&secret], &told);
    }
}

fn kind(request: &soldonce_testkit::webhooks::Received) -> String {
    let body: serde_json::Value = serde_json::from_slice(&request.body).unwrap();
    body["type"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_fails_is_tried_again_and_the_next_of_its_booking_waits() {
    for test in every_ledger().await {
        let mut rig = Rig::on(test).await;
        let event = rig.test.event().await;
        let (endpoint, secret) = rig.endpoint().await;
        let bad = [
            Answer::Status(500),
            Answer::HangUp,
            Answer::Status(404),
            Answer::Redirect(rig.receiver.url()),
        ];
        let failures = bad.len();
        rig.receiver.answer_next(bad);
        let hold = rig.test.hold(&event, "ann", &["A-1"]).await.unwrap();
        let booking = rig.test.confirm(&hold).await.unwrap();
        rig.test
            .ask(cancel(&booking, LineChoice::All))
            .await
            .unwrap();
        rig.run();
        let log = rig
            .until(&endpoint, HOUR_MS / 4, |log| {
                log.iter().all(|one| one.state == DeliveryState::Delivered)
            })
            .await;
        assert_eq!(log.len(), 2);
        assert_eq!((log[1].attempts, log[0].attempts), (5, 1));
        assert_eq!(
            rig.receiver.received().len(),
            failures + 2,
            "no redirect is followed"
        );
        let id = booking.id.to_string();
        let told = [(id.clone(), "booking.confirmed"), (id, "booking.cancelled")];
        rig.assert_heard(&[&secret], &told);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_always_fails_is_given_up_seen_and_sent_again() {
    for test in every_ledger().await {
        let mut rig = Rig::on(test).await;
        let event = rig.test.event().await;
        let (endpoint, secret) = rig.endpoint().await;
        rig.receiver.answer_next(vec![Answer::Status(503); 10]);
        let hold = rig.test.hold(&event, "ann", &["A-1"]).await.unwrap();
        let booking = rig.test.confirm(&hold).await.unwrap();
        rig.run();
        let given_up = |state| state == DeliveryState::GivenUp;
        let log = rig
            .until(&endpoint, HOUR_MS, |log| given_up(log[0].state))
            .await;
        assert_eq!((log[0].attempts, log[0].status), (10, Some(503)));
        assert_eq!(log[0].problem.as_deref(), Some("refused"));
        assert_eq!(log[0].next_at, None);
        let opened = rig.engine.resend(endpoint.id, log[0].message).await;
        let opened = opened.unwrap().unwrap();
        assert_eq!((opened.state, opened.attempts), (DeliveryState::Open, 0));
        rig.until_over(&endpoint, 1).await;
        rig.assert_heard(&[&secret], &[(booking.id.to_string(), "booking.confirmed")]);
    }
}

/// Panics when the first jitter is drawn from it.
struct Panicking(SeededEntropy, AtomicBool);

impl Entropy for Panicking {
    fn fill(&self, bytes: &mut [u8]) {
        let is_jitter = bytes.len() == 2;
        assert!(
            !is_jitter || self.1.swap(true, Ordering::Relaxed),
            "planted by a test"
        );
        self.0.fill(bytes);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_attempt_that_panics_counts_and_is_not_made_at_once() {
    let mut rig = Rig::on(TestLedger::sqlite()).await;
    let event = rig.test.event().await;
    let (endpoint, secret) = rig.endpoint().await;
    rig.receiver.answer_next(vec![Answer::Status(503)]);
    let hold = rig.test.hold(&event, "ann", &["A-1"]).await.unwrap();
    let booking = rig.test.confirm(&hold).await.unwrap();
    let entropy = Arc::new(Panicking(SeededEntropy::new(1), AtomicBool::new(false)));
    let sender = rig.engine.sender().unwrap().clone();
    rig.run_of(engine_with(&rig.test, sender, entropy).await);
    let log = rig.until(&endpoint, 20, |log| log[0].attempts == 1).await;
    assert_eq!(log[0].problem.as_deref(), Some("internal"));
    assert!(log[0].next_at.unwrap() > rig.test.ledger.now());
    let log = rig.until_over(&endpoint, 1).await;
    assert_eq!(log[0].attempts, 2);
    rig.assert_heard(&[&secret], &[(booking.id.to_string(), "booking.confirmed")]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_secrets_sign_for_a_day_after_a_rotation() {
    for test in every_ledger().await {
        let mut rig = Rig::on(test).await;
        rig.run();
        let event = rig.test.event().await;
        let (endpoint, first) = rig.endpoint().await;
        let rotated = rig.engine.rotate_endpoint(endpoint.id).await;
        let (_, second) = rotated.unwrap().unwrap();
        assert_ne!(first, second);
        rig.sold(&event, "ann", "A-1").await;
        rig.until_over(&endpoint, 1).await;
        rig.test.advance_ms(24 * HOUR_MS);
        rig.sold(&event, "bob", "A-2").await;
        rig.until_over(&endpoint, 2).await;
        let received = rig.receiver.received();
        let by = |secret: &str| {
            let signed = received.iter().map(|one| is_by_one_of(&[secret], one));
            signed.collect::<Vec<_>>()
        };
        assert_eq!(by(&first), [true, false]);
        assert_eq!(by(&second), [true, true]);
        // Asked for twice, because an answer was lost: the receiver has what it had before both.
        for _ in 0..2 {
            let rotated = rig.engine.rotate_endpoint(endpoint.id).await;
            rotated.unwrap().unwrap();
        }
        rig.sold(&event, "joe", "A-3").await;
        rig.until_over(&endpoint, 3).await;
        let last = rig.receiver.received().remove(2);
        assert!(is_by_one_of(&[&second], &last));
        assert!(!is_by_one_of(&[&first], &last));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_endpoint_hears_what_it_asked_for_and_nothing_after_its_end() {
    for test in every_ledger().await {
        let mut rig = Rig::on(test).await;
        let event = rig.test.event().await;
        let kinds = Kinds::of(&[MessageKind::BookingCancelled]);
        let url = rig.receiver.url();
        let (picky, secret) = rig.endpoint_at(&url, kinds).await.unwrap();
        let (deleted, _) = rig.endpoint().await;
        let hold = rig.test.hold(&event, "ann", &["A-1"]).await.unwrap();
        let booking = rig.test.confirm(&hold).await.unwrap();
        rig.test
            .ask(cancel(&booking, LineChoice::All))
            .await
            .unwrap();
        assert_eq!(rig.log(&deleted).await.len(), 2);
        let gone = rig.change(&deleted, EndpointChange::Delete).await;
        assert_eq!(gone.as_ref(), Some(&deleted));
        let again = rig.change(&deleted, EndpointChange::Delete).await;
        assert_eq!(again, None);
        assert_eq!(
            rig.engine.deliveries(deleted.id, None, 9).await.unwrap(),
            None
        );
        rig.run();
        rig.until_over(&picky, 1).await;
        let told = [(booking.id.to_string(), "booking.cancelled")];
        rig.assert_heard(&[&secret], &told);
        assert_eq!(rig.engine.endpoints().await.unwrap(), [picky]);
    }
}
