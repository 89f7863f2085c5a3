//! Format `soldonce`: zones of rows of seats with positions, and areas. It can express all that a
//! chart holds: the output of `write` is read back to an equal chart.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::IgnoredAny;
use soldonce_core::{Chart, ChartBuilder, Invalid, Position, SeatSpec, Text};

use super::ZONES_PER_CHART_MAX;
use super::areas::{self, AreaEntry};
use super::place::{at, blame, parse, seat_property};
use super::strict::{Hundredths, Object};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Plan<'a> {
    #[serde(rename = "format")]
    _format: IgnoredAny,
    #[serde(default, borrow)]
    name: Cow<'a, str>,
    focus: Option<Object<PointEntry>>,
    #[serde(default)]
    zones: Vec<Object<ZoneEntry<'a>>>,
    #[serde(default)]
    areas: Vec<Object<AreaEntry<'a>>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PointEntry {
    x: Hundredths,
    y: Hundredths,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ZoneEntry<'a> {
    #[serde(borrow)]
    zone: Cow<'a, str>,
    name: Option<String>,
    rows: Vec<Object<RowEntry<'a>>>,
}

/// Two rows of one name are two rows: seats on both sides of an aisle are no neighbours.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RowEntry<'a> {
    #[serde(borrow)]
    row: Cow<'a, str>,
    label: Option<String>,
    seats: Vec<Object<SeatEntry<'a>>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SeatEntry<'a> {
    #[serde(borrow)]
    seat: Cow<'a, str>,
    label: Option<String>,
    #[serde(borrow)]
    category: Cow<'a, str>,
    x: Option<Hundredths>,
    y: Option<Hundredths>,
}

#[derive(Clone, Copy)]
struct Place {
    zone: usize,
    row: usize,
    seat: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { zone, row, seat } = self;
        write!(f, "chart.zones[{zone}].rows[{row}].seats[{seat}]")
    }
}

pub(super) fn read(json: &[u8]) -> Result<Chart, Invalid> {
    let Object(plan) = parse::<Object<Plan<'_>>>("chart", json)?;
    Text::parse(&plan.name).map_err(|error| Invalid::new("chart.name", error.to_string()))?;
    if plan.zones.len() > ZONES_PER_CHART_MAX {
        let (zones, most) = (plan.zones.len(), ZONES_PER_CHART_MAX);
        let reason = format!("it has {zones} zones, a chart at most {most}");
        return Err(Invalid::new("chart.zones", reason));
    }
    let mut builder = ChartBuilder::new(&plan.name);
    if let Some(Object(point)) = &plan.focus {
        builder.focus(Position {
            x: point.x.0,
            y: point.y.0,
        });
    }
    for (zone, Object(entry)) in plan.zones.iter().enumerate() {
        builder
            .zone(&entry.zone, entry.name.as_deref())
            .map_err(|error| at(format_args!("chart.zones[{zone}]"), error))?;
        for (row, Object(entry)) in entry.rows.iter().enumerate() {
            let label = entry.label.as_deref().unwrap_or(&entry.row);
            let refusal = |error| at(format_args!("chart.zones[{zone}].rows[{row}]"), error);
            builder.row(label).map_err(refusal)?;
            let first = Place { zone, row, seat: 0 };
            add_seats(&mut builder, entry, first)?;
        }
    }
    areas::add(&mut builder, &plan.areas)?;
    refuse_half_placed(&plan)?;
    builder.build().map_err(|error| blame(error, ids(&plan)))
}

fn add_seats(builder: &mut ChartBuilder, row: &RowEntry<'_>, first: Place) -> Result<(), Invalid> {
    for (seat, Object(entry)) in row.seats.iter().enumerate() {
        let place = Place { seat, ..first };
        let position = match (entry.x, entry.y) {
            (Some(x), Some(y)) => Some(Position { x: x.0, y: y.0 }),
            (None, None) => None,
            (Some(_), None) | (None, Some(_)) => {
                let text = "`x` and `y` stand together or not at all".to_owned();
                return Err(at(place, Invalid::new("chart.seat", text)));
            }
        };
        let (id, label) = (&*entry.seat, entry.label.as_deref());
        let spec = SeatSpec {
            id,
            label,
            category: &entry.category,
            position,
        };
        builder.seat(&spec).map_err(|error| {
            let property = seat_property(&error, id, "seat");
            at(format_args!("{place}.{property}"), error)
        })?;
    }
    Ok(())
}

fn seats<'a>(plan: &'a Plan<'_>) -> impl Iterator<Item = (Place, &'a SeatEntry<'a>)> {
    let zones = plan.zones.iter().enumerate();
    zones.flat_map(|(zone, Object(entry))| {
        let rows = entry.rows.iter().enumerate();
        rows.flat_map(move |(row, Object(entry))| {
            let seats = entry.seats.iter().enumerate();
            seats.map(move |(seat, Object(entry))| (Place { zone, row, seat }, entry))
        })
    })
}

fn ids<'a>(plan: &'a Plan<'_>) -> impl Iterator<Item = (Place, &'a str)> {
    seats(plan).map(|(place, seat)| (place, &*seat.seat))
}

fn refuse_half_placed(plan: &Plan<'_>) -> Result<(), Invalid> {
    let first = |placed: bool| seats(plan).find(|(_, seat)| seat.x.is_some() == placed);
    if let (Some((with, _)), Some((without, _))) = (first(true), first(false)) {
        let reason = format!(
            "at {without}: it has no position, {with} has one: all seats have one or none has"
        );
        return Err(Invalid::new("chart.seat", reason));
    }
    Ok(())
}
