//! `best` and the alternatives offered with a refusal.

use std::cell::Cell;
use std::collections::BTreeSet;

use proptest::prelude::*;
use soldonce_core::{
    Adjacency, Availability, Chart, Command, Policy, Rejection, Together, UnitNo, Wish,
    alternatives_near,
};

use crate::brute::{orphans, runs};
use crate::fixed::cases;
use crate::hall::{chart, hall, shown};
use crate::world::{World, held, on, policy, rows_and_floor};

fn best(world: &mut World, quantity: u32, class: &str, together: Together) -> Found {
    let category = world.chart().category(class);
    assert_eq!(category.is_some(), !class.is_empty(), "no class {class}");
    match world.try_wish(
        "ann",
        Wish::Best {
            quantity,
            category,
            together,
        },
    ) {
        Ok(applied) => {
            let hold = held(&applied);
            let units = hold.units.iter().map(|held| held.unit).collect();
            Found::Units(units, hold.together.unwrap())
        }
        Err(Rejection::UnitUnavailable(refusal)) => {
            assert!(refusal.conflicts.is_empty(), "nothing was named");
            Found::Nothing(
                refusal
                    .alternatives
                    .into_iter()
                    .map(|offer| offer.units)
                    .collect(),
            )
        }
        Err(other) => panic!("{other}"),
    }
}

enum Found {
    Units(Vec<UnitNo>, bool),
    Nothing(Vec<Vec<UnitNo>>),
}

#[test]
fn the_best_seats() {
    use Together::{Preferred, Required};
    let cases = [
        // The middle of the best row.
        (".......", 3, "", Preferred, "..***.."),
        ("......", 2, "", Preferred, "..**.."),
        ("......", 3, "", Preferred, "***..."),
        (".....", 1, "", Preferred, "..*.."),
        ("XXX.... .......", 4, "", Preferred, "XXX**** ......."),
        ("XXXXX.. .......", 4, "", Preferred, "XXXXX.. ****..."),
        // Beside the middle where the middle would leave a single seat.
        ("....", 1, "", Preferred, "*..."),
        (".....", 2, "", Preferred, "**..."),
        ("..X....", 2, "", Preferred, "..X**.."),
        // A run that it fills rather than one in which it leaves one.
        ("..X...X", 2, "", Preferred, "**X...X"),
        (".X..", 1, "", Preferred, "*X.."),
        // One single seat that cannot be avoided in the best row.
        ("...X .....", 2, "", Preferred, ".**X ....."),
        // Held seats are not free, those of a hold that is over are.
        ("hhh.... .......", 4, "", Required, "hhh**** ......."),
        ("eee.... .......", 5, "", Required, "*****.. ......."),
        // Torn apart as little as can be, whole runs first.
        ("..X.. .X..", 3, "", Preferred, "**X.. *X.."),
        ("..X.. ...X", 4, "", Preferred, "*.X.. ***X"),
        ("X.X.X .X.X.", 3, "", Preferred, "X*X*X *X.X."),
        ("X.X.X .X.X.", 2, "", Required, "none; X*X*X .X.X."),
        ("X.X.X .X.X.", 6, "", Preferred, "none"),
        // A price class; not beside a single seat of another one if that can be helped.
        ("aaaa....", 2, "main", Preferred, "aaaa**.."),
        ("a....", 2, "main", Preferred, "a..**"),
        (".aa. ..aa..", 2, "a", Preferred, ".aa. ..**.."),
        (".aa.", 2, "a", Preferred, ".**."),
        (".a.a.", 2, "a", Preferred, ".*.*."),
        (".a.a.", 2, "a", Required, "none; .*.*."),
    ];
    for (plan, quantity, class, together, expected) in cases {
        let mut world = hall(plan, &policy());
        let found = match best(&mut world, quantity, class, together) {
            Found::Units(units, _) => shown(plan, &units, '*'),
            Found::Nothing(offers) => {
                let offers = offers.iter().map(|units| shown(plan, units, '*'));
                ["none".to_owned()]
                    .into_iter()
                    .chain(offers)
                    .collect::<Vec<_>>()
                    .join("; ")
            }
        };
        assert_eq!(found, expected, "{quantity} of {class:?} in {plan}");
    }
}

