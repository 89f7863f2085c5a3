//! Selling, giving back, swapping, paying.

use std::sync::Arc;

use soldonce_core::{
    Authority, Booking, BookingId, BookingState, Command, Difference, Fence, GivenLines, Hold,
    HoldState, LatePayment, LineChoice, LineState, PaymentReport, PaymentState, Rejection,
    Selection, UnitNo,
};

use soldonce_engine::ledger::Ledger;
use tokio::task::JoinSet;

use crate::ledgers::{
    HALL, TestLedger, booked, caller, cancel, euro, expect_taken, held, holder, on, on_with, select,
};

pub(super) async fn a_confirm_sells_every_unit_once(test: TestLedger) {
    let event = test.event().await;
    let hold = test.hold(&event, "ann", &["A-1", "A-2"]).await.unwrap();
    let booking = test.confirm(&hold).await.unwrap();
    assert_eq!(booking.state, BookingState::Confirmed);
    assert_eq!(booking.total().minor(), 9_000);
    assert!(
        booking
            .lines
            .iter()
            .all(|line| line.state == LineState::Sold)
    );
    let again = test.confirm(&hold).await.unwrap_err();
    assert_eq!(again, Rejection::HoldConsumed(booking.id));
    assert!(test.hold(&event, "bob", &["A-2"]).await.is_err());
    let stored = test.ledger.booking(booking.id).await.unwrap().unwrap();
    assert_eq!(stored, booking);
    let consumed = test.ledger.hold(hold.id).await.unwrap().unwrap();
    assert_eq!(consumed.state, HoldState::Consumed(booking.id));
}

pub(super) async fn a_confirm_needs_the_newest_fence_and_time(test: TestLedger) {
    let event = test.event().await;
    let hold = test.hold(&event, "ann", &["A-1"]).await.unwrap();
    let with = |fence| Command::Confirm {
        on: on_with(&hold, fence),
        booking: test.booking_id(),
        reference: None,
    };
    let old = Fence(hold.fence.0 - 1);
    assert_eq!(
        test.ask(with(old)).await.unwrap_err(),
        Rejection::StaleFence(hold.fence)
    );
    test.advance_ms(600_000);
    let taken = test.hold(&event, "bob", &["A-1"]).await.unwrap();
    assert_eq!(
        test.ask(with(hold.fence)).await.unwrap_err(),
        Rejection::HoldExpired
    );
    assert_eq!(
        test.ask(with(taken.fence)).await.unwrap_err(),
        Rejection::HoldExpired
    );
    test.confirm(&taken).await.unwrap();
}

pub(super) async fn lines_are_cancelled_once_and_sold_again(mut test: TestLedger) {
    let event = test.event().await;
    let hold = test.hold(&event, "ann", &["A-1", "A-2"]).await.unwrap();
    let booking = test.confirm(&hold).await.unwrap();
    let first = UnitNo(0);
    let cancel = |lines| Command::Cancel {
        booking: booking.id,
        by: Authority::Caller(caller()),
        lines,
    };
    let some = |units: &[UnitNo]| LineChoice::Some {
        units: units.to_vec(),
        places: Selection::default(),
    };
    test.restart().await;
    let partly = booked(test.ask(cancel(some(&[first]))).await).unwrap();
    assert_eq!(partly.state, BookingState::PartlyCancelled);
    test.restart().await;
    let again = test.ask(cancel(some(&[first]))).await.unwrap_err();
    assert_eq!(again, Rejection::AlreadyCancelled(vec![first]));
    let resold = test.hold(&event, "bob", &["A-1"]).await.unwrap();
    assert!(resold.fence > booking.fence);
    let other = test.confirm(&resold).await.unwrap();
    let rest = booked(test.ask(cancel(LineChoice::All)).await).unwrap();
    assert_eq!(rest.state, BookingState::Cancelled);
    assert_eq!(test.ledger.booking(other.id).await.unwrap(), Some(other));
    assert_eq!(test.ledger.booking(rest.id).await.unwrap(), Some(rest));
}

