//! Format `grid`: rows A..Z, AA.. of equally many seats `A-1`, one apart.

use std::borrow::Cow;
use std::fmt::Write;

use serde::Deserialize;
use serde::de::IgnoredAny;
use soldonce_core::limits::UNITS_PER_CHART_MAX;
use soldonce_core::{Chart, ChartBuilder, Invalid, Position, SeatSpec};

use super::ONLY_ZONE;
use super::place::{at, parse};
use super::strict::{Count, Object};

/// The distance between rows and between seats, in hundredths of a chart unit.
const PITCH: usize = 100;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Grid<'a> {
    #[serde(rename = "format")]
    _format: IgnoredAny,
    rows: Count,
    seats_per_row: Count,
    #[serde(borrow)]
    category: Cow<'a, str>,
}

pub(super) fn read(json: &[u8]) -> Result<Chart, Invalid> {
    let Object(grid) = parse::<Object<Grid<'_>>>("chart", json)?;
    let (rows, seats_per_row) = (grid.rows.0, grid.seats_per_row.0);
    let seats = rows.checked_mul(seats_per_row);
    if seats.is_none_or(|seats| seats > UNITS_PER_CHART_MAX) {
        let reason = format!(
            "{rows} rows of {seats_per_row} seats: a chart has at most {UNITS_PER_CHART_MAX} seats"
        );
        return Err(Invalid::new("chart", reason));
    }
    let mut builder = ChartBuilder::new("");
    builder.zone(ONLY_ZONE, None)?;
    let mut id = String::new();
    for (row, y) in (0..rows).zip((0..).step_by(PITCH)) {
        id.clear();
        push_letters(&mut id, row);
        builder.row(&id)?;
        id.push('-');
        let stem = id.len();
        for (seat, x) in (1..=seats_per_row).zip((0..).step_by(PITCH)) {
            id.truncate(stem);
            // Writing to a `String` never fails.
            write!(id, "{seat}").unwrap_or_default();
            let position = Some(Position { x, y });
            let seat = SeatSpec {
                id: &id,
                label: None,
                category: &grid.category,
                position,
            };
            builder
                .seat(&seat)
                .map_err(|error| at("chart.category", error))?;
        }
    }
    builder.build()
}

/// Appends the letters of a number from 0: A, B, .. Z, AA, AB, ..
fn push_letters(text: &mut String, number: u32) {
    if let Some(before) = (number / 26).checked_sub(1) {
        push_letters(text, before);
    }
    let letter = u8::try_from(number % 26).unwrap_or(0);
    text.push(char::from(b'A' + letter));
}

#[cfg(test)]
mod tests {
    use soldonce_core::UnitNo;

    use super::*;

    fn grid(rows: u64, seats_per_row: u64) -> Result<Chart, Invalid> {
        let json = format!(
            r#"{{"format":"grid","rows":{rows},"seats_per_row":{seats_per_row},"category":"Std"}}"#
        );
        super::read(json.as_bytes())
    }

    #[test]
    fn names_rows_like_a_spreadsheet() {
        let letters = |number| {
            let mut text = String::new();
            push_letters(&mut text, number);
            text
        };
        for (number, text) in [(0, "A"), (25, "Z"), (26, "AA"), (701, "ZZ"), (702, "AAA")] {
            assert_eq!(letters(number), text);
        }
    }

    #[test]
    fn seats_stand_one_apart() {
        let chart = grid(10, 20).unwrap();
        assert_eq!(
            (chart.seats(), chart.rows().len(), chart.zones().len()),
            (200, 10, 1)
        );
        let seat = chart.find_seat("C-5").unwrap();
        assert_eq!(chart.position(seat), Some(Position { x: 400, y: 200 }));
        assert_eq!(chart.row_of(seat).unwrap().1.label, "C");
        assert_eq!(
            (chart.label(seat), chart.find_seat("A-1")),
            ("5", Some(UnitNo(0)))
        );
    }

    #[test]
    fn a_million_seats_fit_and_five_million_do_not() {
        let chart = grid(1_000, 1_000).unwrap();
        assert_eq!(chart.find_seat("ALL-1000"), Some(UnitNo(999_999)));
        let error = grid(2_000, 2_500).unwrap_err().reason;
        assert!(error.contains("2000 rows of 2500 seats"), "{error}");
        assert!(grid(4_000_000, 4_000_000).is_err());
        let error = grid(0, 5).unwrap_err().reason;
        assert!(error.starts_with("at chart.rows (line"), "{error}");
        assert!(
            error.contains("`0`, expected a whole number from 1 to 4000000"),
            "{error}"
        );
    }

    #[test]
    fn refuses_what_it_does_not_know() {
        let json = br#"{"format":"grid","rows":1,"seats_per_row":1,"category":"S","zone":"x"}"#;
        let error = super::super::read(json).unwrap_err().reason;
        assert!(error.starts_with("at chart.zone "), "{error}");
        let json = br#"{"format":"grid","rows":1,"seats_per_row":1,"category":""}"#;
        let error = super::super::read(json).unwrap_err().reason;
        assert!(error.starts_with("at chart.category:"), "{error}");
    }
}
