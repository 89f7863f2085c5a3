//! Format `soldonce`: zones of rows of seats with positions, and areas. It can express all that a
//! chart holds: the output of `write` is read back to an equal chart.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::IgnoredAny;
use soldonce_core::{ChartBuilder, Invalid, Position, SeatSpec, Text};

use super::areas::{self, AreaEntry};
use super::place::{at, blame, parse, seat_property};
use super::strict::{Hundredths, Object};
use super::{ReadChart, ZONES_PER_CHART_MAX};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Plan<'a> {
    #[serde(rename = "format")]
    _format: IgnoredAny,
    #[serde(default, borrow)]
    name: Cow<'a, str>,
    focus: Option<Object<PointEntry>>,
    #[serde(default, borrow)]
    zones: Vec<Object<ZoneEntry<'a>>>,
    #[serde(default, borrow)]
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
    #[serde(borrow)]
    rows: Vec<Object<RowEntry<'a>>>,
}

/// Two rows of one name are two rows: seats on both sides of an aisle are no neighbours.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RowEntry<'a> {
    #[serde(borrow)]
    row: Cow<'a, str>,
    label: Option<String>,
    #[serde(borrow)]
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
        write!(
            f,
            "chart.zones[{}].rows[{}].seats[{}]",
            self.zone, self.row, self.seat
        )
    }
}

pub(super) fn read(json: &[u8]) -> Result<ReadChart, Invalid> {
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
    for (index, Object(zone)) in plan.zones.iter().enumerate() {
        builder
            .zone(&zone.zone, zone.name.as_deref())
            .map_err(|error| at(format_args!("chart.zones[{index}]"), error))?;
        for (row_index, Object(row)) in zone.rows.iter().enumerate() {
            let label = row.label.as_deref().unwrap_or(&row.row);
            builder.row(label).map_err(|error| {
                at(
                    format_args!("chart.zones[{index}].rows[{row_index}]"),
                    error,
                )
            })?;
            add_seats(
                &mut builder,
                row,
                Place {
                    zone: index,
                    row: row_index,
                    seat: 0,
                },
            )?;
        }
    }
    areas::add(&mut builder, &plan.areas)?;
    refuse_half_placed(&plan)?;
    let chart = builder.build().map_err(|error| blame(error, ids(&plan)))?;
    Ok(ReadChart {
        chart,
        notes: Vec::new(),
    })
}

fn add_seats(builder: &mut ChartBuilder, row: &RowEntry<'_>, first: Place) -> Result<(), Invalid> {
    for (index, Object(seat)) in row.seats.iter().enumerate() {
        let place = Place {
            seat: index,
            ..first
        };
        let position = match (seat.x, seat.y) {
            (Some(x), Some(y)) => Some(Position { x: x.0, y: y.0 }),
            (None, None) => None,
            (Some(_), None) | (None, Some(_)) => {
                let text = "`x` and `y` stand together or not at all".to_owned();
                return Err(at(place, Invalid::new("chart.seat", text)));
            }
        };
        let (id, label) = (&*seat.seat, seat.label.as_deref());
        let spec = SeatSpec {
            id,
            label,
            category: &seat.category,
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
    plan.zones
        .iter()
        .enumerate()
        .flat_map(|(zone, Object(entry))| {
            entry
                .rows
                .iter()
                .enumerate()
                .flat_map(move |(row, Object(entry))| {
                    let numbered = entry.seats.iter().enumerate();
                    numbered.map(move |(seat, Object(entry))| (Place { zone, row, seat }, entry))
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
