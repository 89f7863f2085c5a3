//! Random runs: many holders, two events with seats and areas, time that goes on to the exact
//! millisecond and jumps back, restarts, a sweeper that comes now and then or never. After every
//! step the auditor, a recount, a replay and a naive oracle must agree.

mod checks;
mod command;
mod ops;
mod oracle;
mod play;
mod settings;

use std::cell::RefCell;
use std::collections::BTreeSet;

use proptest::prop_assert_eq;
use proptest::test_runner::{TestCaseError, TestRunner};
use soldonce_core::{Booking, Hold, Unit};

use crate::fixed::cases;
use ops::{Op, ops};
use play::{Fault, Mark, Play, start};
use settings::rules;

/// Goes through a run and gives what it reached.
fn go(mut play: Play, ops: &[Op]) -> Result<BTreeSet<Mark>, TestCaseError> {
    for op in ops {
        if let Err(fault) = play.step(op) {
            play.world.forgive();
            return Err(TestCaseError::fail(fault));
        }
    }
    Ok(std::mem::take(&mut play.marks))
}

#[test]
fn no_random_run_breaks_a_promise() {
    let reached = RefCell::new(BTreeSet::new());
    let outcome = TestRunner::new(cases(400)).run(&(rules(), ops(120)), |(policy, ops)| {
        reached.borrow_mut().extend(go(start(&policy), &ops)?);
        Ok(())
    });
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
    let reached = reached.into_inner();
    let missed: Vec<&Mark> = RARE
        .iter()
        .filter(|mark| !reached.contains(*mark))
        .collect();
    assert!(missed.is_empty(), "no run reached {missed:?}");
}

/// What only few runs come to: a workload that never does proves nothing about it.
const RARE: [Mark; 29] = [
    ("hold", "no effect"),
    ("hold", "taken from others"),
    ("hold", "adjacency_refused"),
    ("hold", "budget_exceeded"),
    ("best", "taken from others"),
    ("best", "unit_unavailable"),
    ("change", "taken from others"),
    ("change", "adjacency_refused"),
    ("change", "budget_exceeded"),
    ("change", "unit_unavailable"),
    ("extend", "cap_reached"),
    ("extend", "hold_expired"),
    ("confirm", "hold_expired"),
    ("confirm", "stale_fence"),
    ("checkout", "payment_in_progress"),
    ("abandon", "taken"),
    ("payment", "taken"),
    ("payment", "moved other bookings"),
    ("refund", "taken"),
    ("cancel", "taken"),
    ("cancel", "cancel_closed"),
    ("exchange", "taken"),
    ("exchange", "payment_required"),
    ("sell", "taken from others"),
    ("sell", "adjacency_refused"),
    ("block", "taken from others"),
    ("unblock", "taken"),
    ("cancel event", "taken from others"),
    ("update policy", "taken"),
];

/// The sweeper writes down what is true already, so whether it comes makes no difference: with it
/// after every step, or never, every hold gets the same units under the same fences, and every
/// refusal says the same.
#[test]
fn no_answer_depends_on_the_sweeper() {
    let outcome = TestRunner::new(cases(120)).run(&(rules(), ops(80)), |(policy, ops)| {
        let (mut swept, mut never) = (start(&policy), start(&policy));
        for op in ops.iter().filter(|op| !matches!(op, Op::Sweep(_))) {
            if let Err(fault) = both(&mut swept, &mut never, op) {
                swept.world.forgive();
                never.world.forgive();
                return Err(TestCaseError::fail(fault));
            }
        }
        never.world.sweep();
        prop_assert_eq!(things(&swept), things(&never));
        prop_assert_eq!(&swept.refusals, &never.refusals);
        Ok(())
    });
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
}

fn both(swept: &mut Play, never: &mut Play, op: &Op) -> Result<(), Fault> {
    swept.step(op)?;
    swept.step(&Op::Sweep(u8::MAX))?;
    // A sweep tells the ledger the time, which is then no more forgotten.
    never.world.now = swept.clock;
    if matches!(op, Op::Wait(_)) {
        return Ok(());
    }
    never.step(op)
}

/// All units, holds and bookings.
fn things(play: &Play) -> (Vec<Unit>, Vec<Hold>, Vec<Booking>) {
    let inventory = &play.world.inventory;
    let units = play
        .events
        .iter()
        .flat_map(|event| inventory.seating(*event).unwrap().units());
    (
        units.copied().collect(),
        inventory.holds().cloned().collect(),
        inventory.bookings().cloned().collect(),
    )
}
