//! What a seat costs, counted instead of timed.

use std::sync::Arc;

use soldonce_core::{ChartBuilder, Position, SeatSpec, Seating, Unit};

#[test]
fn a_unit_is_small() {
    assert!(size_of::<Unit>() <= 48, "{}", size_of::<Unit>());
}

/// A million seats with positions, in rows of a hundred: chart and seating together.
#[test]
fn a_seat_costs_at_most_a_hundred_bytes() {
    let mut chart = ChartBuilder::new("hall");
    chart.zone("main", None).unwrap();
    for row in 0..10_000 {
        chart.row(&format!("R{row}")).unwrap();
        for number in 0..100 {
            let id = format!("R{row}-{number}");
            let position = Some(Position { x: number, y: row });
            chart
                .seat(&SeatSpec {
                    id: &id,
                    label: None,
                    category: "Seat",
                    position,
                })
                .unwrap();
        }
    }
    let chart = Arc::new(chart.build().unwrap());
    let seating = Seating::new(Arc::clone(&chart));
    let bytes = chart.heap_bytes() + seating.heap_bytes();
    assert!(
        bytes <= 100 * 1_000_000,
        "{bytes} bytes for a million seats"
    );
    assert!(
        bytes >= 48 * 1_000_000,
        "{bytes} bytes: something is not counted"
    );
}
