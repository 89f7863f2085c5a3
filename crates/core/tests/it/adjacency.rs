//! `no_orphan`: refuses what leaves a single free seat where it need not, and nothing else.

use std::collections::BTreeSet;

use proptest::prelude::*;
use soldonce_core::{
    Adjacency, Change, Command, HoldId, Policy, Rejection, Selection, Together, UnitNo, Wish,
};

use crate::brute;
use crate::fixed::cases;
use crate::hall::{hall, shown};
use crate::world::{World, held, on, policy};

fn no_orphan() -> Policy {
    Policy {
        adjacency: Adjacency::NoOrphan,
        ..policy()
    }
}

/// `plan` with the wanted seats as `*`; answers with the orphans as `o`, or `fine`.
fn verdict(plan: &str) -> String {
    let free = plan.replace('*', ".");
    let mut world = hall(&free, &no_orphan());
    let seats = plan.chars().filter(|what| !what.is_whitespace());
    let wanted = (0..)
        .map(UnitNo)
        .zip(seats)
        .filter(|(_, what)| *what == '*');
    let wanted: Vec<UnitNo> = wanted.map(|(seat, _)| seat).collect();
    let names = world.names(wanted.iter().copied());
    match world.try_hold("ann", &names) {
        Ok(_) => "fine".to_owned(),
        Err(Rejection::AdjacencyRefused(orphans)) => shown(plan, &orphans, 'o'),
        Err(other) => other.code().to_owned(),
    }
}

#[test]
fn single_seats_that_need_not_be() {
    let cases = [
        // At the wall, and between others.
        (".**...", "o**..."),
        ("**....", "fine"),
        ("..**..", "fine"),
        ("...**.", "...**o"),
        ("X.**..X", "Xo**..X"),
        ("X**...X", "fine"),
        // A gap of one inside a choice.
        ("*.*...", "*o*..."),
        ("*..*..", "fine"),
        ("*...*", "fine"),
        (".*..*.", "o*..*o"),
        (".*...*.", "o*...*o"),
        ("..*.*..", "..*o*.."),
        // It cannot be avoided: one is left after every choice.
        ("**.", "fine"),
        ("*.*", "fine"),
        ("X*.X", "fine"),
        (".*", "fine"),
        // All taken, or a run that was single before.
        ("***", "fine"),
        ("X.X**X", "fine"),
        ("*X.X..", "fine"),
        // Held seats are not free; seats of a hold that is over are.
        ("h**..h", "fine"),
        ("e**...", "o**..."),
        // Two runs in one choice, and two rows.
        ("**.X*.", "fine"),
        (".*.X*.", "o*oX*."),
        ("**.. *.*.", "**.. *o*o"),
        // The price class makes no difference: they are neighbours.
        ("a**...", "o**..."),
        ("a.**..", "fine"),
    ];
    for (plan, expected) in cases {
        let expected = expected.replace('o', "O");
        assert_eq!(verdict(plan).replace('o', "O"), expected, "{plan}");
    }
}

/// Over the result: what the hold has counts as chosen, what it drops is free again.
#[test]
fn a_change_is_judged_by_its_result() {
    let cases = [
        ("A-1 A-2", "A-3", "", "ok"),
        ("A-1", "A-3", "", "A-2"),
        ("A-1 A-2", "A-4", "", "A-3"),
        ("A-1 A-2 A-3", "", "A-2", "A-2"),
        ("A-1 A-2 A-3", "", "A-3", "ok"),
        ("A-1 A-2 A-3", "", "A-1", "A-1"),
        ("A-1 A-2", "A-5 A-6", "", "ok"),
        ("A-1 A-2", "A-3 A-4", "A-1 A-2", "ok"),
        ("A-1 A-2", "A-4 A-5", "A-1 A-2", "A-6"),
        ("A-5 A-6", "A-4", "A-6", "A-6"),
    ];
    for (has, add, drop, expected) in cases {
        let mut world = hall("......", &no_orphan());
        let hold = world.hold("ann", has);
        let found = changed(&mut world, hold, (add, drop));
        assert_eq!(found, expected, "{has} + {add} - {drop}");
    }
}

/// Changes a hold; answers with the seats that would be left single, or `ok`.
fn changed(world: &mut World, hold: HoldId, (add, drop): (&str, &str)) -> String {
    let change = Change {
        on: on(hold),
        add: world.select(add),
        drop: world.select(drop).seats().to_vec(),
        drop_places: Selection::default(),
    };
    match world.apply(Command::Change(Box::new(change))) {
        Ok(_) => "ok".to_owned(),
        Err(Rejection::AdjacencyRefused(orphans)) => world.names(orphans),
        Err(other) => other.code().to_owned(),
    }
}

/// Of one price class the engine takes seats that leave single ones where each place of the class would.
#[test]
fn what_a_hold_left_single_before_refuses_no_change() {
    let mut world = hall(".aa. ......", &no_orphan());
    let wish = Wish::Best {
        quantity: 2,
        category: world.chart().category("a"),
        together: Together::Required,
    };
    let applied = world.try_wish("ann", wish).unwrap();
    let hold = held(&applied);
    let units = hold.units.iter().map(|held| held.unit);
    assert_eq!(world.names(units), "A-2 A-3");
    let hold = hold.id;
    for (add, drop, expected) in [
        ("B-1 B-2", "", "ok"),
        ("B-4", "", "B-3"),
        ("", "A-2", "ok"),
        ("", "B-1", "B-1"),
    ] {
        let found = changed(&mut world, hold, (add, drop));
        assert_eq!(found, expected, "+ {add} - {drop}");
    }
}

proptest! {
    #![proptest_config(cases(400))]

    /// Refused exactly when some other choice of as many seats in the same run leaves no single
    /// seat, and then naming every single seat of that run.
    #[test]
    fn brute_force_agrees(
        plan in "[.Xhe]{1,9} [.Xhe]{1,9}",
        picks in proptest::collection::vec(any::<prop::sample::Index>(), 1..6),
    ) {
        let mut world = hall(&plan, &no_orphan());
        let seats = plan.chars().filter(|what| *what != ' ');
        let free = (0..).map(UnitNo).zip(seats).filter(|(_, what)| ".e".contains(*what));
        let free: BTreeSet<UnitNo> = free.map(|(seat, _)| seat).collect();
        prop_assume!(!free.is_empty());
        let list: Vec<UnitNo> = free.iter().copied().collect();
        let taken: BTreeSet<UnitNo> = picks.iter().map(|pick| *pick.get(&list)).collect();
        let taken: Vec<UnitNo> = taken.into_iter().collect();
        let mut expected = brute::orphans(&world.chart(), &free, &taken);
        expected.sort_unstable();
        let names = world.names(taken);
        let found = match world.try_hold("ann", &names) {
            Ok(_) => Vec::new(),
            Err(Rejection::AdjacencyRefused(orphans)) => orphans,
            Err(other) => panic!("{other}"),
        };
        prop_assert_eq!(found, expected);
    }
}
