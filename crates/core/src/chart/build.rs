//! Builds a chart piece by piece, and refuses one in which two units would share a name.

use std::collections::{BTreeMap, BTreeSet};

use super::lookup::{AreaIndex, RowIndex};
use super::{Area, CategoryNo, Chart, Frame, Position, Row, RowNo, SeatIndex, Zone, short_label};
use crate::id::check;
use crate::limits::{AREAS_PER_CHART_MAX, CATEGORIES_PER_CHART_MAX, UNITS_PER_CHART_MAX};
use crate::number::count;
use crate::{Id, Invalid, UnitNo};

/// A seat to be added to the current row.
#[derive(Clone, Debug)]
pub struct SeatSpec<'a> {
    pub id: &'a str,
    /// Its label, if not the part of the id after the last `-`.
    pub label: Option<&'a str>,
    pub category: &'a str,
    /// Where it is drawn. All seats have a position, or none.
    pub position: Option<Position>,
}

/// An area to be added.
#[derive(Clone, Debug)]
pub struct AreaSpec<'a> {
    pub id: &'a str,
    pub label: Option<&'a str>,
    pub category: &'a str,
    pub capacity: u32,
    pub frame: Option<Frame>,
}

/// Builds a [`Chart`]: zones, in them rows, in them seats; then areas.
#[derive(Debug, Default)]
pub struct ChartBuilder {
    name: String,
    zones: Vec<Zone>,
    zone_ids: BTreeSet<Id>,
    rows: Vec<Row>,
    areas: Vec<Area>,
    area_ids: BTreeSet<Id>,
    categories: Vec<String>,
    category_numbers: BTreeMap<String, CategoryNo>,
    seat_categories: Vec<CategoryNo>,
    positions: Vec<Position>,
    labels: BTreeMap<UnitNo, Box<str>>,
    focus: Option<Position>,
    ids: Vec<u8>,
    id_ends: Vec<usize>,
    places: u32,
}

