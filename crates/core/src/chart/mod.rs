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

/// The place of a category in its chart, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CategoryNo(pub u16);

impl CategoryNo {
    /// The same as an index.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// The place of a row in its chart, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowNo(pub u32);

/// The place of an area in its chart, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AreaNo(pub u32);

macro_rules! index {
    ($name:ident) => {
        impl $name {
            /// The same as an index.
            pub fn index(self) -> usize {
                usize::try_from(self.0).unwrap_or(usize::MAX)
            }
        }
    };
}
index!(RowNo);
index!(AreaNo);

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
    ranked_rows: Vec<RankedRow>,
    index: SeatIndex,
    row_index: RowIndex,
    area_index: AreaIndex,
}

impl Chart {
    /// Its name for people.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its zones, in chart order.
    pub fn zones(&self) -> &[Zone] {
        &self.zones
    }

    /// All rows, in chart order: without positions from the best to the worst.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// The rows of one zone.
    pub fn rows_of(&self, zone: &Zone) -> &[Row] {
        let first = zone.first_row.index();
        let end = first + RowNo(zone.rows).index();
        self.rows.get(first..end).unwrap_or_default()
    }

    /// All areas, in chart order.
    pub fn areas(&self) -> &[Area] {
        &self.areas
    }

    /// The names of its price classes.
    pub fn categories(&self) -> &[String] {
        &self.categories
    }

    /// The category of this name.
    pub fn category(&self, name: &str) -> Option<CategoryNo> {
        let at = self.categories.iter().position(|known| known == name)?;
        u16::try_from(at).ok().map(CategoryNo)
    }

    /// How many seats it has. Their numbers come first.
    pub fn seats(&self) -> u32 {
        u32::try_from(self.seat_categories.len()).unwrap_or(u32::MAX)
    }

    /// How many units it has, seats and places.
    pub fn units(&self) -> u32 {
        self.areas
            .last()
            .map_or_else(|| self.seats(), |area| area.end().0)
    }

    /// Where a seat is drawn; nothing for places and for charts without positions.
    pub fn position(&self, unit: UnitNo) -> Option<Position> {
        self.positions.get(unit.index()).copied()
    }

    /// What stands on a seat: its own label, or its id after the last `-`.
    pub fn label(&self, seat: UnitNo) -> &str {
        match self.labels.get(&seat) {
            Some(label) => label,
            None => short_label(self.index.text(seat).unwrap_or_default()),
        }
    }

    /// The price class of a unit.
    pub fn category_of(&self, unit: UnitNo) -> CategoryNo {
        // Most rows are of one class, and the list of rows is short enough to be at hand.
        if let Some(row) = self.row_no_of(unit) {
            return self
                .row_category(row)
                .or_else(|| self.seat_categories.get(unit.index()).copied())
                .unwrap_or(CategoryNo(0));
        }
        self.area_of(unit)
            .map_or(CategoryNo(0), |area| area.category)
    }

    /// The area of a place; nothing for a seat.
    pub fn area_of(&self, unit: UnitNo) -> Option<&Area> {
        self.area(self.area_no_of(unit)?)
    }

    /// The number of the area of a place.
    pub fn area_no_of(&self, unit: UnitNo) -> Option<AreaNo> {
        if unit.0 < self.seats() {
            return None;
        }
        let after = self.areas.partition_point(|area| area.first <= unit);
        let number = AreaNo(u32::try_from(after.checked_sub(1)?).ok()?);
        self.area(number)
            .filter(|area| area.contains(unit))
            .map(|_| number)
    }

    /// The area of this number.
    pub fn area(&self, area: AreaNo) -> Option<&Area> {
        self.areas.get(area.index())
    }

    /// The public name of the area of this number.
    pub(crate) fn area_name(&self, area: AreaNo) -> String {
        self.area(area)
            .map(|area| area.id.to_string())
            .unwrap_or_default()
    }

    /// The area of this id.
    pub fn find_area(&self, id: &str) -> Option<AreaNo> {
        self.area_index.find(&self.areas, id)
    }

    /// The row of a seat; nothing for a place.
    pub fn row_of(&self, seat: UnitNo) -> Option<(RowNo, &Row)> {
        let number = self.row_no_of(seat)?;
        Some((number, self.rows.get(number.index())?))
    }

    /// The number of the row of a seat.
    pub(crate) fn row_no_of(&self, seat: UnitNo) -> Option<RowNo> {
        if seat.0 >= self.seats() {
            return None;
        }
        self.row_index.find(seat)
    }

    /// The seats of a row.
    pub(crate) fn row_seats(&self, row: RowNo) -> Option<Range<UnitNo>> {
        self.row_index.seats(row)
    }

    /// The price class of all seats of a row; none where they are of several.
    pub(crate) fn row_category(&self, row: RowNo) -> Option<CategoryNo> {
        self.row_index.category(row)
    }

    /// Bytes on the heap, but for the texts of zones, rows, areas, categories and labels.
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

    /// The seat of this id. Constant time.
    pub fn find_seat(&self, id: &str) -> Option<UnitNo> {
        self.index.find(id)
    }

    /// The unit of this public name: a seat's id, or `<area>.<number>`.
    pub fn find_unit(&self, name: &str) -> Option<UnitNo> {
        self.find_seat(name).or_else(|| {
            let (area, number) = name.rsplit_once('.')?;
            self.find_place(self.find_area(area)?, number)
        })
    }

    /// The place with this number text, from `1`, without leading zeros.
    fn find_place(&self, area: AreaNo, number: &str) -> Option<UnitNo> {
        let area = self.area(area)?;
        let parsed: u32 = number.parse().ok()?;
        let canonical = number.starts_with(|first: char| ('1'..='9').contains(&first));
        (canonical && (1..=area.capacity).contains(&parsed))
            .then(|| UnitNo(area.first.0.saturating_add(parsed - 1)))
    }

    /// How a unit is called in public.
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
