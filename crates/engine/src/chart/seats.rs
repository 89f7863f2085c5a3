//! Format `seats`: a list of seats and a list of areas, for halls without a plan and for all else
//! that is sold once. The part of a seat's id before the last `-` is its row.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

use serde::Deserialize;
use serde::de::IgnoredAny;
use soldonce_core::{Chart, ChartBuilder, Invalid, SeatSpec};

use super::ONLY_ZONE;
use super::areas::{self, AreaEntry};
use super::place::{at, blame, parse, seat_property};
use super::strict::Object;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Lists<'a> {
    #[serde(rename = "format")]
    _format: IgnoredAny,
    #[serde(default, borrow)]
    seats: Vec<Object<SeatEntry<'a>>>,
    #[serde(default)]
    areas: Vec<Object<AreaEntry<'a>>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SeatEntry<'a> {
    #[serde(borrow)]
    seat: Cow<'a, str>,
    #[serde(borrow)]
    category: Cow<'a, str>,
}

/// The seat of this index in the list.
struct Place(usize);

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "chart.seats[{}]", self.0)
    }
}

pub(super) fn read(json: &[u8]) -> Result<Chart, Invalid> {
    let Object(lists) = parse::<Object<Lists<'_>>>("chart", json)?;
    let mut builder = ChartBuilder::new("");
    if !lists.seats.is_empty() {
        builder.zone(ONLY_ZONE, None)?;
    }
    for (row, seats) in rows(&lists.seats) {
        let first = seats.first().map_or(0, |(index, _)| *index);
        builder.row(row).map_err(|error| at(Place(first), error))?;
        for (index, entry) in seats {
            add(&mut builder, index, entry)?;
        }
    }
    areas::add(&mut builder, &lists.areas)?;
    let seats = lists.seats.iter().enumerate();
    let ids = seats.map(|(index, Object(seat))| (Place(index), &seat.seat));
    builder.build().map_err(|error| blame(error, ids))
}

fn add(builder: &mut ChartBuilder, index: usize, seat: &SeatEntry<'_>) -> Result<(), Invalid> {
    let (id, category) = (&*seat.seat, &*seat.category);
    let spec = SeatSpec {
        id,
        label: None,
        category,
        position: None,
    };
    builder.seat(&spec).map_err(|error| {
        let property = seat_property(&error, id, "seat");
        at(format_args!("{}.{property}", Place(index)), error)
    })
}

type RowOfSeats<'a, 'b> = (&'b str, Vec<(usize, &'b SeatEntry<'a>)>);

/// Groups seats into rows, ordered by their first seats, each with its seats in the listed order.
fn rows<'a, 'b>(seats: &'b [Object<SeatEntry<'a>>]) -> Vec<RowOfSeats<'a, 'b>> {
    let mut rows: Vec<RowOfSeats<'a, 'b>> = Vec::new();
    let mut known: HashMap<&str, usize> = HashMap::new();
    for (index, Object(seat)) in seats.iter().enumerate() {
        let row = seat.seat.rsplit_once('-').map_or("", |(row, _)| row);
        let at = *known.entry(row).or_insert(rows.len());
        match rows.get_mut(at) {
            Some((_, seats)) => seats.push((index, seat)),
            None => rows.push((row, vec![(index, seat)])),
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(lists: &str) -> Result<Chart, Invalid> {
        let json = format!(r#"{{"format":"seats",{lists}}}"#);
        super::super::read(json.as_bytes()).map(|read| read.chart)
    }

    fn seat(id: &str) -> String {
        format!(r#"{{"seat":"{id}","category":"Standard"}}"#)
    }

    fn seats(ids: &[&str]) -> String {
        let seats: Vec<String> = ids.iter().map(|id| seat(id)).collect();
        format!(r#""seats":[{}]"#, seats.join(","))
    }

    #[test]
    fn groups_rows_in_the_order_they_appear() {
        let chart = read(&seats(&["B-2", "A-x-1", "B-1", "gold", "A-x-2", "B-10"])).unwrap();
        let rows: Vec<_> = chart
            .rows()
            .iter()
            .map(|row| {
                let names = row.units().map(|unit| chart.unit_name(unit).to_string());
                (row.label.as_str(), names.collect::<Vec<_>>().join(" "))
            })
            .collect();
        let expected = [("B", "B-2 B-1 B-10"), ("A-x", "A-x-1 A-x-2"), ("", "gold")];
        assert_eq!(
            rows,
            expected.map(|(label, seats)| (label, seats.to_owned()))
        );
    }

    #[test]
    fn either_list_may_be_missing_but_not_both() {
        let area = r#""areas":[{"area":"floor","capacity":500,"category":"Standing"}]"#;
        let chart = read(area).unwrap();
        assert_eq!(
            (chart.seats(), chart.units(), chart.zones().len()),
            (0, 500, 0)
        );
        assert_eq!(read(&seats(&["A-1"])).unwrap().units(), 1);
        assert_eq!(
            read(&format!("{},{area}", seats(&["A-1"])))
                .unwrap()
                .units(),
            501
        );
        assert!(
            read(r#""seats":[]"#)
                .unwrap_err()
                .reason
                .contains("no seat and no area")
        );
    }

    #[track_caller]
    fn refused(lists: &str, place: &str, value: &str) {
        let error = read(lists).unwrap_err().reason;
        assert!(error.starts_with(&format!("at {place}:")), "{error}");
        assert!(error.contains(value), "{error}");
    }

    #[test]
    fn refusals_name_the_place() {
        refused(
            &seats(&["A-1", "A 2"]),
            "chart.seats[1].seat",
            "`A 2` is not allowed",
        );
        let twice = seats(&["A-1", "B-1", "A-2", "A-1"]);
        refused(
            &twice,
            "chart.seats[0] and at chart.seats[3]",
            "two seats are named `A-1`",
        );
        let category = r#""seats":[{"seat":"A-1","category":""}]"#;
        refused(category, "chart.seats[0].category", "``");
        let floor = r#""areas":[{"area":"floor","capacity":9,"category":"C"}]"#;
        let place = format!("{},{floor}", seats(&["a", "floor.7"]));
        refused(&place, "chart.seats[1]", "place of area `floor`");
        assert!(read(&format!("{},{floor}", seats(&["floor.10", "floor.07"]))).is_ok());
        let frame = r#""areas":[{"area":"f","capacity":9,"category":"C","x":1}]"#;
        refused(frame, "chart.areas[0]", "stand together");
        let twice = floor.replace('[', r#"[{"area":"floor","capacity":1,"category":"C"},"#);
        refused(&twice, "chart.areas[1]", "two areas are named `floor`");
    }
}