impl ChartBuilder {
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            ..Self::default()
        }
    }

    /// Begins a zone.
    ///
    /// # Errors
    /// [`Invalid`] for an illegal or repeated id.
    pub fn zone(&mut self, id: &str, label: Option<&str>) -> Result<(), Invalid> {
        let id = Id::parse(id).map_err(|e| Invalid::new("chart.zone", e.to_string()))?;
        if !self.zone_ids.insert(id.clone()) {
            let text = format!("two zones are named `{id}`");
            return Err(Invalid::new("chart.zone", text));
        }
        let first_row = RowNo(count(self.rows.len()));
        let label = label_text("chart.zone", label.unwrap_or(id.as_str()))?;
        self.zones.push(Zone {
            id,
            label,
            first_row,
            rows: 0,
        });
        Ok(())
    }

    /// Begins a row in the current zone.
    ///
    /// # Errors
    /// [`Invalid`] for a label that is too long, or before the first zone.
    pub fn row(&mut self, label: &str) -> Result<(), Invalid> {
        let label = label_text("chart.row", label)?;
        let Some(zone) = self.zones.last_mut() else {
            let text = format!("row `{label}` is in no zone");
            return Err(Invalid::new("chart.row", text));
        };
        zone.rows = zone.rows.saturating_add(1);
        self.rows.push(Row {
            label,
            first: UnitNo(self.seats()),
            seats: 0,
        });
        Ok(())
    }

    /// Adds a seat to the current row.
    ///
    /// # Errors
    /// [`Invalid`] for an illegal id, too many units or categories, or before the first row.
    pub fn seat(&mut self, seat: &SeatSpec<'_>) -> Result<(), Invalid> {
        let number = UnitNo(self.seats());
        if number.0 >= UNITS_PER_CHART_MAX {
            return Err(too_many_units());
        }
        check(seat.id).map_err(|e| Invalid::new("chart.seat", e.to_string()))?;
        let category = self.category(seat.category)?;
        // A zone that was just begun has no row yet; the last row is another zone's.
        let in_row = self.zones.last().is_some_and(|zone| zone.rows > 0);
        let Some(row) = self.rows.last_mut().filter(|_| in_row) else {
            let text = format!("seat `{}` is in no row", seat.id);
            return Err(Invalid::new("chart.seat", text));
        };
        row.seats = row.seats.saturating_add(1);
        self.seat_categories.push(category);
        self.positions.extend(seat.position);
        if let Some(label) = seat.label.filter(|label| *label != short_label(seat.id)) {
            self.labels
                .insert(number, label_text("chart.seat", label)?.into());
        }
        self.ids.extend_from_slice(seat.id.as_bytes());
        self.id_ends.push(self.ids.len());
        Ok(())
    }

    /// Adds an area.
    ///
    /// # Errors
    /// [`Invalid`] for an illegal or repeated id, a capacity of 0, or too many areas or units.
    pub fn area(&mut self, area: &AreaSpec<'_>) -> Result<(), Invalid> {
        let id = Id::parse(area.id).map_err(|e| Invalid::new("chart.area", e.to_string()))?;
        if self.areas.len() >= AREAS_PER_CHART_MAX {
            let most = format!("a chart has at most {AREAS_PER_CHART_MAX} areas");
            return Err(Invalid::new("chart.areas", most));
        }
        if !self.area_ids.insert(id.clone()) {
            let text = format!("two areas are named `{id}`");
            return Err(Invalid::new("chart.area", text));
        }
        if area.capacity == 0 {
            let text = format!("area `{id}` has no places");
            return Err(Invalid::new("chart.area", text));
        }
        let places = self.places.checked_add(area.capacity);
        self.places = places.ok_or_else(too_many_units)?;
        let category = self.category(area.category)?;
        let label = label_text("chart.area", area.label.unwrap_or(area.id))?;
        let (first, capacity, frame) = (UnitNo(0), area.capacity, area.frame);
        self.areas.push(Area {
            id,
            label,
            category,
            first,
            capacity,
            frame,
        });
        Ok(())
    }

    /// Sets the focal point: the seats around it are the best. Without it the best seats are those
    /// around the middle of the front, where the stage is drawn.
    pub fn focus(&mut self, focus: Position) {
        self.focus = Some(focus);
    }

    /// Returns the finished chart.
    ///
    /// # Errors
    /// [`Invalid`] when it has no unit or too many, when two units share a name, when only some
    /// seats have a position, or when it names a focal point and no seat has one.
    pub fn build(mut self) -> Result<Chart, Invalid> {
        let units = self.seats().checked_add(self.places);
        let units = units.ok_or_else(too_many_units)?;
        if units > UNITS_PER_CHART_MAX {
            return Err(too_many_units());
        }
        if units == 0 {
            let text = "the chart has no seat and no area".to_owned();
            return Err(Invalid::new("chart", text));
        }
        if !self.positions.is_empty() && self.positions.len() != self.seat_categories.len() {
            let text = "either every seat has a position or none".to_owned();
            return Err(Invalid::new("chart.seat", text));
        }
        if self.focus.is_some() && self.positions.is_empty() {
            let text = "a focal point is of seats that have positions".to_owned();
            return Err(Invalid::new("chart.focus", text));
        }
        let mut next = self.seats();
        for area in &mut self.areas {
            area.first = UnitNo(next);
            next = area.end().0;
        }
        let index = self.index()?;
        self.zones.shrink_to_fit();
        self.rows.shrink_to_fit();
        self.seat_categories.shrink_to_fit();
        self.positions.shrink_to_fit();
        let mut chart = Chart {
            name: label_text("chart.name", &self.name)?,
            row_index: RowIndex::build(&self.rows, &self.seat_categories),
            area_index: AreaIndex::build(&self.areas),
            zones: self.zones,
            rows: self.rows,
            areas: self.areas,
            categories: self.categories,
            seat_categories: self.seat_categories,
            positions: self.positions,
            labels: self.labels,
            named_focus: self.focus,
            focus: None,
            ranked_rows: Vec::new(),
            index,
        };
        chart.rank_rows();
        refuse_seats_named_like_places(&chart)?;
        Ok(chart)
    }

    fn seats(&self) -> u32 {
        count(self.seat_categories.len())
    }

    fn index(&self) -> Result<SeatIndex, Invalid> {
        let mut start = 0;
        let texts = self.id_ends.iter().map(|end| {
            let bytes = self.ids.get(start..*end).unwrap_or_default();
            start = *end;
            std::str::from_utf8(bytes).unwrap_or_default()
        });
        SeatIndex::build(texts).map_err(|unit| {
            let end = |at: usize| self.id_ends.get(at).copied();
            let start = unit.index().checked_sub(1).and_then(end).unwrap_or(0);
            let id = self.ids.get(start..end(unit.index()).unwrap_or(0));
            let id = String::from_utf8_lossy(id.unwrap_or_default());
            Invalid::new("chart.seat", format!("two seats are named `{id}`"))
        })
    }

    fn category(&mut self, name: &str) -> Result<CategoryNo, Invalid> {
        if let Some(known) = self.category_numbers.get(name) {
            return Ok(*known);
        }
        let name = label_text("chart.category", name)?;
        let number = u16::try_from(self.categories.len()).unwrap_or(u16::MAX);
        if usize::from(number) >= CATEGORIES_PER_CHART_MAX || name.is_empty() {
            let text = format!("`{name}`: 1 to {CATEGORIES_PER_CHART_MAX} named categories");
            return Err(Invalid::new("chart.category", text));
        }
        self.categories.push(name.clone());
        self.category_numbers.insert(name, CategoryNo(number));
        Ok(CategoryNo(number))
    }
}

/// Refuses a seat `floor.17` next to an area `floor`: two units would have one name.
fn refuse_seats_named_like_places(chart: &Chart) -> Result<(), Invalid> {
    if chart.areas.is_empty() {
        return Ok(());
    }
    for unit in (0..chart.seats()).map(UnitNo) {
        let id = chart.index.text(unit).unwrap_or_default();
        let Some((area, number)) = id.rsplit_once('.') else {
            continue;
        };
        let place = chart.find_area(area);
        let place = place.and_then(|area| chart.find_place(area, number));
        if place.is_some() {
            let text = format!("seat `{id}` has the name of a place of area `{area}`");
            return Err(Invalid::new("chart.seat", text));
        }
    }
    Ok(())
}

fn label_text(field: &'static str, text: &str) -> Result<String, Invalid> {
    let label = crate::Text::parse(text).map_err(|e| Invalid::new(field, e.to_string()))?;
    Ok(label.as_str().to_owned())
}

fn too_many_units() -> Invalid {
    let text = format!("a chart has at most {UNITS_PER_CHART_MAX} units");
    Invalid::new("chart", text)
}
