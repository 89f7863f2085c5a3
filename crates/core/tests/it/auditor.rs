//! The auditor finds every promise that a history can show to be broken. A good history is spoiled
//! in one place at a time; it must name the promise, and have nothing to say about the good one.

use std::collections::BTreeSet;

use soldonce_core::{
    Auditor, BookingId, Cause, Command, Fence, History, HoldId, Invariant, Policy, Seq, Span,
    StateKind, Timestamp, Transition, TtlMax, UnitNo, UnitState, Version,
};

use crate::world::{World, booked, on, policy, rows_and_floor};

/// The steps of the good history, each a commit.
const MADE: usize = 0;
const EXTENDED: usize = 1;
const PINNED: usize = 2;
const UNPINNED: usize = 3;
const CONFIRMED: usize = 4;
const CANCELLED: usize = 5;
const SHORT: usize = 6;
const TAKEN_OVER: usize = 7;
const CHANGED: usize = 8;
const RELEASED: usize = 9;

/// Ann's hold of is extended, pinned, unpinned and confirmed, the booking cancelled;
/// bob takes over two of the three later seats, changes that hold and releases it.
fn good() -> History {
    let mut world = World::new(rows_and_floor(&[6], 0), policy());
    let hold = world.hold("ann", "A-1 A-2");
    world.wait(10_000);
    let extend = Command::Extend {
        on: on(hold),
        ttl: None,
        ttl_max: TtlMax::HoldMax,
    };
    world.apply(extend).unwrap();
    world.checkout(hold).unwrap();
    world.abandon(hold);
    let booking = booked(&world.confirm(hold).unwrap()).id;
    let (by, lines) = (
        soldonce_core::Authority::Staff,
        soldonce_core::LineChoice::All,
    );
    world.apply(Command::Cancel { booking, by, lines }).unwrap();
    world.hold("ann", "A-2 A-3 A-4");
    world.wait(60_000);
    let other = world.hold("bob", "A-3 A-4");
    let change = soldonce_core::Change {
        on: on(other),
        add: world.select("A-5"),
        drop: world.select("A-3").seats().to_vec(),
        drop_places: soldonce_core::Selection::default(),
    };
    world.apply(Command::Change(Box::new(change))).unwrap();
    world.apply(Command::Release { on: on(other) }).unwrap();
    world.history(world.event)
}

/// The transition of a unit, counted in its commit.
fn step(history: &mut History, commit: usize, at: usize) -> &mut Transition {
    &mut history.commits[commit].transitions[at]
}

/// What a commit leaves held ends at another time.
fn until(history: &mut History, commit: usize, ms: i64) {
    for step in &mut history.commits[commit].transitions {
        if let UnitState::Held { until, .. } = &mut step.to {
            *until = Timestamp::from_ms(ms);
        }
    }
}

fn fence(history: &mut History, commit: usize, fence: Fence) {
    for step in &mut history.commits[commit].transitions {
        step.fence = fence;
    }
}

/// The units of a commit get another state, and the commit after it agrees.
fn to(history: &mut History, commit: usize, state: UnitState) {
    for at in 0..history.commits[commit].transitions.len() {
        step(history, commit, at).to = state;
    }
}

fn found(history: &History) -> Vec<Invariant> {
    let violations = Auditor::check(history);
    let found: BTreeSet<Invariant> = violations.iter().map(|found| found.invariant).collect();
    found.into_iter().collect()
}

type Spoil = fn(&mut History);

