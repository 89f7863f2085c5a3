//! One buyer at a time.

use std::sync::Arc;
use std::time::Duration;

use fake_stripe::{Delivery, Plan};
use soldonce_clock::{Clock, SystemClock};
use soldonce_core::{
    Amount, BookingState, HoldState, LatePayment, OnPaymentFailure, PaymentState, Rejection, Span,
    Text,
};
use soldonce_engine::payment::{IntentId, ProviderKey};
use soldonce_engine::{CheckoutAsk, EngineError, GivenAsk, NamedUnits};
use soldonce_testkit::PATIENCE;

use super::rig::{PRICE, Paying, Place, Rig, Store};

const VISA: &str = "pm_card_visa";
const DECLINED: &str = "pm_card_chargeDeclined";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_paid_hold_is_sold_and_then_the_money_is_taken() {
    for store in Store::ALL {
        let mut rig = Rig::on(store, |_| {}).await;
        let (hold, paying) = rig.begun("ann", &["A-1", "A-2"]).await;
        let pinned = rig.engine.ledger().hold(hold).await.unwrap().unwrap();
        assert_eq!(pinned.state, HoldState::Pinned(paying.booking));
        rig.pay(&paying, VISA).await;
        rig.take_notices().await;
        let sold = rig.booking(paying.booking).await;
        assert_eq!(sold.state, BookingState::Confirmed);
        assert_eq!(rig.kept(), 0, "not taken before it was sold");
        rig.run_outbox();
        rig.until_paid_as(paying.booking, PaymentState::Captured)
            .await;
        rig.settle().await;
        assert_eq!(rig.kept(), 2 * PRICE);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn checkout_asked_again_is_the_same_payment() {
    for store in Store::ALL {
        let rig = Rig::on(store, |_| {}).await;
        let hold = rig.hold("ann", &["A-1"]).await.unwrap();
        let call = rig.call();
        let ask = CheckoutAsk::default();
        let first = rig.engine.checkout(&call, hold, ask.clone()).await.unwrap();
        let again = rig.engine.checkout(&call, hold, ask.clone()).await.unwrap();
        assert!(again.replayed);
        assert_eq!(again.stored, first.stored);
        assert_eq!(again.intent, first.intent);
        assert_eq!(rig.fake.intents().len(), 1);
        let other = rig.engine.checkout(&rig.call(), hold, ask).await;
        assert!(matches!(
            other,
            Err(EngineError::Rejected(Rejection::PaymentInProgress(_)))
        ));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_declined_card_another_one_pays_the_same_intent() {
    for store in Store::ALL {
        let mut rig = Rig::on(store, |_| {}).await;
        rig.run_outbox();
        let (hold, paying) = rig.begun("ann", &["A-1"]).await;
        let pinned = rig.engine.ledger().hold(hold).await.unwrap().unwrap();
        for _ in 0..2 {
            rig.pay(&paying, DECLINED).await;
            rig.take_notices().await;
            let booking = rig.booking(paying.booking).await;
            assert_eq!(booking.state, BookingState::PendingPayment, "{store:?}");
            assert_eq!(booking.payment.unwrap().state, PaymentState::Declined);
            let kept = rig.engine.ledger().hold(hold).await.unwrap().unwrap();
            assert_eq!(kept, pinned);
        }
        rig.pay(&paying, VISA).await;
        rig.settle().await;
        assert_eq!(
            rig.booking(paying.booking).await.state,
            BookingState::Confirmed
        );
        assert_eq!((rig.kept(), rig.fake.intents().len()), (PRICE, 1));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_declined_buyer_may_give_up_and_pay_again() {
    for store in Store::ALL {
        let mut rig = Rig::on(store, |_| {}).await;
        rig.run_outbox();
        let (hold, declined) = rig.begun("ann", &["A-1"]).await;
        rig.pay(&declined, DECLINED).await;
        rig.take_notices().await;
        rig.engine
            .abandon(&rig.call(), hold, None, None)
            .await
            .unwrap();
        rig.settle().await;
        let late = rig.fake.pay(&declined.intent, VISA).await;
        assert!(late.is_err(), "the declined intent was cancelled");
        let paying = rig.checkout(hold).await.unwrap();
        assert_ne!(paying, declined);
        rig.pay(&paying, VISA).await;
        rig.settle().await;
        assert_eq!(
            rig.booking(paying.booking).await.state,
            BookingState::Confirmed
        );
        assert_eq!(rig.kept(), PRICE);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_declined_buyers_seats_may_be_free_at_once() {
    let release = |policy: &mut soldonce_core::Policy| {
        policy.on_payment_failure = OnPaymentFailure::Release;
    };
    let rig = Rig::on(Store::Sqlite, release).await;
    let (hold, declined) = rig.begun("ann", &["A-1"]).await;
    rig.pay(&declined, DECLINED).await;
    rig.take_notices().await;
    let ended = rig.engine.ledger().hold(hold).await.unwrap().unwrap();
    assert_eq!(ended.state, HoldState::Released);
    rig.hold("bob", &["A-1"]).await.unwrap();
}

/// Two seats that are paid for, and an outbox that runs.
async fn two_seats_paid(store: Store) -> (Rig, Paying) {
    let mut rig = Rig::on(store, |_| {}).await;
    rig.run_outbox();
    let (_, paying) = rig.begun("ann", &["A-1", "A-2"]).await;
    rig.pay(&paying, VISA).await;
    rig.settle().await;
    (rig, paying)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_cancelled_goes_back_to_the_cent() {
    for store in Store::ALL {
        let (rig, paying) = two_seats_paid(store).await;
        let line = NamedUnits {
            seats: vec!["A-1".into()],
            ..NamedUnits::default()
        };
        rig.engine
            .cancel(&rig.call(), paying.booking, &line)
            .await
            .unwrap();
        rig.settle().await;
        rig.until_paid_as(paying.booking, PaymentState::PartlyRefunded)
            .await;
        assert_eq!(rig.kept(), PRICE);
        let amount = Amount::from_minor(500);
        rig.engine
            .refund(&rig.call(), paying.booking, amount)
            .await
            .unwrap();
        rig.cancel_all(paying.booking).await;
        rig.until_paid_as(paying.booking, PaymentState::Refunded)
            .await;
        rig.settle().await;
        assert_eq!(rig.kept(), 0, "500 had gone back before");
        let more = rig.engine.refund(&rig.call(), paying.booking, amount).await;
        assert!(more.is_err());
    }
}

/// Cancelled while the money was only reserved, and the reservation ran out before it was taken:
/// nothing was taken, so nothing is to go back, and the booking does not wait for it for ever.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_never_taken_needs_no_refund() {
    for store in Store::ALL {
        let mut rig = Rig::on(store, |_| {}).await;
        let (_, paying) = rig.begun("ann", &["A-1"]).await;
        rig.pay(&paying, VISA).await;
        rig.take_notices().await;
        rig.cancel_all(paying.booking).await;
        rig.fake.lapse(&paying.intent).await.unwrap();
        rig.run_outbox();
        rig.settle().await;
        assert_eq!((rig.kept(), rig.reserved()), (0, 0));
        let state = rig.payment_state(paying.booking).await;
        let is_over = matches!(state, PaymentState::Lapsed | PaymentState::Voided);
        assert!(is_over, "{store:?}: {state:?}");
    }
}

/// One seat for two: the second is paid, and what goes back comes from both payments. Every ledger
/// has let go of the first booking by then. Whether what was paid for it goes back only once.
async fn moves_up(place: Arc<Place>) -> bool {
    let mut rig = Rig::at(place, "hamlet-1", |_| {}).await;
    rig.run_outbox();
    let (_, first) = rig.begun("ann", &["A-1"]).await;
    rig.pay(&first, VISA).await;
    rig.until_paid_as(first.booking, PaymentState::Captured)
        .await;
    let hold = rig.hold("ann", &["B-1", "B-2"]).await.unwrap();
    let given = GivenAsk {
        booking: first.booking,
        release: NamedUnits {
            seats: vec!["A-1".into()],
            ..NamedUnits::default()
        },
    };
    let paying = rig.checkout_for(&rig.call(), hold, Some(given)).await;
    let paying = paying.unwrap();
    rig.pay(&paying, VISA).await;
    rig.until_paid_as(paying.booking, PaymentState::Captured)
        .await;
    rig.settle().await;
    let given = rig.booking(first.booking).await;
    assert_eq!(given.state, BookingState::Cancelled);
    let sold = rig.booking(paying.booking).await;
    assert_eq!(sold.state, BookingState::Confirmed);
    assert_eq!(rig.kept(), 2 * PRICE);
    rig.hold("bob", &["A-1"]).await.unwrap();
    let call = rig.call();
    let price = Amount::from_minor(PRICE);
    let of_the_seats = rig.engine.refund(&call, first.booking, price).await;
    rig.cancel_all(paying.booking).await;
    for booking in [first.booking, paying.booking] {
        rig.until_paid_as(booking, PaymentState::Refunded).await;
    }
    rig.settle().await;
    of_the_seats.is_err() && rig.kept() == 0
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dearer_exchange_takes_the_difference_and_gives_all_of_it_back() {
    for store in Store::ALL {
        assert!(moves_up(Place::new(store).await).await, "{store:?}");
    }
}

/// Some methods cannot reserve: the money is taken when the buyer pays. A buyer who has the seats
/// keeps them, and one who lost them has the money back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn money_that_is_taken_at_once_buys_the_seats_or_goes_back() {
    for store in Store::ALL {
        let place = Place::paid_at_once(store).await;
        let mut rig = Rig::at(Arc::clone(&place), "hamlet-1", |_| {}).await;
        rig.run_outbox();
        let (_, paying) = rig.begun("ann", &["A-1"]).await;
        rig.pay(&paying, VISA).await;
        assert_eq!(rig.kept(), PRICE, "before it is sold");
        rig.settle().await;
        let sold = rig.booking(paying.booking).await;
        assert_eq!(sold.state, BookingState::Confirmed);
        assert_eq!(sold.payment.unwrap().state, PaymentState::Captured);

        let (_, again) = rig.begun("bob", &["A-2"]).await;
        rig.pay(&again, DECLINED).await;
        rig.take_notices().await;
        rig.pay(&again, VISA).await;
        rig.settle().await;
        assert_eq!(rig.kept(), 2 * PRICE);
        // Its outbox would ask its provider for what is the next ones'.
        drop(rig);
        let cases = [
            (LatePayment::IfStillFree, Seat::Free, 1),
            (LatePayment::IfStillFree, Seat::Taken, 0),
            (LatePayment::Refund, Seat::Free, 0),
            (LatePayment::Refuse, Seat::Free, 0),
        ];
        for (n, (policy, seat, sold)) in (2..).zip(cases) {
            let event = format!("hamlet-{n}");
            let (_, kept, reserved) = late_for(Arc::clone(&place), &event, policy, seat).await;
            assert_eq!((kept, reserved), (sold * PRICE, 0), "{store:?} {policy:?}");
        }
    }
}

/// The buyer's bank may refuse a refund days after it was made.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refund_that_comes_back_is_made_again() {
    for store in Store::ALL {
        let (rig, paying) = two_seats_paid(store).await;
        rig.cancel_all(paying.booking).await;
        for bounces in 1..=2 {
            rig.until_paid_as(paying.booking, PaymentState::Refunded)
                .await;
            rig.settle().await;
            assert_eq!(rig.kept(), 0);
            let refund = rig.fake.refunds().pop().unwrap();
            let id = refund["id"].as_str().unwrap();
            rig.fake.fail_refund(id).await.unwrap();
            assert_eq!(rig.kept(), 2 * PRICE);
            rig.take_notices().await;
            let payment = rig.booking(paying.booking).await.payment.unwrap();
            let bounced = Amount::from_minor(2 * PRICE * bounces);
            assert_eq!(payment.bounced, bounced, "{store:?}");
        }
        rig.until_paid_as(paying.booking, PaymentState::Refunded)
            .await;
        rig.settle().await;
        assert_eq!(rig.kept(), 0);
    }
}

/// What became of the seat meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seat {
    Free,
    Taken,
}

/// The hold was released while the buyer was at the bank's page; then the payment comes.
async fn late(place: Arc<Place>, policy: LatePayment, seat: Seat) -> (BookingState, i64, i64) {
    late_for(place, "hamlet-1", policy, seat).await
}

async fn late_for(
    place: Arc<Place>,
    event: &str,
    policy: LatePayment,
    seat: Seat,
) -> (BookingState, i64, i64) {
    let mut rig = Rig::at(place, event, |of| of.late_payment = policy).await;
    let (hold, paying) = rig.begun("ann", &["A-1"]).await;
    rig.engine.release(&rig.call(), hold, None).await.unwrap();
    if seat == Seat::Taken {
        rig.hold("bob", &["A-1"]).await.unwrap();
    }
    rig.pay(&paying, VISA).await;
    rig.take_notices().await;
    rig.run_outbox();
    rig.settle().await;
    let state = rig.booking(paying.booking).await.state;
    (state, rig.kept(), rig.reserved())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn late_money_meets_exactly_the_events_policy() {
    let cases = [
        (
            LatePayment::IfStillFree,
            Seat::Free,
            BookingState::Confirmed,
        ),
        (
            LatePayment::IfStillFree,
            Seat::Taken,
            BookingState::Refunded,
        ),
        (LatePayment::Refund, Seat::Free, BookingState::Refunded),
        (LatePayment::Refuse, Seat::Free, BookingState::Failed),
    ];
    for store in Store::ALL {
        for (policy, seat, expected) in cases {
            let place = Place::new(store).await;
            let (state, kept, reserved) = late(place, policy, seat).await;
            assert_eq!(state, expected, "{store:?} {policy:?} {seat:?}");
            let sold = i64::from(expected == BookingState::Confirmed);
            assert_eq!((kept, reserved), (sold * PRICE, 0), "{store:?} {policy:?}");
        }
    }
}

fn if_still_free(of: &mut soldonce_core::Policy) {
    of.late_payment = LatePayment::IfStillFree;
}

/// Staff ended the hold while its buyer was at the bank's page. The seats are free, and not for this money.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn money_for_a_hold_that_staff_revoked_goes_back() {
    for store in Store::ALL {
        for place in [Place::new(store).await, Place::paid_at_once(store).await] {
            let mut rig = Rig::at(place, "hamlet-1", if_still_free).await;
            let (hold, paying) = rig.begun("ann", &["A-1"]).await;
            let reason = Text::parse("a bot").unwrap();
            let revoked = rig.engine.revoke(&rig.call(), hold, reason).await;
            revoked.unwrap();
            rig.pay(&paying, VISA).await;
            rig.take_notices().await;
            let late = rig.booking(paying.booking).await.state;
            assert_eq!(late, BookingState::NeedsRefund, "{store:?}");
            rig.run_outbox();
            rig.settle().await;
            let over = rig.booking(paying.booking).await.state;
            assert_eq!(over, BookingState::Refunded, "{store:?}");
            assert_eq!((rig.kept(), rig.reserved()), (0, 0), "{store:?}");
            rig.hold("bob", &["A-1"]).await.unwrap();
        }
    }
}

/// Whether a payment stays taken when what was told before that is heard only now.
async fn old_notices_change_nothing(place: Arc<Place>) -> bool {
    let mut rig = Rig::at(place, "hamlet-1", |_| {}).await;
    let (_, paying) = rig.begun("ann", &["A-1"]).await;
    rig.pay(&paying, VISA).await;
    let on_their_way = rig.notices().await;
    rig.mend_all().await;
    rig.run_outbox();
    rig.until_paid_as(paying.booking, PaymentState::Captured)
        .await;
    for notice in &on_their_way {
        rig.engine.take_notice(notice).await.unwrap();
    }
    assert!(!on_their_way.is_empty());
    rig.payment_state(paying.booking).await == PaymentState::Captured && rig.kept() == PRICE
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_heard_late_never_moves_a_payment_back() {
    for store in Store::ALL {
        let place = Place::new(store).await;
        assert!(old_notices_change_nothing(place).await, "{store:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_payment_without_a_notice_is_found_by_the_reconciler() {
    for store in Store::ALL {
        let mut rig = Rig::on(store, |_| {}).await;
        rig.fake.plan(Plan {
            notices: vec![(Delivery::Dropped, 100)],
            ..Plan::calm()
        });
        let (_, paying) = rig.begun("ann", &["A-1"]).await;
        rig.pay(&paying, VISA).await;
        rig.take_notices().await;
        let found = rig.mismatches().await;
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].what, "paid, not fulfilled");
        let pending = rig.booking(paying.booking).await.state;
        assert_eq!(pending, BookingState::PendingPayment, "it only looked");
        rig.run_outbox();
        rig.settle().await;
        let sold = rig.booking(paying.booking).await;
        assert_eq!(sold.state, BookingState::Confirmed);
        assert_eq!(rig.kept(), PRICE);
    }
}

/// The buyer stays at the bank's page, and the ledger knows it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_payment_that_is_as_it_is_known_needs_no_reconciler() {
    for store in Store::ALL {
        let rig = Rig::on(store, |_| {}).await;
        let (_, paying) = rig.begun("ann", &["A-1"]).await;
        rig.pay(&paying, "pm_card_authenticationRequired").await;
        rig.take_notices().await;
        let state = rig.payment_state(paying.booking).await;
        assert_eq!(state, PaymentState::ActionRequired, "{store:?}");
        assert_eq!(rig.mismatches().await, [], "{store:?}");
    }
}

/// Paid at once and sent back in part by staff, with all notices lost. Only the outbox comes to it,
/// to cancel the intent of a hold that ended.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn money_that_was_sent_back_in_part_unheard_goes_back_in_full() {
    for store in Store::ALL {
        let place = Place::paid_at_once(store).await;
        let goes_back = |of: &mut soldonce_core::Policy| of.late_payment = LatePayment::Refund;
        let mut rig = Rig::at(place, "hamlet-1", goes_back).await;
        rig.fake.plan(Plan {
            notices: vec![(Delivery::Dropped, 100)],
            ..Plan::calm()
        });
        let (hold, paying) = rig.begun("ann", &["A-1"]).await;
        rig.pay(&paying, VISA).await;
        let intent = IntentId::parse(&paying.intent).unwrap();
        let key = ProviderKey::of(paying.booking, "dashboard").unwrap();
        let part = Amount::from_minor(PRICE / 3);
        let provider = rig.engine.provider().unwrap();
        provider.refund(&intent, part, key).await.unwrap();
        rig.engine.release(&rig.call(), hold, None).await.unwrap();
        rig.run_outbox();
        rig.until_paid_as(paying.booking, PaymentState::Refunded)
            .await;
        assert_eq!(rig.kept(), 0, "{store:?}");
    }
}

/// An intent that the provider has cancelled can't be paid, even if its amount was wrong.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_intent_of_a_wrong_amount_is_let_go_of() {
    for store in Store::ALL {
        let mut rig = Rig::on(store, |_| {}).await;
        let (hold, paying) = rig.begun("ann", &["A-1"]).await;
        rig.fake.reprice(&paying.intent, PRICE + 1).unwrap();
        rig.engine
            .abandon(&rig.call(), hold, None, None)
            .await
            .unwrap();
        rig.run_outbox();
        rig.settle().await;
        assert_eq!(rig.mismatches().await, []);
        let booking = rig.booking(paying.booking).await;
        assert_eq!(booking.state, BookingState::Failed);
        assert!(!booking.payment.unwrap().state.has_come());
    }
}

/// The buyer pays within the window and every notice of it is lost; then the window passes, and only
/// then the outbox comes to the intent. What came of the booking, and what is kept and reserved.
async fn unheard_until_too_late(place: Arc<Place>, seat: Seat) -> (BookingState, i64, i64) {
    let short = |policy: &mut soldonce_core::Policy| {
        policy.late_payment = LatePayment::IfStillFree;
        policy.hold_ttl = Span::from_ms(60_000);
        policy.payment_window = Span::from_ms(1_000);
    };
    let event = format!("hamlet-{seat:?}").to_lowercase();
    let mut rig = Rig::at(place, &event, short).await;
    rig.fake.plan(Plan {
        notices: vec![(Delivery::Dropped, 100)],
        ..Plan::calm()
    });
    let (hold, paying) = rig.begun("ann", &["A-1"]).await;
    rig.pay(&paying, VISA).await;
    let ends = rig.engine.ledger().hold(hold).await.unwrap().unwrap();
    rig.place.skip_ms(61_000);
    while rig.engine.now() < ends.expires_at {
        let soon = SystemClock.boot().plus(Duration::from_millis(20));
        SystemClock.sleep_until(soon).await;
    }
    if seat == Seat::Taken {
        rig.hold("bob", &["A-1"]).await.unwrap();
    }
    // The reconciler, which looks at payments of some age alone, does not come first.
    rig.run_outbox();
    let end = SystemClock.boot().plus(PATIENCE);
    while rig.payment_state(paying.booking).await == PaymentState::Created {
        assert!(
            SystemClock.boot() < end,
            "the reconciler does not look at the payment"
        );
        let soon = SystemClock.boot().plus(Duration::from_millis(10));
        SystemClock.sleep_until(soon).await;
    }
    rig.settle().await;
    let state = rig.booking(paying.booking).await.state;
    (state, rig.kept(), rig.reserved())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn money_that_came_in_time_and_unheard_is_not_given_up() {
    for store in Store::ALL {
        for place in [Place::new(store).await, Place::paid_at_once(store).await] {
            let free = unheard_until_too_late(Arc::clone(&place), Seat::Free).await;
            assert_eq!(free, (BookingState::Confirmed, PRICE, 0), "{store:?}");
            let taken = unheard_until_too_late(place, Seat::Taken).await;
            assert_eq!(taken, (BookingState::Refunded, 0, 0), "{store:?}");
        }
    }
}
