//! Format `pretix`: the open seating-plan schema of pretix. The unit is the `seat_guid`. Properties
//! that are not needed are ignored, here only: the schema is not ours and grows.

mod ids;
mod scale;

use std::collections::BTreeSet;
use std::fmt;

use serde::Deserialize;
use serde::de::IgnoredAny;
use soldonce_core::{ChartBuilder, Invalid, SeatSpec, Text};

use super::place::{at, blame, parse, seat_property};
use super::strict::{Hundredths, Object};
use super::{ReadChart, ZONES_PER_CHART_MAX};
use ids::SeatId;
use scale::Scale;

/// Most notes about single seats; the rest is counted.
const SEAT_NOTES_MAX: usize = 20;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PlanDocument {
    #[serde(rename = "format")]
    _format: IgnoredAny,
    plan: Object<Plan>,
}

#[derive(Deserialize)]
struct Plan {
    #[serde(default)]
    name: String,
    zones: Vec<Object<Zone>>,
    #[serde(default)]
    categories: Vec<Object<Category>>,
}

#[derive(Deserialize)]
struct Category {
    name: String,
}

#[derive(Deserialize)]
struct Zone {
    name: Option<String>,
    #[serde(rename = "zone_id")]
    id: Option<String>,
    position: Option<Object<Offset>>,
    rows: Vec<Object<Row>>,
    /// Shapes and texts. They have no capacity and sell nothing.
    areas: Option<Vec<IgnoredAny>>,
}

#[derive(Deserialize)]
struct Row {
    #[serde(rename = "row_number")]
    number: String,
    position: Option<Object<Offset>>,
    seats: Vec<Object<Seat>>,
}

#[derive(Deserialize)]
struct Seat {
    #[serde(rename = "seat_guid")]
    guid: String,
    #[serde(rename = "seat_number")]
    number: String,
    position: Object<Offset>,
    category: String,
}

/// An offset: a zone's from the plan's corner, a row's from its zone, a seat's from its row.
#[derive(Clone, Copy, Default, Deserialize)]
struct Offset {
    x: Hundredths,
    y: Hundredths,
}

/// A seat with its zone and row, and their places in the plan.
struct Spot<'a> {
    root: &'static str,
    zone: (usize, &'a Zone),
    row: (usize, &'a Row),
    seat: (usize, &'a Seat),
}

impl fmt::Display for Spot<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (zone, row, seat) = (self.zone.0, self.row.0, self.seat.0);
        write!(f, "{}.zones[{zone}].rows[{row}].seats[{seat}]", self.root)
    }
}

pub(super) fn read(json: &[u8]) -> Result<ReadChart, Invalid> {
    let Object(wrapped) = parse::<Object<PlanDocument>>("chart", json)?;
    build("chart.plan", &wrapped.plan.0)
}

/// Reads a file exported by pretix, which is a plan alone. Places in errors begin with `plan`.
///
/// # Errors
/// [`Invalid`] with the place in the JSON.
pub fn read_pretix_plan(json: &[u8]) -> Result<ReadChart, Invalid> {
    let Object(plan) = parse::<Object<Plan>>("plan", json)?;
    build("plan", &plan)
}

fn build(root: &'static str, plan: &Plan) -> Result<ReadChart, Invalid> {
    Text::parse(&plan.name).map_err(|error| {
        let error = Invalid::new("chart.name", error.to_string());
        at(format_args!("{root}.name"), error)
    })?;
    if plan.zones.len() > ZONES_PER_CHART_MAX {
        let (zones, most) = (plan.zones.len(), ZONES_PER_CHART_MAX);
        let reason = format!("at {root}.zones: it has {zones} zones, a chart at most {most}");
        return Err(Invalid::new("chart.zones", reason));
    }
    let scale = Scale::of(plan);
    let mut builder = ChartBuilder::new(&plan.name);
    let mut notes = Vec::new();
    let mut changed = Vec::new();
    let mut taken = BTreeSet::new();
    for (index, Object(zone)) in plan.zones.iter().enumerate() {
        let id = ids::zone_id(zone, index, &mut taken, &mut notes);
        let label = zone.name.as_deref().filter(|name| !name.is_empty());
        builder
            .zone(&id, label)
            .map_err(|error| at(format_args!("{root}.zones[{index}].name"), error))?;
        for (row_index, Object(row)) in zone.rows.iter().enumerate() {
            let spots = spots_of_row(root, (index, zone), (row_index, row));
            add_row(&mut builder, scale, spots, &mut changed)?;
        }
    }
    let seats = spots(root, plan).map(|spot| (ids::named(&spot), SeatId::of(&spot).id));
    let chart = builder.build().map_err(|error| blame(error, seats))?;
    notes.extend(seat_notes(changed));
    notes.extend(plan_notes(plan));
    Ok(ReadChart { chart, notes })
}

