//! `best` and the alternatives offered with a refusal.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::ops::Range;

use proptest::prelude::*;
use soldonce_core::{
    Adjacency, Availability, Chart, Command, Policy, Position, Rejection, Together, UnitNo, Wish,
    alternatives_near,
};

use crate::brute::{orphans, runs};
use crate::fixed::cases;
use crate::hall::{chart, hall, hall_of, placed, shown};
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
        // Next to the middle where the middle would leave a single seat.
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
        // A price class; not next to a single seat of another one if that can be helped.
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

/// Two wings, listed first, and a middle block: rows from the stage, seats from the left.
const WINGS: [(&str, i32, i32); 6] = [
    ("....", 0, 0),
    ("....", 0, 100),
    ("....", 1_600, 0),
    ("....", 1_600, 100),
    ("......", 700, 0),
    ("......", 700, 100),
];

fn winged(rows: &[(&'static str, i32, i32)], focus: Option<Position>) -> World {
    let plan: Vec<&str> = rows.iter().map(|(line, ..)| *line).collect();
    let rows = rows
        .iter()
        .map(|(line, x, y)| (*line, Some(Position { x: *x, y: *y })));
    hall_of(placed(rows, focus), &plan.join(" "), &policy())
}

/// The choices of shoppers who come one after the other, until there is nothing.
fn choices(world: &mut World, quantity: u32) -> Vec<String> {
    let next = || match best(world, quantity, "", Together::Required) {
        Found::Units(units, _) => Some(world.names(units)),
        Found::Nothing(_) => None,
    };
    std::iter::from_fn(next).collect()
}

#[test]
fn the_middle_comes_before_the_wings() {
    let mut world = winged(&WINGS, None);
    let all = choices(&mut world, 2);
    let middle = [
        "E-3 E-4", "F-3 F-4", "E-1 E-2", "E-5 E-6", "F-1 F-2", "F-5 F-6",
    ];
    assert_eq!(all[..6], middle);
    // Of a wing the end next to the middle.
    let wings = ["A-3 A-4", "B-3 B-4", "C-1 C-2", "D-1 D-2"];
    let (near, far) = all[6..].split_at(4);
    assert!(
        wings
            .iter()
            .all(|seats| near.contains(&(*seats).to_owned())),
        "{near:?}"
    );
    assert_eq!(far.len(), 4);
}

#[test]
fn a_chart_names_its_focal_point() {
    let over_the_last_seat = Position { x: 1_200, y: 100 };
    let mut world = winged(&WINGS, Some(over_the_last_seat));
    assert_eq!(choices(&mut world, 2)[0], "F-5 F-6");
    let behind_the_right_wing = Position { x: 2_000, y: 900 };
    let mut world = winged(&WINGS, Some(behind_the_right_wing));
    assert_eq!(choices(&mut world, 2)[0], "D-3 D-4");
}

#[test]
fn neighbours_far_away_come_before_single_seats_at_the_focal_point() {
    let mut world = winged(&[(".X.X.X.", 0, 0), ("X..X", 2_000, 900)], None);
    assert_eq!(choices(&mut world, 2), ["B-2 B-3"]);
}

/// An aisle through the middle makes no wings of both halves.
#[test]
fn an_aisle_in_the_middle_is_no_side() {
    let halves = [
        ("......", 0, 0),
        ("......", 800, 0),
        ("..............", 0, 900),
    ];
    let mut world = winged(&halves, None);
    assert_eq!(choices(&mut world, 2)[..2], ["A-5 A-6", "B-1 B-2"]);
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

type Line = (String, i32, i32);

/// As [`worth`], of seats with positions: at the side, then how far from the focal point.
fn worth_at(
    chart: &Chart,
    line: &Line,
    seats: (&[UnitNo], usize),
    quantity: usize,
) -> (u8, i32, u32) {
    let (run, first) = seats;
    let (rest, from_middle) = worth(chart, run, first, quantity);
    let focus = chart.focus().unwrap();
    let of_line = chart.row_of(run[0]).unwrap().1.first;
    let place = i32::try_from(run[first].0 - of_line.0).unwrap();
    let reach = i32::try_from(quantity).unwrap() - 1;
    let across = 2 * (line.1 + 100 * place) + 100 * reach - 2 * focus.x;
    let along = 2 * (line.2 - focus.y);
    (rest, across * across + along * along, from_middle)
}

proptest! {
    #![proptest_config(cases(400))]

    /// Of rows with positions none has a better place, written down once more without the ranks.
    #[test]
    fn no_place_is_nearer_to_the_focal_point(
        lines in prop::collection::vec(("[.X]{1,9}", 0..20, 0..8), 1..6),
        quantity in 1..4_usize,
    ) {
        let lines: Vec<Line> = lines.into_iter().map(|(line, x, y)| (line, 100 * x, 100 * y)).collect();
        let rows = lines.iter().map(|(line, x, y)| (line.as_str(), Some(Position { x: *x, y: *y })));
        let chart = placed(rows, None);
        let plan: Vec<&str> = lines.iter().map(|(line, ..)| line.as_str()).collect();
        let plan = plan.join(" ");
        let mut world = hall_of(chart.clone(), &plan, &policy());
        let all = runs(&chart, &free_of(&plan));
        let ends = lines.iter().map(|(line, x, _)| (*x, x + 100 * i32::try_from(line.len() - 1).unwrap()));
        let width = ends.clone().map(|(_, end)| end).max().unwrap() - ends.map(|(from, _)| from).min().unwrap();
        let focus = chart.focus().unwrap();
        let mut places = Vec::new();
        for (number, line) in (0..).zip(&lines) {
            let of_line = all.iter().filter(|run| chart.row_of(run[0]).unwrap().0.0 == number);
            let end = line.1 + 100 * i32::try_from(line.0.len() - 1).unwrap();
            let side = (focus.x - focus.x.clamp(line.1, end)).abs() > width / 8;
            let best = of_line
                .filter(|run| run.len() >= quantity)
                .flat_map(|run| (0..=run.len() - quantity).map(move |at| (run, at)))
                .map(|(run, at)| worth_at(&chart, line, (run, at), quantity))
                .min();
            places.extend(best.map(|(rest, away, _)| (rest == 2, side, away)));
        }
        let found = match best(&mut world, u32::try_from(quantity).unwrap(), "", Together::Required) {
            Found::Nothing(_) => None,
            Found::Units(units, _) => {
                let run = all.iter().find(|run| run.contains(&units[0])).unwrap();
                let at = run.iter().position(|seat| *seat == units[0]).unwrap();
                let number = chart.row_of(units[0]).unwrap().0.index();
                let line = &lines[number];
                let end = line.1 + 100 * i32::try_from(line.0.len() - 1).unwrap();
                let side = (focus.x - focus.x.clamp(line.1, end)).abs() > width / 8;
                let (rest, away, _) = worth_at(&chart, line, (run, at), quantity);
                Some((rest == 2, side, away))
            }
        };
        prop_assert_eq!(found, places.into_iter().min());
    }

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
        // No row that is nearer, or as near, could have offered some: up to three rows do.
        let class = |unit: &UnitNo| chart.category_of(*unit) == chart.category_of(wanted[0]);
        let of_class: BTreeSet<UnitNo> = free.iter().copied().filter(class).collect();
        let can_offer = |row: u32| {
            let of_row = |unit: &UnitNo| chart.row_of(*unit).unwrap().0.0 == row;
            runs(&chart, &of_class).iter().filter(|run| of_row(&run[0])).any(|run| {
                run.windows(wanted.len()).any(|window| {
                    orphans(&chart, &free, window).is_empty()
                })
            })
        };
        let rows = u32::try_from(chart.rows().len()).unwrap();
        let mut able: Vec<u32> = (0..rows).filter(|row| can_offer(*row)).collect();
        able.sort_by_key(|row| (row.abs_diff(home), *row));
        able.truncate(3);
        let offered = refusal.alternatives.iter();
        let offered: Vec<u32> = offered.map(|offer| chart.row_of(offer.units[0]).unwrap().0.0).collect();
        prop_assert_eq!(offered, able);
    }
}

/// In a long row the offer is as near as can be, and what is far away is not looked at.
#[test]
fn an_offer_of_a_long_row_is_near() {
    let row = rows_and_floor(&[1_000], 0);
    let offer = |free: Range<u32>, wanted: Range<u32>| {
        let wanted: Vec<UnitNo> = wanted.map(UnitNo).collect();
        let offers = alternatives_near(&row, &Free(free), &wanted);
        offers
            .first()
            .map(|offer| (offer.units[0].0, offer.units.len()))
    };
    assert_eq!(offer(500..600, 480..482), Some((500, 2)));
    assert_eq!(offer(400..480, 480..482), Some((478, 2)));
    // 128 seats to each side of the middle.
    assert_eq!(offer(609..1_000, 480..482), None);
    assert_eq!(offer(607..1_000, 480..482), Some((607, 2)));
    assert_eq!(offer(0..355, 480..482), Some((353, 2)));
    assert_eq!(offer(0..353, 480..482), None);
    // The last seat that is searched is no orphan where more are free behind it.
    assert_eq!(offer(606..610, 480..482), Some((606, 2)));
    assert_eq!(offer(352..356, 480..482), Some((354, 2)));
    let most = soldonce_core::limits::UNITS_PER_HOLD_MAX;
    assert_eq!(
        offer(500..600, 440..440 + most).map(|(_, units)| units),
        usize::try_from(most).ok()
    );
    assert_eq!(offer(500..600, 440..441 + most), None);
}

/// Rows of another price class are passed over: they are not among those that are searched.
#[test]
fn an_offer_is_found_behind_rows_of_another_class() {
    let rows = chart(&format!("..\n{}..", "aa\n".repeat(24)));
    let last = rows.seats() - 2;
    let offers = alternatives_near(&rows, &Free(last..last + 2), &[UnitNo(0), UnitNo(1)]);
    let first = offers.first().map(|offer| offer.units[0].0);
    assert_eq!(first, Some(last));
}

/// A hall of which these seats alone are free.
struct Free(Range<u32>);

impl Availability for Free {
    fn is_available(&self, unit: UnitNo) -> bool {
        self.0.contains(&unit.0)
    }
}

/// A hall that counts how often it is asked.
struct CountingHall(Cell<u32>);

impl Availability for CountingHall {
    fn is_available(&self, _: UnitNo) -> bool {
        self.0.set(self.0.get() + 1);
        false
    }
}

#[test]
fn a_refusal_in_a_huge_hall_asks_little() {
    let one_row = rows_and_floor(&[400_000], 0);
    let asked = CountingHall(Cell::new(0));
    let wanted: Vec<UnitNo> = (200_000..200_004).map(UnitNo).collect();
    assert!(alternatives_near(&one_row, &asked, &wanted).is_empty());
    assert!(asked.0.get() < 300, "one row: {}", asked.0.get());

    let rows = chart(
        &"......................................................................\n".repeat(26),
    );
    let asked = CountingHall(Cell::new(0));
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

/// Seats come free in every order, and neighbours are found when there are any.
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
