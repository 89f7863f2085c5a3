//! A chart as JSON in the native format, for shoppers' pages and for files. Writes seat by seat, so
//! a hall of a million seats needs no second copy.

use serde::{Serialize, Serializer};
use soldonce_core::{Area, CategoryNo, Chart, Position, Row, UnitName, UnitNo, Zone};

/// Returns the chart in the format `soldonce`, to be serialized.
pub fn write(chart: &Chart) -> ChartDocument<'_> {
    let (zones, areas) = (chart.zones().iter(), chart.areas().iter());
    ChartDocument {
        format: "soldonce",
        name: chart.name(),
        focus: chart.named_focus().map(PointDocument::from),
        zones: zones.map(|zone| ZoneDocument::new(chart, zone)).collect(),
        areas: areas.map(|area| AreaDocument::new(chart, area)).collect(),
    }
}

/// A chart in the native format. Seats and areas carry the `label` that people read.
#[derive(Debug, Serialize)]
pub struct ChartDocument<'a> {
    format: &'static str,
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    focus: Option<PointDocument>,
    zones: Vec<ZoneDocument<'a>>,
    areas: Vec<AreaDocument<'a>>,
}

#[derive(Debug, Serialize)]
struct PointDocument {
    x: Number,
    y: Number,
}

impl From<Position> for PointDocument {
    fn from(at: Position) -> Self {
        Self {
            x: Number(at.x),
            y: Number(at.y),
        }
    }
}

#[derive(Debug, Serialize)]
struct ZoneDocument<'a> {
    zone: &'a str,
    name: &'a str,
    rows: Vec<RowDocument<'a>>,
}

impl<'a> ZoneDocument<'a> {
    fn new(chart: &'a Chart, zone: &'a Zone) -> Self {
        let rows = chart.rows_of(zone).iter();
        let rows = rows.map(|row| RowDocument {
            row: &row.label,
            seats: Seats(chart, row),
        });
        Self {
            zone: zone.id.as_str(),
            name: &zone.label,
            rows: rows.collect(),
        }
    }
}

#[derive(Debug, Serialize)]
struct RowDocument<'a> {
    row: &'a str,
    seats: Seats<'a>,
}

#[derive(Debug)]
struct Seats<'a>(&'a Chart, &'a Row);

impl Serialize for Seats<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.1.units().map(|unit| SeatDocument::new(self.0, unit)))
    }
}

#[derive(Serialize)]
struct SeatDocument<'a> {
    seat: &'a str,
    label: &'a str,
    category: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    x: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    y: Option<Number>,
}

impl<'a> SeatDocument<'a> {
    fn new(chart: &'a Chart, unit: UnitNo) -> Self {
        let position = chart.position(unit);
        Self {
            seat: seat_id(chart, unit),
            label: chart.label(unit),
            category: category(chart, chart.category_of(unit)),
            x: position.map(|at| Number(at.x)),
            y: position.map(|at| Number(at.y)),
        }
    }
}

#[derive(Debug, Serialize)]
struct AreaDocument<'a> {
    area: &'a str,
    label: &'a str,
    capacity: u32,
    category: &'a str,
    #[serde(flatten)]
    frame: Option<FrameDocument>,
}

#[derive(Debug, Serialize)]
struct FrameDocument {
    x: Number,
    y: Number,
    width: Number,
    height: Number,
}

impl<'a> AreaDocument<'a> {
    fn new(chart: &'a Chart, area: &'a Area) -> Self {
        Self {
            area: area.id.as_str(),
            label: &area.label,
            capacity: area.capacity,
            category: category(chart, area.category),
            frame: area.frame.map(|frame| FrameDocument {
                x: Number(frame.at.x),
                y: Number(frame.at.y),
                width: Number(frame.width),
                height: Number(frame.height),
            }),
        }
    }
}

fn seat_id(chart: &Chart, unit: UnitNo) -> &str {
    match chart.unit_name(unit) {
        UnitName::Seat(id) => id,
        UnitName::Place { area, .. } => area.id.as_str(),
    }
}

fn category(chart: &Chart, number: CategoryNo) -> &str {
    let name = chart.categories().get(number.index());
    name.map_or("", String::as_str)
}

/// Hundredths as a JSON number: `7`, `-0.25`.
#[derive(Clone, Copy, Debug)]
struct Number(i32);

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        if self.0 % 100 == 0 {
            return to.serialize_i32(self.0 / 100);
        }
        #[expect(clippy::float_arithmetic, reason = "JSON has no other fractions")]
        let value = f64::from(self.0) / 100.0;
        to.serialize_f64(value)
    }
}