/// What a window leaves of its run, and how far its middle is from the row's, both the less the
/// better: written down once more, without the code under test.
fn worth(chart: &Chart, run: &[UnitNo], first: usize, quantity: usize) -> (u8, u32) {
    let rest = match (first, run.len() - first - quantity) {
        (0, 1) | (1, 0) => 1,
        (1, _) | (_, 1) => 2,
        _ => 0,
    };
    let (_, row) = chart.row_of(run[first]).unwrap();
    let middle = 2 * row.first.0 + row.seats;
    let own = run[first].0 + run[first + quantity - 1].0 + 1;
    (rest, own.abs_diff(middle))
}

fn free_of(plan: &str) -> BTreeSet<UnitNo> {
    let seats = plan.chars().filter(|what| *what != ' ');
    let free = (0..)
        .map(UnitNo)
        .zip(seats)
        .filter(|(_, what)| !"Xh".contains(*what));
    free.map(|(seat, _)| seat).collect()
}

proptest! {
    #![proptest_config(cases(400))]

    /// Of any class: neighbours in the first row that has a run for them, in its best place; and
    /// never a single seat that another choice would have avoided.
    #[test]
    fn the_best_place_of_the_best_row(plan in "[.Xe]{1,10} [.Xe]{1,10}", quantity in 1..6_usize) {
        let mut world = hall(&plan, &Policy { adjacency: Adjacency::NoOrphan, ..policy() });
        let chart = world.chart();
        let free = free_of(&plan);
        let wanted = u32::try_from(quantity).unwrap();
        let found = best(&mut world, wanted, "", Together::Preferred);
        let all = runs(&chart, &free);
        let fitting: Vec<&Vec<UnitNo>> = all.iter().filter(|run| run.len() >= quantity).collect();
        match found {
            Found::Nothing(_) => prop_assert!(free.len() < quantity),
            Found::Units(units, together) => {
                prop_assert_eq!(units.len(), quantity);
                prop_assert!(units.iter().all(|unit| free.contains(unit)));
                prop_assert_eq!(together, !fitting.is_empty());
                prop_assert_eq!(orphans(&chart, &free, &units), vec![]);
                if let Some(first) = fitting.first() {
                    let row = chart.row_of(first[0]).map(|(row, _)| row);
                    let of_row = fitting.iter().filter(|run| chart.row_of(run[0]).map(|(r, _)| r) == row);
                    let best = of_row
                        .flat_map(|run| (0..=run.len() - quantity).map(|at| worth(&chart, run, at, quantity)))
                        .min();
                    let run = all.iter().find(|run| run.contains(&units[0])).unwrap();
                    let at = run.iter().position(|seat| *seat == units[0]).unwrap();
                    prop_assert_eq!(Some(worth(&chart, run, at, quantity)), best);
                }
            }
        }
    }

    /// Of one class: it is neighbours if there are any, and an orphan is left only when every place
    /// in the hall would leave one.
    #[test]
    fn the_best_of_a_class(plan in "[.aX]{1,9} [.aX]{1,9}", quantity in 1..4_usize) {
        let plan = format!("{plan} a");
        let mut world = hall(&plan, &Policy { adjacency: Adjacency::NoOrphan, ..policy() });
        let chart = world.chart();
        let (free, class) = (free_of(&plan), chart.category("a"));
        let fits = |unit: &UnitNo| class == Some(chart.category_of(*unit));
        let of_class: BTreeSet<UnitNo> = free.iter().copied().filter(fits).collect();
        let windows: Vec<Vec<UnitNo>> = runs(&chart, &of_class)
            .iter()
            .flat_map(|run| run.windows(quantity).map(<[UnitNo]>::to_vec))
            .collect();
        let wanted = u32::try_from(quantity).unwrap();
        match best(&mut world, wanted, "a", Together::Required) {
            Found::Nothing(_) => prop_assert!(windows.is_empty()),
            Found::Units(units, together) => {
                prop_assert!(together && windows.contains(&units));
                let avoidable = windows.iter().any(|other| orphans(&chart, &free, other).is_empty());
                prop_assert_eq!(orphans(&chart, &free, &units).is_empty(), avoidable);
            }
        }
    }

    /// What is offered instead could be had: as many free neighbours of the class, in a row near
    /// by, and `no_orphan` lets them pass.
    #[test]
    fn alternatives_can_be_had(plan in "[.aXh]{2,9} [.aXh]{2,9} [.aXh]{2,9} [.aXh]{2,9}", at in 0..8_u32) {
        let rules = Policy { adjacency: Adjacency::NoOrphan, ..policy() };
        let mut world = hall(&plan, &rules);
        let (chart, free) = (world.chart(), free_of(&plan));
        let wanted: Vec<UnitNo> = (at..at + 2).map(UnitNo).filter(|unit| unit.0 < chart.seats()).collect();
        let names = world.names(wanted.clone());
        let Err(Rejection::UnitUnavailable(refusal)) = world.try_hold("ann", &names) else {
            return Ok(());
        };
        prop_assert!(refusal.alternatives.len() <= 3);
        let home = chart.row_of(wanted[0]).unwrap().0.0;
        let away = |units: &[UnitNo]| chart.row_of(units[0]).unwrap().0.0.abs_diff(home);
        let nearest_first = refusal.alternatives.is_sorted_by_key(|offer| away(&offer.units));
        prop_assert!(nearest_first);
        for offer in &refusal.alternatives {
            prop_assert_eq!(offer.units.len(), wanted.len());
            prop_assert!(offer.units.iter().all(|unit| free.contains(unit)));
            let class = |unit: &UnitNo| chart.category_of(*unit);
            prop_assert!(offer.units.iter().all(|unit| class(unit) == class(&wanted[0])));
            let neighbours = runs(&chart, &free).iter().any(|run| {
                run.windows(wanted.len()).any(|window| window == offer.units)
            });
            prop_assert!(neighbours && offer.together);
            let mut world = hall(&plan, &rules);
            let names = world.names(offer.units.clone());
            prop_assert!(world.try_hold("ann", &names).is_ok());
        }
    }
}