/// Cancellations and holds of the same seats come together: no batch frees a unit from SOLD and moves it again.
pub(super) async fn a_unit_is_freed_and_held_again_at_once(test: TestLedger) {
    let event = test.event().await;
    for round in 0..8 {
        let mut sold = Vec::new();
        for seat in ["A-1", "A-2", "A-3"] {
            let buyer = format!("ann-{round}-{seat}");
            let hold = test.hold(&event, &buyer, &[seat]).await.unwrap();
            sold.push(test.confirm(&hold).await.unwrap());
        }
        let cancel = |n: usize| test.ask(cancel(sold[n].id));
        let hold =
            |seat| test.ask(test.hold_command(&event, &format!("bob-{round}-{seat}"), &[seat]));
        // They enter the queue in this sequence.
        let all = tokio::join!(
            cancel(0),
            hold("A-1"),
            cancel(1),
            hold("A-2"),
            cancel(2),
            hold("A-3"),
        );
        for cancelled in [all.0, all.2, all.4] {
            assert_eq!(booked(cancelled).unwrap().state, BookingState::Cancelled);
        }
        for held_again in [all.1, all.3, all.5] {
            match held(held_again) {
                Ok(hold) => {
                    let release = Command::Release { on: on(&hold) };
                    held(test.ask(release).await).unwrap();
                }
                Err(Rejection::UnitUnavailable(_)) => {}
                Err(other) => panic!("{other:?}"),
            }
        }
    }
}

pub(super) async fn an_exchange_is_one_step(mut test: TestLedger) {
    let event = test.event().await;
    let hold = test.hold(&event, "ann", &["A-1", "A-2"]).await.unwrap();
    let booking = test.confirm(&hold).await.unwrap();
    let new = test.hold(&event, "ann", &["B-1"]).await.unwrap();
    test.restart().await;
    let exchange = |hold: &Hold, give: u32| Command::Exchange {
        given: GivenLines {
            booking: booking.id,
            units: vec![UnitNo(give)],
        },
        on: on(hold),
        difference: Difference::Unpaid,
    };
    let swapped = booked(test.ask(exchange(&new, 0)).await).unwrap();
    let sold: Vec<(u32, LineState)> = swapped
        .lines
        .iter()
        .map(|line| (line.unit.0, line.state))
        .collect();
    assert_eq!(sold, [(1, LineState::Sold), (5, LineState::Sold)]);
    let back = test.hold(&event, "ann", &["A-1"]).await.unwrap();
    let swapped = booked(test.ask(exchange(&back, 5)).await).unwrap();
    test.restart().await;
    assert_eq!(
        test.ledger.booking(booking.id).await.unwrap(),
        Some(swapped)
    );
    test.hold(&event, "bob", &["B-1"]).await.unwrap();
    assert!(test.hold(&event, "bob", &["A-1"]).await.is_err());
}

pub(super) async fn a_sale_without_hold(test: TestLedger) {
    let event = test.event().await;
    let sell = |seats: &[&str], places: &[(&str, u32)]| Command::Sell {
        event: event.no,
        selection: select(&event, seats, places),
        holder: holder("door"),
        booking: test.booking_id(),
        reference: None,
    };
    let booking = booked(test.ask(sell(&["A-1", "A-2"], &[("floor", 2)])).await).unwrap();
    assert_eq!((booking.lines.len(), booking.hold), (4, None));
    expect_taken(&test.ask(sell(&["A-2"], &[])).await);
    assert!(test.ask(sell(&[], &[("floor", 4)])).await.is_err());
    assert_eq!(
        test.ledger.booking(booking.id).await.unwrap(),
        Some(booking)
    );
}

fn paid(booking: &Booking, state: PaymentState) -> Command {
    Command::Payment(Box::new(PaymentReport::whole(booking, euro(), state)))
}

fn paid_as(booking: &Booking) -> Option<PaymentState> {
    booking.payment.as_ref().map(|payment| payment.state)
}

