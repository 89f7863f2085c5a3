//! Exchanges that cost more: the difference is paid by a booking of its own, and all the money goes
//! back the way it came.

use soldonce_core::{
    Applied, Authority, Booking, BookingId, BookingState, Cause, Command, Difference, Effect,
    GivenLines, HoldId, HoldState, LatePayment, LineChoice, PaymentState, Policy, Rejection,
    StateKind,
};

use super::{world, world_with};
use crate::world::{World, booked, on, policy};

/// A seat costs 1,000, a place of the floor 2,000.
const DIFFERENCE: i64 = 1_000;

/// Ann's paid booking of A-1.
fn seat_of_ann(world: &mut World) -> BookingId {
    let hold = world.hold("ann", "A-1");
    let booking = booked(&world.checkout(hold).unwrap()).id;
    world.pay(booking, PaymentState::Captured).unwrap();
    booking
}

fn lines(world: &World, booking: BookingId, unit: &str) -> GivenLines {
    let units = vec![world.unit(unit)];
    GivenLines { booking, units }
}

/// The buyer pays the difference to a place; gives its hold and its booking.
fn begun(world: &mut World, booking: BookingId) -> (HoldId, BookingId) {
    let hold = world.hold("ann", "floor*1");
    let given = lines(world, booking, "A-1");
    let new = booked(&world.checkout_for(hold, given).unwrap()).id;
    (hold, new)
}

fn get(world: &World, id: BookingId) -> &Booking {
    world.inventory.booking(id).unwrap()
}

/// What is the credit of a booking, and what of its money is another's.
fn shares(world: &World, id: BookingId) -> (i64, i64) {
    let payment = get(world, id).payment.as_ref().unwrap();
    (payment.credit.minor(), payment.carried.minor())
}

fn cancel(world: &mut World, booking: BookingId) -> Applied {
    let (by, lines) = (Authority::Secret, LineChoice::All);
    world.apply(Command::Cancel { booking, by, lines }).unwrap()
}

/// How much goes back to which payment.
fn refunds(applied: &Applied) -> Vec<(BookingId, i64)> {
    let refund = |effect: &Effect| match effect {
        Effect::Refund {
            booking, amount, ..
        } => (*booking, amount.minor()),
        other @ (Effect::Authorise(_)
        | Effect::Capture(_)
        | Effect::Void(_)
        | Effect::CancelIntent(_)) => panic!("{other:?}"),
    };
    applied.effects.iter().map(refund).collect()
}

#[test]
fn a_dearer_exchange_takes_the_difference_and_swaps_in_one_commit() {
    let mut world = world();
    let old = seat_of_ann(&mut world);
    let (_, new) = begun(&mut world, old);
    let payment = get(&world, new).payment.clone().unwrap();
    assert_eq!(payment.amount.minor(), DIFFERENCE);
    assert_eq!(world.state("A-1"), StateKind::Sold, "until it is paid");
    let applied = world.pay(new, PaymentState::Captured).unwrap();
    assert_eq!(applied.commits.len(), 1);
    let steps = applied.commits[0].transitions.iter();
    let causes: Vec<Cause> = steps.map(|step| step.cause).collect();
    assert_eq!(causes, [Cause::Exchanged, Cause::Confirmed]);
    assert_eq!(world.state("A-1"), StateKind::Free);
    assert_eq!(world.state("floor.1"), StateKind::Sold);
    let states = (get(&world, old).state, get(&world, new).state);
    assert_eq!(states, (BookingState::Cancelled, BookingState::Confirmed));
    assert_eq!(shares(&world, old), (0, 1_000));
    assert_eq!(shares(&world, new), (1_000, 0));
    assert!(applied.effects.is_empty(), "no money moves but hers");
}

#[test]
fn all_of_it_goes_back_the_way_it_came() {
    let mut world = world();
    let old = seat_of_ann(&mut world);
    let (_, new) = begun(&mut world, old);
    world.pay(new, PaymentState::Captured).unwrap();
    let third = world.hold("ann", "floor*2");
    let given = lines(&world, new, "floor.1");
    let third = booked(&world.checkout_for(third, given).unwrap()).id;
    world.pay(third, PaymentState::Captured).unwrap();
    assert_eq!(shares(&world, new), (1_000, 2_000));
    let applied = cancel(&mut world, third);
    let ways = [(third, 2_000), (new, DIFFERENCE), (old, 1_000)];
    assert_eq!(refunds(&applied), ways);
    for booking in [old, new, third] {
        assert_eq!(shares(&world, booking), (0, 0));
    }
}

#[test]
fn what_is_another_bookings_cannot_be_sent_back() {
    let mut world = world();
    let old = seat_of_ann(&mut world);
    let (_, new) = begun(&mut world, old);
    world.pay(new, PaymentState::Captured).unwrap();
    let refund = |booking, minor| Command::Refund {
        booking,
        amount: soldonce_core::Amount::from_minor(minor),
    };
    let refusal = world.apply(refund(old, 1)).unwrap_err();
    assert_eq!(refusal.code(), "invalid_request");
    let applied = world.apply(refund(new, 1_500)).unwrap();
    assert_eq!(refunds(&applied), [(new, DIFFERENCE), (old, 500)]);
    assert_eq!(refunds(&cancel(&mut world, new)), [(old, 500)]);
}

