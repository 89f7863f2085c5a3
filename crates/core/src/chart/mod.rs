//! A seat plan: zones of rows of seats, and areas of interchangeable places. Immutable once an event
//! uses it. Gives every unit its number; knows no states and no formats.

mod build;
mod index;

use std::collections::BTreeMap;
use std::fmt;

pub use build::{AreaSpec, ChartBuilder, SeatSpec};
use index::SeatIndex;

use crate::{Id, Rejection, UnitNo};

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

/// A point on the plan in hundredths of a chart unit; neighbouring seats are about one unit apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// To the right.
    pub x: i32,
    /// Away from the stage.
    pub y: i32,
}

/// A rectangle on the plan, in hundredths of a chart unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Its upper left corner.
    pub at: Position,
    /// Its width.
    pub width: i32,
    /// Its height.
    pub height: i32,
}

/// A part of the hall.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zone {
    /// Its name, unique in the chart.
    pub id: Id,
    /// Its name for people.
    pub label: String,
    /// Its rows: from the first, so many.
    pub first_row: RowNo,
    /// How many rows.
    pub rows: u32,
}

/// Seats beside each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its name for people.
    pub label: String,
    /// Its first seat.
    pub first: UnitNo,
    /// How many seats.
    pub seats: u32,
}

impl Row {
    /// Its seats, from one end to the other.
    pub fn units(&self) -> impl DoubleEndedIterator<Item = UnitNo> + Clone + use<> {
        (self.first.0..self.first.0.saturating_add(self.seats)).map(UnitNo)
    }
}

/// A set of interchangeable places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Area {
    /// Its name, unique in the chart.
    pub id: Id,
    /// Its name for people.
    pub label: String,
    /// The price class of its places.
    pub category: CategoryNo,
    /// Its first place.
    pub first: UnitNo,
    /// How many places.
    pub capacity: u32,
    /// Where it is drawn.
    pub frame: Option<Frame>,
}

impl Area {
    /// The first unit after its places.
    pub fn end(&self) -> UnitNo {
        UnitNo(self.first.0.saturating_add(self.capacity))
    }

    /// Whether `unit` is one of its places.
    pub fn contains(&self, unit: UnitNo) -> bool {
        (self.first..self.end()).contains(&unit)
    }
}

/// How a unit is called in public.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnitName<'a> {
    /// A seat, by its own id.
    Seat(&'a str),
    /// A place, by its area and its number from 1.
    Place {
        /// Its area.
        area: &'a Area,
        /// Its number in the area, from 1.
        number: u32,
    },
}

impl fmt::Display for UnitName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Seat(id) => f.write_str(id),
            Self::Place { area, number } => write!(f, "{}.{number}", area.id),
        }
    }
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
    index: SeatIndex,
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

    /// All rows, in chart order: from the best to the worst.
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
        match self.seat_categories.get(unit.index()) {
            Some(category) => *category,
            None => self
                .area_of(unit)
                .map_or(CategoryNo(0), |area| area.category),
        }
    }

    /// The area of a place; nothing for a seat.
    pub fn area_of(&self, unit: UnitNo) -> Option<&Area> {
        if unit.0 < self.seats() {
            return None;
        }
        let after = self.areas.partition_point(|area| area.first <= unit);
        self.areas
            .get(after.checked_sub(1)?)
            .filter(|area| area.contains(unit))
    }

    /// The number of the area of a place.
    pub fn area_no_of(&self, unit: UnitNo) -> Option<AreaNo> {
        self.area_of(unit)?;
        let after = self.areas.partition_point(|area| area.first <= unit);
        u32::try_from(after.checked_sub(1)?).ok().map(AreaNo)
    }

    /// The area of this number.
    pub fn area(&self, area: AreaNo) -> Option<&Area> {
        self.areas.get(area.index())
    }

    /// The area of this id.
    pub fn find_area(&self, id: &str) -> Option<AreaNo> {
        let at = self.areas.iter().position(|area| area.id.as_str() == id)?;
        u32::try_from(at).ok().map(AreaNo)
    }

    /// The row of a seat; nothing for a place.
    pub fn row_of(&self, seat: UnitNo) -> Option<(RowNo, &Row)> {
        if seat.0 >= self.seats() {
            return None;
        }
        let at = self
            .rows
            .partition_point(|row| row.first <= seat)
            .checked_sub(1)?;
        Some((RowNo(u32::try_from(at).ok()?), self.rows.get(at)?))
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

    /// Turns the names of a request into unit numbers: seats sorted and distinct, areas summed.
    ///
    /// # Errors
    /// `UnknownUnit` with every name that the chart does not have.
    pub fn select<'a>(
        &self,
        seats: impl IntoIterator<Item = &'a str>,
        areas: impl IntoIterator<Item = (&'a str, u32)>,
    ) -> Result<Selection, Rejection> {
        let mut selection = Selection::default();
        let mut unknown = Vec::new();
        for id in seats {
            match self.find_seat(id) {
                Some(unit) => selection.seats.push(unit),
                None => unknown.push(id.to_owned()),
            }
        }
        for (id, quantity) in areas {
            match self.find_area(id) {
                Some(area) => selection.add_area(area, quantity),
                None => unknown.push(id.to_owned()),
            }
        }
        if !unknown.is_empty() {
            return Err(Rejection::UnknownUnit(unknown));
        }
        selection.seats.sort_unstable();
        selection.seats.dedup();
        Ok(selection)
    }
}

fn short_label(id: &str) -> &str {
    id.rsplit_once('-').map_or(id, |(_, label)| label)
}

/// What a request names, resolved against the event's chart: seats sorted and distinct, and how
/// many places of which areas.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Selection {
    pub(crate) seats: Vec<UnitNo>,
    pub(crate) areas: BTreeMap<AreaNo, u32>,
}

impl Selection {
    fn add_area(&mut self, area: AreaNo, quantity: u32) {
        let sum = self.areas.entry(area).or_default();
        *sum = sum.saturating_add(quantity);
    }

    /// The quantities alone.
    #[must_use]
    pub fn without_seats(self) -> Self {
        Self { seats: Vec::new(), ..self }
    }

    /// The named seats, sorted and distinct.
    pub fn seats(&self) -> &[UnitNo] {
        &self.seats
    }

    /// How many places of which areas.
    pub fn areas(&self) -> &BTreeMap<AreaNo, u32> {
        &self.areas
    }

    /// How many units it asks for.
    pub fn count(&self) -> u32 {
        let seats = u32::try_from(self.seats.len()).unwrap_or(u32::MAX);
        self.areas
            .values()
            .fold(seats, |sum, quantity| sum.saturating_add(*quantity))
    }

    /// Whether it asks for nothing.
    pub fn is_empty(&self) -> bool {
        self.count() == 0
    }
}
