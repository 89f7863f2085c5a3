//! The parts of a chart: zones, rows, areas, with their positions and names.

use std::fmt;
use std::ops::Range;

use super::{CategoryNo, RowNo};
use crate::{Id, UnitNo};

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
    pub at: Position,
    pub width: i32,
    pub height: i32,
}

/// A part of the hall.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zone {
    pub id: Id,
    pub label: String,
    /// Its first row, and how many it has.
    pub first_row: RowNo,
    pub rows: u32,
}

/// Neighbouring seats.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    pub label: String,
    pub first: UnitNo,
    pub seats: u32,
}

impl Row {
    /// Returns its seats, from one end to the other.
    pub fn units(&self) -> impl DoubleEndedIterator<Item = UnitNo> + Clone + use<> {
        (self.first.0..self.end().0).map(UnitNo)
    }

    /// Returns the first unit after its seats.
    pub fn end(&self) -> UnitNo {
        UnitNo(self.first.0.saturating_add(self.seats))
    }

    pub(crate) fn range(&self) -> Range<UnitNo> {
        self.first..self.end()
    }
}

/// A set of interchangeable places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Area {
    pub id: Id,
    pub label: String,
    pub category: CategoryNo,
    pub first: UnitNo,
    pub capacity: u32,
    pub frame: Option<Frame>,
}

impl Area {
    /// Returns the first unit after its places.
    pub fn end(&self) -> UnitNo {
        UnitNo(self.first.0.saturating_add(self.capacity))
    }

    pub fn contains(&self, unit: UnitNo) -> bool {
        (self.first..self.end()).contains(&unit)
    }
}

/// The public name of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnitName<'a> {
    Seat(&'a str),
    /// A place, by its area and its number from 1.
    Place {
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