#[test]
fn lines_that_are_gone_meanwhile_send_the_money_back_and_keep_the_hold() {
    let mut world = world();
    let old = seat_of_ann(&mut world);
    let (hold, new) = begun(&mut world, old);
    assert_eq!(refunds(&cancel(&mut world, old)), [(old, 1_000)]);
    let applied = world.pay(new, PaymentState::Captured).unwrap();
    assert_eq!(refunds(&applied), [(new, DIFFERENCE)]);
    assert_eq!(get(&world, new).state, BookingState::NeedsRefund);
    let hold = world.inventory.hold(hold).unwrap();
    assert_eq!(hold.state, HoldState::Active);
    world.pay(new, PaymentState::Refunded).unwrap();
    assert_eq!(get(&world, new).state, BookingState::Refunded);
}

#[test]
fn two_exchanges_of_one_line_are_one() {
    let mut world = world();
    let old = seat_of_ann(&mut world);
    let (_, first) = begun(&mut world, old);
    let (_, second) = begun(&mut world, old);
    world.pay(first, PaymentState::Authorised).unwrap();
    let applied = world.pay(second, PaymentState::Authorised).unwrap();
    assert_eq!(applied.effects, [Effect::Void(second)]);
    assert_eq!(get(&world, second).state, BookingState::NeedsRefund);
    assert_eq!(shares(&world, old), (0, 1_000));
}

#[test]
fn a_difference_that_was_never_taken_undoes_the_sale_and_the_rest_goes_back() {
    let mut world = world();
    let old = seat_of_ann(&mut world);
    let (_, new) = begun(&mut world, old);
    let applied = world.pay(new, PaymentState::Authorised).unwrap();
    assert_eq!(applied.effects, [Effect::Capture(new)]);
    let applied = world.pay(new, PaymentState::Lapsed).unwrap();
    assert_eq!(refunds(&applied), [(old, 1_000)]);
    assert_eq!(world.state("floor.1"), StateKind::Free);
}

#[test]
fn a_late_difference_meets_the_policy() {
    for (late_payment, sold) in [
        (LatePayment::IfStillFree, true),
        (LatePayment::Refund, false),
    ] {
        let mut world = world_with(Policy {
            late_payment,
            ..policy()
        });
        let old = seat_of_ann(&mut world);
        let (hold, new) = begun(&mut world, old);
        world.apply(Command::Release { on: on(hold) }).unwrap();
        world.pay(new, PaymentState::Captured).unwrap();
        let is_sold = get(&world, new).state == BookingState::Confirmed;
        assert_eq!(is_sold, sold, "{late_payment:?}");
        let was_given = world.state("A-1") == StateKind::Free;
        assert_eq!(was_given, sold, "{late_payment:?}");
    }
}

#[test]
fn only_what_is_paid_is_exchanged_and_only_the_dearer_by_a_checkout() {
    let mut world = world();
    let hold = world.hold("ann", "A-1");
    let old = booked(&world.checkout(hold).unwrap()).id;
    world.pay(old, PaymentState::Authorised).unwrap();
    let dearer = world.hold("ann", "floor*1");
    let given = lines(&world, old, "A-1");
    let refusal = world.checkout_for(dearer, given.clone()).unwrap_err();
    assert_eq!(refusal, Rejection::PaymentInProgress(old));
    world.pay(old, PaymentState::Captured).unwrap();
    let equal = world.hold("ann", "A-2");
    let refusal = world.checkout_for(equal, given.clone()).unwrap_err();
    assert_eq!(refusal.code(), "invalid_request");
    let of_bob = world.hold("bob", "floor*1");
    let refusal = world.checkout_for(of_bob, given).unwrap_err();
    assert_eq!(refusal, Rejection::BookingNotFound);
}

/// The target of a booking's writes orders them by its fence.
#[test]
fn an_exchanged_booking_has_the_newest_fence_of_its_units() {
    let mut world = world();
    let first = world.hold("ann", "A-1");
    let booking = booked(&world.confirm(first).unwrap()).clone();
    for _ in 0..3 {
        let passing = world.hold("bob", "A-2");
        world.apply(Command::Release { on: on(passing) }).unwrap();
    }
    let new = world.hold("ann", "A-2");
    let fence = world.inventory.hold(new).unwrap().fence;
    assert!(fence > booking.fence);
    let units = lines(&world, booking.id, "A-1").units;
    let exchange = crate::world::exchange_of(booking.id, units, on(new));
    assert_eq!(booked(&world.apply(exchange).unwrap()).fence, fence);
}

/// Who sells without a provider sees to the money himself, as for a confirm.
#[test]
fn a_vouched_difference_needs_no_checkout() {
    let mut world = world();
    let hold = world.hold("ann", "A-1");
    let booking = booked(&world.confirm(hold).unwrap()).id;
    let dearer = world.hold("ann", "floor*1");
    let applied = world.apply(Command::Exchange {
        given: lines(&world, booking, "A-1"),
        on: on(dearer),
        difference: Difference::Vouched,
    });
    assert_eq!(booked(&applied.unwrap()).total().minor(), 2_000);
}
