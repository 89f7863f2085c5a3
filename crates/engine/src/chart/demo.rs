//! The Playhouse: a theatre to try things in. Gently curved rows in three blocks with two aisles, a
//! circle behind them, and a standing floor before the stage. Whole hundredths throughout.

use soldonce_core::{AreaSpec, Chart, ChartBuilder, Frame, Invalid, Position, SeatSpec};

/// The middle of the hall, from its left edge, so that nothing stands at a negative place.
const MIDDLE: i32 = 2_000;
/// Between two seats.
const SEAT_PITCH: i32 = 100;
/// Between two rows.
const ROW_PITCH: i32 = 115;
/// From the last seat of a block to the first one of the next.
const AISLE: i32 = 230;
/// The rows are arcs of about this radius, their ends nearer to the stage.
const RADIUS: i32 = 4_500;

/// Without I and O, which theatres leave out: they read like 1 and 0.
const STALLS: [&str; 13] = [
    "A", "B", "C", "D", "E", "F", "G", "H", "J", "K", "L", "M", "N",
];
const CIRCLE: [&str; 5] = ["AA", "BB", "CC", "DD", "EE"];
/// So many rows of the stalls, from the stage, are Premium in their middle block.
const PREMIUM_ROWS: usize = 8;

/// Seats of one row: in the middle block, and in each side block.
#[derive(Clone, Copy)]
struct Widths {
    middle: i32,
    side: i32,
}

/// The demo hall: 422 seats and 60 standing places.
///
/// # Errors
/// [`Invalid`] only if core's bounds came to be smaller than this hall.
pub fn demo() -> Result<Chart, Invalid> {
    let mut builder = ChartBuilder::new("The Playhouse");
    builder.zone("stalls", Some("Stalls"))?;
    for ((index, row), side) in STALLS
        .iter()
        .enumerate()
        .zip((12..).map(|thirds| thirds / 3))
    {
        let premium = if index < PREMIUM_ROWS {
            "Premium"
        } else {
            "Standard"
        };
        let widths = Widths { middle: 10, side };
        add_row(
            &mut builder,
            row,
            depth(700, index),
            widths,
            [premium, "Standard"],
        )?;
    }
    builder.zone("circle", Some("Circle"))?;
    for ((index, row), side) in CIRCLE.iter().enumerate().zip([8, 8, 8, 9, 9]) {
        let widths = Widths { middle: 12, side };
        add_row(
            &mut builder,
            row,
            depth(2_500, index),
            widths,
            ["Balcony", "Balcony"],
        )?;
    }
    let at = Position {
        x: MIDDLE - 600,
        y: 180,
    };
    builder.area(&AreaSpec {
        id: "floor",
        label: Some("Standing floor"),
        category: "Standing",
        capacity: 60,
        frame: Some(Frame {
            at,
            width: 1_200,
            height: 340,
        }),
    })?;
    builder.build()
}

fn depth(first: i32, index: usize) -> i32 {
    first + ROW_PITCH * i32::try_from(index).unwrap_or(0)
}

/// Adds the three blocks of a row, the middle one first: it is the best. Each block is a row of its
/// own, since seats on both sides of an aisle are no neighbours. Seats count from the left.
fn add_row(
    builder: &mut ChartBuilder,
    row: &str,
    depth: i32,
    widths: Widths,
    categories: [&str; 2],
) -> Result<(), Invalid> {
    let Widths { middle, side } = widths;
    let [middle_category, side_category] = categories;
    let half = (middle - 1) * SEAT_PITCH / 2;
    let side_width = (side - 1) * SEAT_PITCH;
    let blocks = [
        (side, middle, -half, middle_category),
        (0, side, -half - AISLE - side_width, side_category),
        (side + middle, side, half + AISLE, side_category),
    ];
    for (seats_before, seats, left, category) in blocks {
        builder.row(row)?;
        for seat in 0..seats {
            let id = format!("{row}-{}", seats_before + seat + 1);
            let across = left + seat * SEAT_PITCH;
            let position = Some(on_arc(across, depth));
            builder.seat(&SeatSpec {
                id: &id,
                label: None,
                category,
                position,
            })?;
        }
    }
    Ok(())
}

/// A point of the arc whose middle lies `depth` from the stage: near its top a circle is a parabola.
fn on_arc(across: i32, depth: i32) -> Position {
    Position {
        x: MIDDLE + across,
        y: depth - across * across / (2 * RADIUS),
    }
}

#[cfg(test)]
mod tests {
    use soldonce_core::UnitNo;

    use super::super::{ReadChart, summary};
    use super::*;

    #[test]
    fn holds_what_it_promises() {
        let chart = demo().unwrap();
        let summary = summary(&ReadChart {
            chart,
            notes: Vec::new(),
        });
        let counts: Vec<_> = summary
            .categories
            .iter()
            .map(|category| (category.category.as_str(), category.seats, category.places))
            .collect();
        let expected = [
            ("Premium", 80, 0),
            ("Standard", 198, 0),
            ("Balcony", 144, 0),
            ("Standing", 0, 60),
        ];
        assert_eq!(counts, expected);
        assert_eq!((summary.seats, summary.units, summary.rows), (422, 482, 54));
    }

    #[test]
    fn no_two_seats_touch_and_none_stands_on_the_floor() {
        let chart = demo().unwrap();
        let frame = chart.areas()[0].frame.unwrap();
        let seats: Vec<Position> = (0..chart.seats())
            .filter_map(|unit| chart.position(UnitNo(unit)))
            .collect();
        assert_eq!(seats.len(), 422);
        for (index, one) in seats.iter().enumerate() {
            assert!(one.x >= 0 && one.y >= 0);
            let is_aside = (one.x - MIDDLE).abs() > frame.width / 2 + SEAT_PITCH / 2;
            assert!(
                is_aside || one.y > frame.at.y + frame.height + SEAT_PITCH / 2,
                "{one:?}"
            );
            for other in &seats[index + 1..] {
                let (x, y) = (one.x - other.x, one.y - other.y);
                assert!(
                    x * x + y * y >= SEAT_PITCH * SEAT_PITCH,
                    "{one:?} {other:?}"
                );
            }
        }
    }
}
