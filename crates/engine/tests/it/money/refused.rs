//! A provider that refuses again and again: what is asked of it, and what is not forgotten meanwhile.

use std::io::{Read, Write};

use soldonce_core::{Amount, BookingId, BookingState, HoldId, LatePayment, PaymentState};
use soldonce_engine::payment::{CreateIntent, Intent, ProviderError, ProviderKey};
use soldonce_engine::{EngineError, NamedUnits};
use tokio::sync::oneshot;

use super::rig::{PRICE, Rig, Store};
use crate::ledgers::euro;

fn refused() -> ProviderError {
    ProviderError::Refused {
        status: 400,
        code: "charge_disputed".to_owned(),
        message: String::new(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_refund_is_asked_for_once_in_each_try() {
    let mut rig = Rig::on(Store::Sqlite, |_| {}).await;
    let (_, paying) = rig.begun("ann", &["A-1"]).await;
    rig.pay(&paying, "pm_card_visa").await;
    rig.run_outbox();
    rig.settle().await;
    let unknown = ProviderError::Unknown("no answer".to_owned());
    let answers = [refused(), refused(), unknown.clone(), unknown, refused()];
    rig.place.answers.refunds.lock().unwrap().extend(answers);
    rig.cancel_all(paying.booking).await;
    rig.until_paid_as(paying.booking, PaymentState::Refunded)
        .await;
    let keys = rig.place.answers.refund_keys.lock().unwrap().clone();
    let rounds: Vec<&str> = keys
        .iter()
        .map(|key| key.rsplit('-').next().unwrap())
        .collect();
    assert_eq!(
        rounds,
        ["0", "1", "2", "2", "2", "3"],
        "another key after a refusal, the same when the outcome is unknown"
    );
    assert_eq!(rig.kept(), 0);
    let state = rig.booking(paying.booking).await.state;
    assert_eq!(state, BookingState::Cancelled);
}

/// What was refused under a key is refused under it again, for a day.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repair_passes_keys_that_were_refused_before() {
    let rig = Rig::on(Store::Sqlite, |_| {}).await;
    let (_, paying) = rig.begun("ann", &["A-1"]).await;
    rig.pay(&paying, "pm_card_visa").await;
    rig.settle().await;
    rig.place
        .answers
        .refunds
        .lock()
        .unwrap()
        .extend([refused(), refused()]);
    rig.cancel_all(paying.booking).await;
    let stuck = loop {
        let found = rig.mismatches().await.pop();
        if let Some(found) = found {
            break found;
        }
    };
    rig.engine.repair(&stuck).await.unwrap();
    assert_eq!(rig.place.answers.refund_keys.lock().unwrap().len(), 3);
    assert_eq!(rig.kept(), 0);
}

/// The charge of one of two seats was lost in a dispute, and its buyer has the money elsewhere.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refund_that_staff_settled_elsewhere_is_asked_for_no_more() {
    for store in Store::ALL {
        let rig = Rig::on(store, |_| {}).await;
        let (_, paying) = rig.begun("ann", &["A-1", "A-2"]).await;
        rig.pay(&paying, "pm_card_visa").await;
        rig.settle().await;
        let seat = NamedUnits {
            seats: vec!["A-1".into()],
            ..NamedUnits::default()
        };
        let cancelled = rig.engine.cancel(&rig.call(), paying.booking, &seat).await;
        cancelled.unwrap();
        let answers = &rig.place.answers;
        answers.refunds.lock().unwrap().extend(vec![refused(); 99]);
        rig.mend_all().await;
        assert_eq!(rig.mismatches().await.len(), 1, "{store:?}: refused again");
        answers.refunds.lock().unwrap().clear();
        let asked = answers.refund_keys.lock().unwrap().len();
        let (call, price) = (rig.call(), Amount::from_minor(PRICE));
        for _ in ["once", "with the same key"] {
            let settled = rig.engine.settle_refund(&call, paying.booking, price);
            settled.await.unwrap();
        }
        rig.settle().await;
        assert_eq!(rig.mismatches().await, [], "{store:?}");
        assert_eq!(answers.refund_keys.lock().unwrap().len(), asked);
        let payment = rig.booking(paying.booking).await.payment.unwrap();
        assert_eq!((payment.elsewhere, payment.paid()), (price, price));
        rig.cancel_all(paying.booking).await;
        rig.settle().await;
        assert_eq!(rig.kept(), PRICE, "{store:?}: the other seat's went back");
    }
}

/// The provider's settings were repaired meanwhile. What the buyer pays then would buy nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_checkout_that_failed_makes_no_intent_later() {
    for store in Store::ALL {
        let rig = Rig::on(store, |_| {}).await;
        let hold = rig.hold("ann", &["A-1"]).await.unwrap();
        rig.place
            .answers
            .creates
            .lock()
            .unwrap()
            .push_back(refused());
        let call = rig.call();
        for _ in ["the first time", "with the same key"] {
            let refusal = rig.checkout_by(&call, hold).await.unwrap_err();
            let is_refused = matches!(
                refusal,
                EngineError::Provider(ProviderError::Refused { .. })
            );
            assert!(is_refused, "{store:?}: {refusal:?}");
        }
        let paying = rig.checkout(hold).await.unwrap();
        rig.pay(&paying, "pm_card_visa").await;
        rig.settle().await;
        assert_eq!(rig.kept(), PRICE, "{store:?}");
    }
}