/// A buyer who moves up twice has three bookings with money; all of it is found, also what the ledger
/// has let go of.
pub(super) async fn differences_are_paid_and_go_back(mut test: TestLedger) {
    let event = test.event().await;
    let mut bookings: Vec<Booking> = Vec::new();
    for seats in [&["A-1"][..], &["A-2", "A-3"], &["A-4", "A-5", "B-1"]] {
        let hold = test.hold(&event, "ann", seats).await.unwrap();
        test.restart().await;
        let exchange = bookings.last().map(|before| GivenLines {
            booking: before.id,
            units: before.lines.iter().map(|line| line.unit).collect(),
        });
        let command = Command::Checkout {
            on: on(&hold),
            booking: test.booking_id(),
            reference: None,
            exchange,
        };
        let begun = booked(test.ask(command).await).unwrap();
        assert_eq!(begun.payment.as_ref().unwrap().amount.minor(), 4_500);
        test.restart().await;
        let captured = paid(&begun, PaymentState::Captured);
        let sold = booked(test.ask(captured).await).unwrap();
        assert_eq!(sold.state, BookingState::Confirmed);
        bookings.push(sold);
    }
    let last = bookings.last().unwrap();
    let credit = |booking: &Booking| booking.payment.as_ref().unwrap().credit.minor();
    assert_eq!(credit(last), 9_000);
    test.hold(&event, "bob", &["A-1", "A-2", "A-3"])
        .await
        .unwrap();
    test.restart().await;
    let cancel = Command::Cancel {
        booking: last.id,
        by: Authority::Secret,
        lines: LineChoice::All,
    };
    test.ask(cancel).await.unwrap();
    for booking in &bookings {
        let found = test.ledger.booking(booking.id).await.unwrap().unwrap();
        assert_eq!(found.state, BookingState::Cancelled);
        let payment = found.payment.unwrap();
        assert_eq!(payment.returned.minor(), 4_500);
        assert_eq!(payment.left().minor(), 0);
    }
}

/// Each event may have a memory of its own: the booking is not in that of the hold.
pub(super) async fn nothing_is_exchanged_for_another_event(test: TestLedger) {
    let (event, other) = (test.event().await, test.other_event().await);
    for (of_booking, of_hold) in [(&event, &other), (&other, &event)] {
        let hold = test.hold(of_booking, "ann", &["A-1"]).await.unwrap();
        let booking = test.confirm(&hold).await.unwrap();
        let dearer = test.hold(of_hold, "ann", &["A-2", "A-3"]).await.unwrap();
        let given = GivenLines {
            booking: booking.id,
            units: vec![UnitNo(0)],
        };
        let at_once = Command::Exchange {
            given: given.clone(),
            on: on(&dearer),
            difference: Difference::Vouched,
        };
        let paid = Command::Checkout {
            on: on(&dearer),
            booking: test.booking_id(),
            reference: None,
            exchange: Some(given),
        };
        for command in [at_once, paid] {
            let refusal = test.ask(command).await.unwrap_err();
            assert_eq!(refusal.code(), "invalid_request", "{refusal:?}");
        }
        let stored = test.ledger.booking(booking.id).await.unwrap();
        assert_eq!(stored, Some(booking));
    }
}

/// A booking is a row and its lines: a reader while it is sold and given back sees all of one
/// state.
pub(super) async fn a_booking_is_read_whole_while_it_changes(test: TestLedger) {
    let event = test.event().await;
    for _ in 0..30 {
        let seats = ["A-1", "A-2", "A-3", "A-4", "A-5", "B-1"];
        let hold = test.hold(&event, "ann", &seats).await.unwrap();
        let begun = booked(test.ask(test.checkout_command(&hold)).await).unwrap();
        let mut watchers = JoinSet::new();
        for _ in 0..4 {
            let (ledger, id) = (Arc::clone(&test.ledger), begun.id);
            watchers.spawn(async move { watched(&*ledger, id).await });
        }
        test.ask(paid(&begun, PaymentState::Captured))
            .await
            .unwrap();
        test.ask(cancel(begun.id)).await.unwrap();
        watchers.join_all().await;
    }
}

/// Looks at a booking until it is cancelled.
async fn watched(ledger: &dyn Ledger, id: BookingId) {
    loop {
        let booking = ledger.booking(id).await.unwrap().unwrap();
        let line = if booking.state == BookingState::PendingPayment {
            LineState::Pending
        } else if booking.state == BookingState::Confirmed {
            LineState::Sold
        } else {
            LineState::Cancelled
        };
        assert!(
            booking.lines.iter().all(|of| of.state == line),
            "{booking:?}"
        );
        if line == LineState::Cancelled {
            return;
        }
        tokio::task::yield_now().await;
    }
}

