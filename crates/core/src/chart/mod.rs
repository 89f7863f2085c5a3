//! A seat plan: zones of rows of seats, and areas of interchangeable places. Immutable once an event
//! uses it. Gives every unit its number; knows no states and no formats.

mod build;
mod focus;
mod index;
mod lookup;
mod parts;
mod select;

use std::collections::BTreeMap;
use std::ops::Range;

pub use build::{AreaSpec, ChartBuilder, SeatSpec};
pub(crate) use focus::{Distance, RankedRow};
use index::SeatIndex;
use lookup::{AreaIndex, RowIndex};
pub use parts::{Area, Frame, Position, Row, UnitName, Zone};
pub use select::Selection;

use crate::UnitNo;
use crate::number::{count, place};

place! {
    /// The place of a category in its chart, from 0.
    #[derive(Debug)]
    CategoryNo(u16)
}

place! {
    /// The place of a row in its chart, from 0.
    #[derive(Debug)]
    RowNo(u32)
}

place! {
    /// The place of an area in its chart, from 0.
    #[derive(Debug)]
    AreaNo(u32)
}

/// A seat plan. Units are numbered zone by zone, row by row, seat by seat; then area by area.
#[derive(Clone, Debug)]
pub struct Chart {
    name: String,
    zones: Vec<Zone>,
    rows: Vec<Row>,
    areas: Vec<Area>,
    categories: Vec<String>,
    seat_categories: Vec<CategoryNo>,
    positions: Vec<Position>,
    labels: BTreeMap<UnitNo, Box<str>>,
    named_focus: Option<Position>,
    /// The point that rows are ranked by.
    focus: Option<Position>,
    /// Rows with seats, the best first.
    pub(crate) ranked_rows: Vec<RankedRow>,
    index: SeatIndex,
    row_index: RowIndex,
    area_index: AreaIndex,
}

impl Chart {
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn zones(&self) -> &[Zone] {
        &self.zones
    }