/// What is wrong, with which commit it shows, and what the auditor says then.
const SPOILED: [(&str, usize, &[Invariant], Spoil); 34] = [
    (
        "a unit is sold again",
        CONFIRMED + 1,
        &[Invariant::I1SoldTwice, Invariant::I3BrokenState],
        |history| {
            history.commits.truncate(CONFIRMED + 1);
            let mut again = history.commits[CONFIRMED].clone();
            again.seq = again.seq.next();
            again.transitions.truncate(1);
            let sold = &mut again.transitions[0];
            sold.from = UnitState::Free;
            sold.to = UnitState::Sold(BookingId::from_bits(99));
            (sold.cause, sold.hold) = (Cause::SoldDirectly, None);
            (sold.fence, sold.version) = (sold.fence.next(), sold.version.next());
            history.commits.push(again);
        },
    ),
    (
        "a sold unit is held",
        SHORT,
        &[
            Invariant::I1SoldTwice,
            Invariant::I3BrokenState,
            Invariant::I6FenceNotRising,
            Invariant::I20Gap,
        ],
        |history| {
            history.commits.remove(CANCELLED);
        },
    ),
    (
        "a hold expires while it is live",
        TAKEN_OVER,
        &[Invariant::I2HeldTwice, Invariant::I8BeyondCap],
        |history| {
            history.commits[TAKEN_OVER].at = history.commits[SHORT].at;
        },
    ),
    (
        "a held unit is taken without a word",
        TAKEN_OVER,
        &[
            Invariant::I2HeldTwice,
            Invariant::I3BrokenState,
            Invariant::I20Gap,
        ],
        |history| {
            history.commits[TAKEN_OVER]
                .transitions
                .retain(|step| step.cause != Cause::Expired);
        },
    ),
    (
        "a hold is extended when it is over",
        EXTENDED,
        &[Invariant::I2HeldTwice],
        |history| {
            for commit in &mut history.commits[EXTENDED..] {
                commit.at = Timestamp::from_ms(commit.at.ms() + 50_000);
            }
        },
    ),
    (
        "a state comes from nowhere",
        MADE,
        &[Invariant::I3BrokenState],
        |history| {
            step(history, MADE, 0).from = UnitState::Blocked;
        },
    ),
    (
        "a cause that leads elsewhere",
        RELEASED,
        &[Invariant::I3BrokenState],
        |history| {
            step(history, RELEASED, 0).cause = Cause::Cancelled;
        },
    ),
    (
        "an extension that shortens",
        EXTENDED,
        &[Invariant::I3BrokenState],
        |history| {
            until(history, EXTENDED, 1_059_999);
        },
    ),
    (
        "a change that extends",
        CHANGED,
        &[Invariant::I3BrokenState],
        |history| {
            until(history, CHANGED, 1_140_000);
        },
    ),
    (
        "a hold that is over when made",
        MADE,
        &[Invariant::I3BrokenState],
        |history| {
            until(history, MADE, 1_000_000);
        },
    ),
    (
        "payment ends that never began",
        UNPINNED,
        &[Invariant::I3BrokenState, Invariant::I20Gap],
        |history| {
            history.commits.remove(PINNED);
        },
    ),
    (
        "payment begins twice",
        UNPINNED,
        &[Invariant::I3BrokenState],
        |history| {
            for at in 0..2 {
                step(history, UNPINNED, at).cause = Cause::Pinned;
            }
        },
    ),
    (
        "extended while payment is open",
        UNPINNED,
        &[Invariant::I3BrokenState],
        |history| {
            for at in 0..2 {
                step(history, UNPINNED, at).cause = Cause::Extended;
            }
        },
    ),
    (
        "a hold lives after its end",
        SHORT,
        &[Invariant::I3BrokenState],
        |history| {
            let again = HoldId::from_bits(1);
            for step in &mut history.commits[SHORT].transitions {
                step.hold = Some(again);
                let until = Timestamp::from_ms(1_070_000);
                step.to = UnitState::Held { hold: again, until };
            }
        },
    ),
    (
        "a confirm at the end",
        CONFIRMED,
        &[Invariant::I4LateConfirm],
        |history| {
            history.commits[CONFIRMED].at = Timestamp::from_ms(1_030_000);
        },
    ),
    (
        "a confirm long after the end",
        CONFIRMED,
        &[Invariant::I4LateConfirm],
        |history| {
            history.commits[CONFIRMED].at = Timestamp::from_ms(1_060_000);
        },
    ),
    (
        "a takeover of half a hold",
        TAKEN_OVER,
        &[Invariant::I5PartialHold],
        |history| {
            history.commits[TAKEN_OVER].transitions.remove(0);
        },
    ),
    (
        "a release of half a hold",
        RELEASED,
        &[Invariant::I5PartialHold],
        |history| {
            history.commits[RELEASED].transitions.pop();
        },
    ),
    (
        "an extension of half a hold",
        EXTENDED,
        &[Invariant::I5PartialHold],
        |history| {
            history.commits[EXTENDED].transitions.pop();
        },
    ),
    (
        "a hold made twice",
        EXTENDED,
        &[Invariant::I5PartialHold],
        |history| {
            let late = history.commits[MADE].transitions.pop().unwrap();
            history.commits[EXTENDED].transitions[1] = late;
        },
    ),
    (
        "a hold without a record",
        MADE,
        &[Invariant::I5PartialHold],
        |history| {
            history
                .holds
                .retain(|terms| terms.id != HoldId::from_bits(1));
        },
    ),
    (
        "a new owner with the old fence",
        MADE,
        &[Invariant::I6FenceNotRising],
        |history| {
            fence(history, MADE, Fence(0));
        },
    ),
    (
        "a takeover with the old fence",
        TAKEN_OVER,
        &[Invariant::I6FenceNotRising],
        |history| {
            let old = history.commits[TAKEN_OVER].transitions[0].fence;
            fence(history, TAKEN_OVER, old);
        },
    ),
    (
        "a fence that falls",
        EXTENDED,
        &[Invariant::I6FenceNotRising],
        |history| {
            fence(history, EXTENDED, Fence(0));
        },
    ),
    (
        "a fence that leaves a gap",
        MADE,
        &[Invariant::I6FenceNotRising],
        |history| {
            fence(history, MADE, Fence(7));
        },
    ),
    (
        "a change with the old fence",
        CHANGED,
        &[Invariant::I6FenceNotRising],
        |history| {
            let old = history.commits[TAKEN_OVER].transitions[4].fence;
            fence(history, CHANGED, old);
        },
    ),
    (
        "a line given back under the old fence",
        CANCELLED,
        &[Invariant::I6FenceNotRising],
        |history| {
            step(history, CANCELLED, 0).fence = Fence(1);
        },
    ),
    (
        "a foreign hold is released",
        RELEASED,
        &[Invariant::I7ForeignHold],
        |history| {
            for step in &mut history.commits[RELEASED].transitions {
                step.hold = Some(HoldId::from_bits(1));
            }
        },
    ),
    (
        "units are held in another's name",
        MADE,
        &[Invariant::I7ForeignHold],
        |history| {
            step(history, MADE, 0).hold = None;
        },
    ),
    (
        "a release when it is over",
        RELEASED,
        &[Invariant::I7ForeignHold],
        |history| {
            history.commits[RELEASED].at = Timestamp::from_ms(1_130_000);
        },
    ),
    (
        "a life beyond the cap",
        MADE,
        &[Invariant::I8BeyondCap],
        |history| {
            until(history, MADE, 1_180_001);
        },
    ),
    (
        "more than the budget",
        MADE,
        &[Invariant::I9OverBudget],
        |history| {
            history.terms = Some(Policy {
                units_per_holder_max: 1,
                ..policy()
            });
        },
    ),
    (
        "a seat that the chart has not",
        RELEASED,
        &[Invariant::I10UnknownUnit],
        |history| {
            history.units = 4;
        },
    ),
    (
        "a commit is missing at the start",
        RELEASED,
        &[Invariant::I3BrokenState, Invariant::I20Gap],
        |history| {
            history.commits.remove(MADE);
        },
    ),
];