fn add_row<'a>(
    builder: &mut ChartBuilder,
    scale: Scale,
    spots: impl Iterator<Item = Spot<'a>>,
    changed: &mut Vec<String>,
) -> Result<(), Invalid> {
    let mut spots = spots.peekable();
    if let Some(first) = spots.peek() {
        let row = first.row.1;
        builder.row(&row.number).map_err(|error| {
            let (root, zone, row) = (first.root, first.zone.0, first.row.0);
            at(
                format_args!("{root}.zones[{zone}].rows[{row}].row_number"),
                error,
            )
        })?;
    }
    for spot in spots {
        let seat = SeatId::of(&spot);
        let position = Some(scale.position(&spot).map_err(|error| at(&spot, error))?);
        let (id, category) = (seat.id.as_ref(), &*spot.seat.1.category);
        let spec = SeatSpec {
            id,
            label: Some(seat.label),
            category,
            position,
        };
        builder.seat(&spec).map_err(|error| {
            let property = seat_property(&error, id, "seat_guid");
            let property = if property == "label" {
                "seat_number"
            } else {
                property
            };
            at(format_args!("{spot}.{property}"), error)
        })?;
        if seat.changed {
            let guid = quoted(&spot.seat.1.guid);
            changed.push(format!("seat_guid `{guid}` became `{id}`"));
        }
    }
    Ok(())
}

fn spots<'a>(root: &'static str, plan: &'a Plan) -> impl Iterator<Item = Spot<'a>> {
    let zones = plan.zones.iter().enumerate();
    zones.flat_map(move |(index, Object(zone))| {
        let rows = zone.rows.iter().enumerate();
        rows.flat_map(move |(row, Object(entry))| spots_of_row(root, (index, zone), (row, entry)))
    })
}

fn spots_of_row<'a>(
    root: &'static str,
    zone: (usize, &'a Zone),
    row: (usize, &'a Row),
) -> impl Iterator<Item = Spot<'a>> {
    let seats = row.1.seats.iter().enumerate();
    seats.map(move |(seat, Object(entry))| Spot {
        root,
        zone,
        row,
        seat: (seat, entry),
    })
}

/// Quotes a text of the caller: cut to 80 characters and printable.
fn quoted(text: &str) -> String {
    text.chars().take(80).flat_map(char::escape_debug).collect()
}

fn seat_notes(mut changed: Vec<String>) -> Vec<String> {
    let more = changed.len().saturating_sub(SEAT_NOTES_MAX);
    changed.truncate(SEAT_NOTES_MAX);
    if more > 0 {
        changed.push(format!("{more} more seat_guids became legal ids"));
    }
    changed
}

fn plan_notes(plan: &Plan) -> Vec<String> {
    let mut notes = Vec::new();
    let shapes: usize = plan
        .zones
        .iter()
        .map(|zone| zone.0.areas.as_ref().map_or(0, Vec::len))
        .sum();
    if shapes > 0 {
        notes.push(format!(
            "{shapes} areas are decoration without a capacity and were left out"
        ));
    }
    let listed: BTreeSet<&str> = plan
        .categories
        .iter()
        .map(|category| category.0.name.as_str())
        .collect();
    let used: BTreeSet<&str> = spots("plan", plan)
        .map(|spot| spot.seat.1.category.as_str())
        .collect();
    let unlisted = used.difference(&listed).filter(|_| !listed.is_empty());
    notes.extend(unlisted.map(|name| {
        let name = quoted(name);
        format!("category `{name}` is used by seats and not listed in `categories`")
    }));
    let unused = listed.difference(&used).take(SEAT_NOTES_MAX);
    notes.extend(unused.map(|name| {
        let name = quoted(name);
        format!("category `{name}` is listed in `categories` and used by no seat")
    }));
    notes
}

#[cfg(test)]
mod tests;