    /// Returns all rows, in chart order: without positions from the best to the worst.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    pub fn rows_of(&self, zone: &Zone) -> &[Row] {
        let first = zone.first_row.index();
        let end = first + RowNo(zone.rows).index();
        self.rows.get(first..end).unwrap_or_default()
    }

    pub fn areas(&self) -> &[Area] {
        &self.areas
    }

    pub fn categories(&self) -> &[String] {
        &self.categories
    }

    pub fn category(&self, name: &str) -> Option<CategoryNo> {
        let at = self.categories.iter().position(|known| known == name)?;
        u16::try_from(at).ok().map(CategoryNo)
    }

    /// Returns how many seats it has. Their unit numbers come first.
    pub fn seats(&self) -> u32 {
        count(self.seat_categories.len())
    }

    /// Returns how many units it has, seats and places.
    pub fn units(&self) -> u32 {
        let last = self.areas.last();
        last.map_or_else(|| self.seats(), |area| area.end().0)
    }

    /// Returns where a seat is drawn; `None` for places and for charts without positions.
    pub fn position(&self, unit: UnitNo) -> Option<Position> {
        self.positions.get(unit.index()).copied()
    }

    /// Returns the label of a seat: its own label, or its id after the last `-`.
    pub fn label(&self, seat: UnitNo) -> &str {
        match self.labels.get(&seat) {
            Some(label) => label,
            None => short_label(self.index.text(seat).unwrap_or_default()),
        }
    }

    /// Returns the price class of a unit; the first one if the chart has no such unit.
    pub fn category_of(&self, unit: UnitNo) -> CategoryNo {
        // Most rows are of one class, and the list of rows is short enough to stay in the cache.
        if let Some(row) = self.row_no_of(unit) {
            return self
                .row_category(row)
                .or_else(|| self.seat_categories.get(unit.index()).copied())
                .unwrap_or(CategoryNo(0));
        }
        self.area_of(unit)
            .map_or(CategoryNo(0), |area| area.category)
    }

    /// Returns the area of a place; `None` for a seat.
    pub fn area_of(&self, unit: UnitNo) -> Option<&Area> {
        self.area(self.area_no_of(unit)?)
    }

    /// Returns the number of the area of a place.
    pub fn area_no_of(&self, unit: UnitNo) -> Option<AreaNo> {
        if unit.0 < self.seats() {
            return None;
        }
        let after = self.areas.partition_point(|area| area.first <= unit);
        let number = AreaNo(u32::try_from(after.checked_sub(1)?).ok()?);
        self.area(number)?.contains(unit).then_some(number)
    }

    pub fn area(&self, area: AreaNo) -> Option<&Area> {
        self.areas.get(area.index())
    }

    /// Returns the public name of the area of this number.
    pub(crate) fn area_name(&self, area: AreaNo) -> String {
        let area = self.area(area);
        area.map(|area| area.id.to_string()).unwrap_or_default()
    }

    pub fn find_area(&self, id: &str) -> Option<AreaNo> {
        self.area_index.find(&self.areas, id)
    }

    /// Returns the row of a seat; `None` for a place.
    pub fn row_of(&self, seat: UnitNo) -> Option<(RowNo, &Row)> {
        let number = self.row_no_of(seat)?;
        Some((number, self.rows.get(number.index())?))
    }

    pub(crate) fn row_no_of(&self, seat: UnitNo) -> Option<RowNo> {
        if seat.0 >= self.seats() {
            return None;
        }
        self.row_index.find(seat)
    }

    pub(crate) fn row_seats(&self, row: RowNo) -> Option<Range<UnitNo>> {
        self.row_index.seats(row)
    }

    /// Returns the price class of all seats of a row; `None` where they are of several.
    pub(crate) fn row_category(&self, row: RowNo) -> Option<CategoryNo> {
        self.row_index.category(row)
    }

    /// Returns its size on the heap in bytes, but for the texts of zones, rows, areas, categories and labels.
    pub fn heap_bytes(&self) -> usize {
        self.zones.capacity() * size_of::<Zone>()
            + self.rows.capacity() * size_of::<Row>()
            + self.areas.capacity() * size_of::<Area>()
            + self.seat_categories.capacity() * size_of::<CategoryNo>()
            + self.positions.capacity() * size_of::<Position>()
            + self.ranked_rows.capacity() * size_of::<RankedRow>()
            + self.index.heap_bytes()
            + self.row_index.heap_bytes()
            + self.area_index.heap_bytes()
    }

    /// Finds the seat of this id. Constant time.
    pub fn find_seat(&self, id: &str) -> Option<UnitNo> {
        self.index.find(id)
    }

    /// Finds the unit of this public name: a seat's id, or `<area>.<number>`.
    pub fn find_unit(&self, name: &str) -> Option<UnitNo> {
        self.find_seat(name).or_else(|| {
            let (area, number) = name.rsplit_once('.')?;
            self.find_place(self.find_area(area)?, number)
        })
    }

    /// Finds the place with this number text, from `1`, without leading zeros.
    fn find_place(&self, area: AreaNo, number: &str) -> Option<UnitNo> {
        let area = self.area(area)?;
        let parsed: u32 = number.parse().ok()?;
        let canonical = number.starts_with(|first: char| ('1'..='9').contains(&first));
        (canonical && (1..=area.capacity).contains(&parsed))
            .then(|| UnitNo(area.first.0.saturating_add(parsed - 1)))
    }

    /// Returns the public name of a unit; that of a seat without an id if the chart has no such unit.
    pub fn unit_name(&self, unit: UnitNo) -> UnitName<'_> {
        match (self.index.text(unit), self.area_of(unit)) {
            (Some(id), _) => UnitName::Seat(id),
            (None, Some(area)) => UnitName::Place {
                area,
                number: unit.0 - area.first.0 + 1,
            },
            (None, None) => UnitName::Seat(""),
        }
    }
}

fn short_label(id: &str) -> &str {
    id.rsplit_once('-').map_or(id, |(_, label)| label)
}