/// A hall that counts how often it is asked.
struct Asked(Cell<u32>);

impl Availability for Asked {
    fn is_available(&self, _: UnitNo) -> bool {
        self.0.set(self.0.get() + 1);
        false
    }
}

#[test]
fn a_refusal_in_a_huge_hall_asks_little() {
    let one_row = rows_and_floor(&[400_000], 0);
    let asked = Asked(Cell::new(0));
    let wanted: Vec<UnitNo> = (200_000..200_004).map(UnitNo).collect();
    assert!(alternatives_near(&one_row, &asked, &wanted).is_empty());
    assert!(asked.0.get() < 300, "one row: {}", asked.0.get());

    let rows = chart(
        &"......................................................................\n".repeat(26),
    );
    let asked = Asked(Cell::new(0));
    assert!(alternatives_near(&rows, &asked, &[UnitNo(900)]).is_empty());
    assert!(asked.0.get() <= 25 * 70, "many rows: {}", asked.0.get());
}

/// The best places of an area when no seat is left, and of the first area that has enough.
#[test]
fn best_takes_places_where_there_are_no_seats() {
    let mut world = World::new(rows_and_floor(&[2], 3), policy());
    let Found::Units(units, true) = best(&mut world, 3, "", Together::Preferred) else {
        panic!("three places were free");
    };
    assert_eq!(world.names(units), "floor.1 floor.2 floor.3");
}

/// Whatever the order in which seats come free, neighbours are found when there are any.
#[test]
fn seats_that_come_free_one_by_one_are_neighbours_again() {
    let seats = ["A-1", "A-2", "A-3"];
    for order in [
        [0, 1, 2],
        [0, 2, 1],
        [1, 0, 2],
        [1, 2, 0],
        [2, 0, 1],
        [2, 1, 0],
    ] {
        for back in [
            [0, 1, 2],
            [0, 2, 1],
            [1, 0, 2],
            [1, 2, 0],
            [2, 0, 1],
            [2, 1, 0],
        ] {
            let mut world = World::new(rows_and_floor(&[3], 0), policy());
            let holds = order.map(|at: usize| (seats[at], world.hold("bob", seats[at])));
            for at in back {
                let (_, hold) = holds
                    .into_iter()
                    .find(|(seat, _)| *seat == seats[at])
                    .unwrap();
                world.apply(Command::Release { on: on(hold) }).unwrap();
            }
            let found = best(&mut world, 3, "", Together::Required);
            assert!(
                matches!(found, Found::Units(_, true)),
                "{order:?}, {back:?}"
            );
        }
    }
}