/// Makes the intent of the booking that a checkout of `hold` began, as a call without an answer does.
async fn make_unheard(rig: &Rig, hold: HoldId) -> (BookingId, Intent) {
    let ledger = rig.engine.ledger();
    let event = ledger.hold(hold).await.unwrap().unwrap().event;
    let id = ledger.bookings_in(event, (None, 1)).await.unwrap()[0].id;
    let ask = CreateIntent {
        booking: id,
        amount: Amount::from_minor(PRICE),
        currency: euro(),
        key: ProviderKey::of(id, "authorise").unwrap(),
    };
    let made = rig.engine.provider().unwrap().create(ask).await;
    (id, made.unwrap())
}

/// A notice names the intent of a call without an answer while the next try is refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_try_answers_with_the_intent_that_a_notice_named() {
    for store in Store::ALL {
        let mut rig = Rig::on(store, |_| {}).await;
        let hold = rig.hold("ann", &["A-1"]).await.unwrap();
        let ((called, is_called), (go, goes)) = (oneshot::channel(), oneshot::channel());
        let answers = &rig.place.answers;
        answers.creates.lock().unwrap().push_back(refused());
        *answers.held.lock().unwrap() = Some((called, goes));
        let naming = async {
            is_called.await.unwrap();
            let (_, made) = make_unheard(&rig, hold).await;
            rig.take_notices().await;
            go.send(()).unwrap();
            made
        };
        let (paying, made) = tokio::join!(rig.checkout(hold), naming);
        let paying = paying.unwrap();
        assert_eq!(paying.intent, made.id.as_str(), "{store:?}");
        rig.pay(&paying, "pm_card_visa").await;
        rig.run_outbox();
        rig.settle().await;
        let booking = rig.booking(paying.booking).await;
        assert_eq!(booking.state, BookingState::Confirmed, "{store:?}");
        assert_eq!(rig.kept(), PRICE, "{store:?}");
    }
}

/// The call that made an intent had no answer, and the one after it was refused; a notice names the intent then.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_intent_that_is_heard_of_after_its_checkout_failed_is_cancelled() {
    for store in Store::ALL {
        let mut rig = Rig::on(store, |_| {}).await;
        let hold = rig.hold("ann", &["A-1"]).await.unwrap();
        rig.place
            .answers
            .creates
            .lock()
            .unwrap()
            .push_back(refused());
        rig.checkout(hold).await.unwrap_err();
        let (id, made) = make_unheard(&rig, hold).await;
        rig.take_notices().await;
        let payment = rig.booking(id).await.payment.unwrap();
        assert_eq!(payment.state, PaymentState::Failed, "{store:?}");
        let named = payment.intent.as_ref().unwrap();
        assert_eq!(named.id.as_str(), made.id.as_str());
        rig.run_outbox();
        rig.settle().await;
        let late = rig.fake.pay(made.id.as_str(), "pm_card_visa").await;
        assert!(late.is_err(), "{store:?}: it could still be paid");
        let booking = rig.booking(id).await;
        assert_eq!(booking.state, BookingState::Failed, "{store:?}");
        assert_eq!((rig.kept(), rig.reserved()), (0, 0), "{store:?}");
    }
}

/// Takes a part of a reserved payment, as staff may in the provider's dashboard.
fn capture_part(rig: &Rig, intent: &str, minor: i64) {
    let url = rig.fake.url();
    let address = url.trim_start_matches("http://").trim_end_matches('/');
    let (key, form) = (rig.fake.secret_key(), format!("amount_to_capture={minor}"));
    let request = format!(
        "POST /v1/payment_intents/{intent}/capture HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\
         Authorization: Bearer {key}\r\nContent-Type: application/x-www-form-urlencoded\r\n\
         Content-Length: {}\r\n\r\n{form}",
        form.len()
    );
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

/// Late money of which staff took half: the hold had ended, so all of it is to go back.
async fn half_taken(store: Store) -> (Rig, BookingId) {
    let goes_back = |of: &mut soldonce_core::Policy| of.late_payment = LatePayment::Refund;
    let rig = Rig::on(store, goes_back).await;
    let (hold, paying) = rig.begun("ann", &["A-1"]).await;
    rig.engine.release(&rig.call(), hold, None).await.unwrap();
    rig.pay(&paying, "pm_card_visa").await;
    capture_part(&rig, &paying.intent, PRICE / 2);
    (rig, paying.booking)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_more_is_asked_back_than_was_taken() {
    for store in Store::ALL {
        let (mut rig, booking) = half_taken(store).await;
        rig.run_outbox();
        rig.settle().await;
        let state = rig.payment_state(booking).await;
        assert_eq!(state, PaymentState::Refunded, "{store:?}");
        assert_eq!(rig.mismatches().await, [], "{store:?}");
        assert_eq!(rig.kept(), 0, "{store:?}");
    }
}

/// The provider refuses to send it back, and staff do.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_more_is_settled_elsewhere_than_was_taken() {
    for store in Store::ALL {
        let (rig, booking) = half_taken(store).await;
        let answers = &rig.place.answers;
        answers.refunds.lock().unwrap().extend(vec![refused(); 99]);
        rig.take_notices().await;
        rig.mend_all().await;
        answers.refunds.lock().unwrap().clear();
        let (all, half) = (Amount::from_minor(PRICE), Amount::from_minor(PRICE / 2));
        let refused = rig.engine.settle_refund(&rig.call(), booking, all).await;
        assert!(refused.is_err(), "{store:?}: {refused:?}");
        let settled = rig.engine.settle_refund(&rig.call(), booking, half).await;
        settled.unwrap();
        rig.settle().await;
        assert_eq!(rig.mismatches().await, [], "{store:?}");
        let state = rig.booking(booking).await.state;
        assert_eq!(state, BookingState::Refunded, "{store:?}");
        assert_eq!(rig.kept(), PRICE / 2, "{store:?}: it went back elsewhere");
    }
}
