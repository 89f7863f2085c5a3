//! Halls as text: a line for each row from the best to the worst, a character for each seat.
//! `.` is free, `X` sold, `h` held, `e` held by a hold that is over but not written down as such.
//! A small letter of `a` to `d` is a free seat of another price class.

use soldonce_core::{Adjacency, Chart, ChartBuilder, Command, Policy, Position, SeatSpec, UnitNo};

use crate::world::{World, holder};

/// The hall of a text. Seats are `A-1`, `A-2`, ..; those without a letter are of class `main`.
pub(crate) fn hall(plan: &str, rules: &Policy) -> World {
    hall_of(chart(plan), plan, rules)
}

/// The same of a chart that has these seats.
pub(crate) fn hall_of(chart: Chart, plan: &str, rules: &Policy) -> World {
    let roomy = Policy {
        units_per_holder_max: 10_000,
        ..rules.clone()
    };
    let lawless = Policy {
        adjacency: Adjacency::None,
        ..roomy.clone()
    };
    let mut world = World::new(chart, lawless);
    let seats = plan.chars().filter(|what| is_seat(*what));
    let seats: Vec<(UnitNo, char)> = (0..).map(UnitNo).zip(seats).collect();
    let event = world.event;
    for (seat, what) in &seats {
        let name = world.names([*seat]);
        if *what == 'e' {
            world.hold("late", &name);
        } else if *what == 'X' {
            let (selection, booking) = (world.select(&name), world.mint_booking());
            let holder = holder("owner");
            let sell = Command::Sell {
                event,
                selection,
                holder,
                booking,
                reference: None,
            };
            world.apply(sell).unwrap();
        }
    }
    world.wait(rules.hold_ttl.ms());
    for (seat, _) in seats.iter().filter(|(_, what)| *what == 'h') {
        let name = world.names([*seat]);
        world.hold("other", &name);
    }
    world.set(&roomy);
    world
}

fn is_seat(what: char) -> bool {
    !what.is_whitespace()
}

pub(crate) fn chart(plan: &str) -> Chart {
    let rows = plan.split_whitespace().map(|line| (line, None));
    placed(rows, None)
}

/// Rows whose seats are one unit apart, each from the position of its first one.
pub(crate) fn placed<'a>(
    rows: impl Iterator<Item = (&'a str, Option<Position>)>,
    focus: Option<Position>,
) -> Chart {
    let mut chart = ChartBuilder::new("hall");
    if let Some(focus) = focus {
        chart.focus(focus);
    }
    chart.zone("main", None).unwrap();
    for (row, (line, start)) in ('A'..='Z').zip(rows) {
        chart.row(&row.to_string()).unwrap();
        for (number, what) in (1..).zip(line.chars()) {
            let position = start.map(|Position { x, y }| Position {
                x: x + 100 * (number - 1),
                y,
            });
            let id = format!("{row}-{number}");
            let category = match what {
                'a' => "a",
                'b' => "b",
                'c' => "c",
                'd' => "d",
                _ => "main",
            };
            let seat = SeatSpec {
                id: &id,
                label: None,
                category,
                position,
            };
            chart.seat(&seat).unwrap();
        }
    }
    chart.build().unwrap()
}

/// The text of a hall with some seats shown as taken.
pub(crate) fn shown(plan: &str, taken: &[UnitNo], mark: char) -> String {
    let mut seat = 0;
    let show = |what: char| {
        if !is_seat(what) {
            return ' ';
        }
        let number = UnitNo(seat);
        seat += 1;
        if taken.contains(&number) { mark } else { what }
    };
    let all: String = plan.trim().chars().map(show).collect();
    all.split_whitespace().collect::<Vec<_>>().join(" ")
}
