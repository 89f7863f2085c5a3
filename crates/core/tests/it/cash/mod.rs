//! Random runs of the inventory with a provider: reports late, twice and in any order, effects that
//! wait, refunds that come back. When all is settled the money is where the seats are: what was taken,
//! less what went back, is what the sold units cost.

mod provider;
mod till;

use std::cell::RefCell;
use std::collections::BTreeSet;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{TestCaseError, TestRunner};
use soldonce_core::{Amount, Booking, LatePayment, OnPaymentFailure, Policy};

use crate::fixed::cases;
use crate::world::policy;
use provider::Way;
use till::Till;

/// What is wrong.
type Fault = String;

/// Whether the ledger is told of it at once.
#[derive(Clone, Copy, Debug)]
enum ToldAtOnce {
    Yes,
    No,
}

/// Numbers pick from what is there.
#[derive(Clone, Debug)]
enum Op {
    /// Who, which seats, how many places.
    Hold(u8, Vec<u8>, u8),
    /// Which hold, and perhaps which lines of which booking are given for it.
    Checkout(u8, Option<(u8, Vec<u8>)>),
    /// All lines of which booking are exchanged for so many places, paid at once.
    MoveUp(u8, u8, Way),
    /// What the buyer or the bank does, and whether it is told of at once.
    Buyer(u8, Way, ToldAtOnce),
    /// What was told so many states ago.
    Tell(u8, u8),
    /// Which effect is carried out, and whether that is heard of.
    CarryOut(u8, ToldAtOnce),
    Cancel(u8, Vec<u8>),
    Exchange(u8, Vec<u8>, u8),
    /// So many halves of a seat's price.
    Refund(u8, u8),
    /// Staff settle elsewhere what is still to go back.
    Settle(u8),
    Abandon(u8),
    Release(u8),
    Revoke(u8),
    Wait(u32),
    CallOff,
}

fn way() -> impl Strategy<Value = Way> {
    prop_oneof![
        4 => Just(Way::Authorise),
        4 => Just(Way::Capture),
        1 => Just(Way::Decline),
        3 => Just(Way::Lapse),
        1 => Just(Way::Bounce),
    ]
}

fn heard() -> impl Strategy<Value = ToldAtOnce> {
    prop_oneof![Just(ToldAtOnce::Yes), Just(ToldAtOnce::No)]
}

fn op() -> impl Strategy<Value = Op> {
    let hold = (0..3_u8, vec(0..6_u8, 0..3), 0..3_u8);
    let lines = || vec(0..4_u8, 1..3);
    let given = proptest::option::weighted(0.6, (0..4_u8, lines()));
    prop_oneof![
        24 => hold.prop_map(|(who, seats, places)| Op::Hold(who / 2, seats, places)),
        24 => (0..2_u8, given).prop_map(|(hold, given)| Op::Checkout(hold, given)),
        24 => (0..4_u8, way(), heard()).prop_map(|(of, way, heard)| Op::Buyer(of, way, heard)),
        8 => (0..2_u8, 1..5_u8, way()).prop_map(|(of, places, way)| Op::MoveUp(of, places, way)),
        12 => (0..4_u8, 0..4_u8).prop_map(|(of, age)| Op::Tell(of, age)),
        16 => (any::<u8>(), heard()).prop_map(|(of, heard)| Op::CarryOut(of, heard)),
        8 => (0..4_u8, vec(0..4_u8, 0..3)).prop_map(|(of, lines)| Op::Cancel(of, lines)),
        8 => (0..4_u8, lines(), 0..2_u8).prop_map(|(of, lines, hold)| Op::Exchange(of, lines, hold)),
        2 => (0..4_u8, 1..4_u8).prop_map(|(of, halves)| Op::Refund(of, halves)),
        2 => (0..4_u8).prop_map(Op::Settle),
        2 => (0..2_u8).prop_map(Op::Abandon),
        1 => (0..2_u8).prop_map(Op::Release),
        1 => (0..2_u8).prop_map(Op::Revoke),
        4 => (0..40_000_u32).prop_map(Op::Wait),
        1 => Just(Op::CallOff),
    ]
}

fn rules() -> impl Strategy<Value = Policy> {
    let late = prop_oneof![
        2 => Just(LatePayment::IfStillFree),
        1 => Just(LatePayment::Refund),
        1 => Just(LatePayment::Refuse),
    ];
    let failed = prop_oneof![
        Just(OnPaymentFailure::Keep),
        Just(OnPaymentFailure::Release)
    ];
    (late, failed).prop_map(|(late_payment, on_payment_failure)| Policy {
        late_payment,
        on_payment_failure,
        ..policy()
    })
}

fn go(mut till: Till, ops: &[Op]) -> Result<Till, TestCaseError> {
    let steps = ops.iter().try_for_each(|op| till.step(op));
    let judged = steps
        .and_then(|()| till.settle())
        .and_then(|()| till.judge());
    if let Err(fault) = judged {
        till.world.forgive();
        // What a planted bug is known by: which fault a random run finds first is chance.
        return Err(TestCaseError::fail(format!("the money is wrong: {fault}")));
    }
    Ok(till)
}

/// What a run came to with differences that were paid.
fn reached(till: &Till) -> impl Iterator<Item = &'static str> {
    let inventory = &till.world.inventory;
    let mark = |booking: &Booking| {
        let payment = booking.payment.as_deref()?;
        payment.exchange.as_ref()?;
        let is_sold = booking.confirmed_at.is_some();
        Some(match inventory.exchanges(booking.id).count() {
            _ if payment.captured == Amount::ZERO && is_sold => "never taken, undone",
            _ if payment.captured > Amount::ZERO && !is_sold => "lines gone, sent back",
            2 if is_sold => "sold for another",
            _ if is_sold => "sold for another of another",
            _ => return None,
        })
    };
    let marks: BTreeSet<_> = inventory.bookings().filter_map(mark).collect();
    marks.into_iter()
}

#[test]
fn what_is_kept_is_what_the_sold_units_cost() {
    let seen = RefCell::new(BTreeSet::new());
    let outcome = TestRunner::new(cases(600)).run(&(rules(), vec(op(), 1..80)), |(policy, ops)| {
        let till = go(Till::new(&policy), &ops)?;
        seen.borrow_mut().extend(reached(&till));
        Ok(())
    });
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
    let seen = seen.into_inner();
    assert_eq!(
        seen.len(),
        4,
        "a run that never pays a difference proves nothing: {seen:?}"
    );
}