#[test]
fn nothing_is_wrong_with_the_good_history() {
    let history = good();
    assert_eq!(found(&history), []);
    let causes: Vec<Cause> = history
        .commits
        .iter()
        .map(|commit| commit.transitions[0].cause)
        .collect();
    assert_eq!(
        causes,
        [
            Cause::Held,
            Cause::Extended,
            Cause::Pinned,
            Cause::Unpinned,
            Cause::Confirmed,
            Cause::Cancelled,
            Cause::Held,
            Cause::Expired,
            Cause::Changed,
            Cause::Released
        ]
    );
}

#[test]
fn every_broken_promise_is_named() {
    let mut wrong = Vec::new();
    for (what, last, expected, spoil) in SPOILED {
        let mut history = good();
        history.commits.truncate(last + 1);
        spoil(&mut history);
        let found = found(&history);
        if found != expected {
            wrong.push(format!("{what}: {found:?} for {expected:?}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn gaps_and_jumps_are_named() {
    let mut history = good();
    history.commits[SHORT].seq = history.commits[TAKEN_OVER].seq;
    assert!(found(&history).contains(&Invariant::I20Gap));
    let mut history = good();
    step(&mut history, SHORT, 1).version = Version(9);
    assert!(found(&history).contains(&Invariant::I20Gap));
    let mut history = good();
    history.commits[SHORT].at = Timestamp::from_ms(1_009_999);
    assert!(found(&history).contains(&Invariant::I21TimeWentBack));
    let mut history = good();
    to(&mut history, SHORT, UnitState::Blocked);
    assert!(found(&history).contains(&Invariant::I3BrokenState));
}

/// A unit that makes one step from one kind of state to another.
fn made(from: StateKind, cause: Cause, to: StateKind) -> History {
    let (until, id) = (Timestamp::from_ms(2_000_000), HoldId::from_bits(1));
    let state = |kind| match kind {
        StateKind::Free => UnitState::Free,
        StateKind::Held => UnitState::Held { hold: id, until },
        StateKind::Sold => UnitState::Sold(BookingId::from_bits(1)),
        StateKind::Blocked => UnitState::Blocked,
    };
    let mut history = good();
    history.commits.truncate(2);
    let before = if from == StateKind::Free {
        UnitState::Blocked
    } else {
        UnitState::Free
    };
    let steps = [
        (before, state(from), Cause::Held),
        (state(from), state(to), cause),
    ];
    for (n, (from, to, cause)) in (1_u64..).zip(steps) {
        let commit = &mut history.commits[usize::try_from(n).unwrap() - 1];
        commit.transitions = vec![Transition {
            unit: UnitNo(5),
            from,
            to,
            fence: Fence(n),
            version: Version(n),
            cause,
            hold: Some(id),
        }];
    }
    history
}

/// The auditor has a table of its own. A wrong line in it, or in that of the rules, shows here; and no line
/// of either lets a unit be sold twice.
#[test]
fn the_auditor_and_the_rules_name_the_same_steps() {
    for cause in Cause::ALL {
        for (from, to) in StateKind::ALL
            .map(|from| StateKind::ALL.map(|to| (from, to)))
            .concat()
        {
            let found = Auditor::check(&made(from, cause, to));
            let of_step = found.iter().filter(|found| found.seq == Seq(2));
            let refused = of_step.clone().any(|found| found.detail.contains(" > "));
            let why = format!("{from:?} > {to:?} by {cause:?}: {found:?}");
            assert_eq!(refused, !cause.allows(from, to), "{why}");
            // A correction of the clock leaves a unit with its booking.
            let is_taken =
                from == StateKind::Sold && matches!(to, StateKind::Sold | StateKind::Held);
            if is_taken && cause.allows(from, to) {
                assert_eq!(cause, Cause::ClockCorrected, "{why}");
            } else if is_taken {
                let twice = of_step.map(|found| found.invariant);
                assert!(
                    twice
                        .into_iter()
                        .any(|found| found == Invariant::I1SoldTwice),
                    "{why}"
                );
            }
        }
    }
}

/// A hold that gives up all it has for units that were never held keeps a fence above its own.
#[test]
fn a_hold_under_a_lower_fence_is_named() {
    let mut world = World::new(rows_and_floor(&[6], 0), policy());
    let before = world.hold("bob", "A-1");
    world.apply(Command::Release { on: on(before) }).unwrap();
    let hold = world.hold("ann", "A-1");
    let change = soldonce_core::Change {
        on: on(hold),
        add: world.select("A-5"),
        drop: world.select("A-1").seats().to_vec(),
        drop_places: soldonce_core::Selection::default(),
    };
    world.apply(Command::Change(Box::new(change))).unwrap();
    let mut history = world.history(world.event);
    assert_eq!(found(&history), []);
    let taken = step(&mut history, 3, 1);
    assert_eq!((taken.unit, taken.fence), (UnitNo(4), Fence(3)));
    // One above what the new unit had.
    taken.fence = Fence(1);
    assert_eq!(found(&history), [Invariant::I6FenceNotRising]);
}

/// A pinned hold may go beyond its cap by one window, and by no more; where the window is not known
/// nothing can be said.
#[test]
fn a_pin_goes_beyond_the_cap_by_one_window() {
    let beyond = |ms: i64, window: Option<u64>| {
        let mut history = good();
        history.terms = window.map(|ms| Policy {
            payment_window: Span::from_ms(ms),
            ..policy()
        });
        until(&mut history, PINNED, 1_180_000 + ms);
        found(&history).contains(&Invariant::I8BeyondCap)
    };
    assert!(!beyond(30_000, Some(30_000)));
    assert!(beyond(30_001, Some(30_000)));
    assert!(!beyond(99_999, None));
}

/// Where the terms are known, a hold is held to them.
#[test]
fn a_hold_beyond_its_terms_is_named() {
    let under = |change: fn(&mut Policy)| {
        let (mut history, mut terms) = (good(), policy());
        change(&mut terms);
        history.terms = Some(terms);
        found(&history)
    };
    assert_eq!(under(|_| ()), []);
    let most = |terms: &mut Policy| terms.units_per_hold_max = 2;
    assert_eq!(under(most), [Invariant::I9OverBudget]);
    let most = |terms: &mut Policy| terms.units_per_holder_max = 2;
    assert_eq!(under(most), [Invariant::I9OverBudget]);
    let shorter = |terms: &mut Policy| terms.hold_max = Span::from_ms(179_999);
    assert_eq!(under(shorter), [Invariant::I8BeyondCap]);
}

#[test]
fn a_violation_says_where() {
    let mut history = good();
    step(&mut history, MADE, 1).fence = Fence(0);
    let shown = Auditor::check(&history)[0].to_string();
    assert!(
        shown.starts_with("VIOLATION I6 fence-not-rising seq=1 unit=#1 "),
        "{shown}"
    );
    assert_eq!(UnitNo(1).index(), 1);
}