pub(super) async fn money_confirms_a_pinned_hold(mut test: TestLedger) {
    let event = test.event().await;
    let hold = test.hold(&event, "ann", &["A-1"]).await.unwrap();
    let booking = booked(test.ask(test.checkout_command(&hold)).await).unwrap();
    assert_eq!(booking.state, BookingState::PendingPayment);
    assert_eq!(
        test.confirm(&hold).await.unwrap_err(),
        Rejection::PaymentInProgress(booking.id)
    );
    test.restart().await;
    test.ask(paid(&booking, PaymentState::Processing))
        .await
        .unwrap();
    let confirmed = booked(test.ask(paid(&booking, PaymentState::Authorised)).await).unwrap();
    assert_eq!(confirmed.state, BookingState::Confirmed);
    let repeated = booked(test.ask(paid(&booking, PaymentState::Authorised)).await).unwrap();
    assert_eq!(repeated, confirmed);
    test.restart().await;
    let captured = booked(test.ask(paid(&booking, PaymentState::Captured)).await).unwrap();
    assert_eq!(paid_as(&captured), Some(PaymentState::Captured));
    let late = booked(test.ask(paid(&booking, PaymentState::Authorised)).await).unwrap();
    assert_eq!(
        paid_as(&late),
        Some(PaymentState::Captured),
        "a payment never moves back"
    );
}

pub(super) async fn late_money_gets_free_units_or_goes_back(mut test: TestLedger) {
    let event = test
        .event_on(HALL, |policy| {
            policy.late_payment = LatePayment::IfStillFree;
        })
        .await;
    let mut late = Vec::new();
    for (who, seat) in [("ann", "A-1"), ("bob", "A-2")] {
        let hold = test.hold(&event, who, &[seat]).await.unwrap();
        let checkout = test.checkout_command(&hold);
        late.push(booked(test.ask(checkout).await).unwrap());
    }
    test.advance_ms(600_000);
    test.ask(Command::Sweep { limit: 9 }).await.unwrap();
    test.hold(&event, "eve", &["A-2"]).await.unwrap();
    test.restart().await;
    let (free, gone) = (late.remove(0), late.remove(0));
    assert_eq!(
        test.ledger.booking(free.id).await.unwrap().unwrap().state,
        BookingState::Expired
    );
    let confirmed = booked(test.ask(paid(&free, PaymentState::Authorised)).await).unwrap();
    assert_eq!(confirmed.state, BookingState::Confirmed);
    let lost = booked(test.ask(paid(&gone, PaymentState::Authorised)).await).unwrap();
    assert_eq!(lost.state, BookingState::NeedsRefund);
    test.restart().await;
    let back = booked(test.ask(paid(&gone, PaymentState::Voided)).await).unwrap();
    assert_eq!(back.state, BookingState::Refunded);
}

pub(super) async fn a_failed_payment_gives_the_units_back_to_the_same_buyer(mut test: TestLedger) {
    let event = test.event().await;
    let hold = test.hold(&event, "ann", &["A-1"]).await.unwrap();
    let first = booked(test.ask(test.checkout_command(&hold)).await).unwrap();
    test.restart().await;
    let failed = booked(test.ask(paid(&first, PaymentState::Failed)).await).unwrap();
    assert_eq!(failed.state, BookingState::Failed);
    let kept = test.ledger.hold(hold.id).await.unwrap().unwrap();
    assert_eq!(kept.state, HoldState::Active);
    test.restart().await;
    let second = booked(test.ask(test.checkout_command(&kept)).await).unwrap();
    let dropped = held(
        test.ask(Command::Abandon {
            on: on(&kept),
            booking: None,
        })
        .await,
    )
    .unwrap();
    assert_eq!(dropped.state, HoldState::Active);
    let third = booked(test.ask(test.checkout_command(&kept)).await).unwrap();
    let confirmed = booked(test.ask(paid(&third, PaymentState::Captured)).await).unwrap();
    assert_eq!(confirmed.state, BookingState::Confirmed);
    for booking in [first, second] {
        let stored = test.ledger.booking(booking.id).await.unwrap().unwrap();
        assert_eq!(stored.state, BookingState::Failed);
    }
}
