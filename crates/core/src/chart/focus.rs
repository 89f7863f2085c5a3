//! Ranks the rows of a chart for `best`: rows that face the focal point by their distance from it,
//! then the rows at its sides. Without positions rows rank in chart order. Knows no states.

use super::{Chart, Position, Row, RowNo};
use crate::UnitNo;

/// A row is at the side when it begins more than the width of all seats, divided by this, away from
/// the focal point: an aisle in the middle is narrower, a middle block is wider.
const SIDE_FROM_PART_OF_WIDTH: i64 = 8;

/// The distance of seats from the best place of their chart; the less, the better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Distance {
    at_the_side: bool,
    /// The square of twice the distance, or the number of the row where seats have no positions.
    square: u64,
}

/// A row with its rank for `best`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RankedRow {
    pub(crate) row: RowNo,
    /// Twice the number where the middle of a choice should be: the seat next to the focal point.
    pub(crate) middle: u32,
    /// A lower bound of the distance of its seats.
    pub(crate) nearest: Distance,
}

impl Chart {
    /// Returns the point whose surroundings are the best seats; `None` without positions.
    pub fn focus(&self) -> Option<Position> {
        self.focus
    }

    /// Returns the focal point that the plan names.
    pub fn named_focus(&self) -> Option<Position> {
        self.named_focus
    }

    /// Returns how far the middle of neighbouring seats of a row is from the focal point.
    pub(crate) fn distance(&self, row: &RankedRow, first: UnitNo, quantity: u32) -> Distance {
        let half = quantity.saturating_sub(1) / 2;
        let left = UnitNo(first.0.saturating_add(half));
        let right = UnitNo(first.0.saturating_add(quantity.saturating_sub(1) - half));
        match (self.focus, self.position(left), self.position(right)) {
            (Some(focus), Some(left), Some(right)) => Distance {
                square: square_between(focus, left, right),
                ..row.nearest
            },
            _ => row.nearest,
        }
    }

    pub(super) fn rank_rows(&mut self) {
        let front = Frontage::of(&self.positions);
        self.focus = self.named_focus.or_else(|| front?.middle());
        let numbered = (0..).map(RowNo).zip(&self.rows);
        let ranked = numbered.filter(|(_, row)| row.seats > 0);
        let mut ranked: Vec<RankedRow> = match (self.focus, front) {
            (Some(focus), Some(front)) => ranked
                .filter_map(|(number, row)| self.ranked(number, row, (focus, front.width())))
                .collect(),
            _ => ranked.map(in_chart_order).collect(),
        };
        ranked.sort_unstable_by_key(|ranked| (ranked.nearest, ranked.row));
        self.ranked_rows = ranked;
    }

    fn ranked(&self, number: RowNo, row: &Row, to: (Position, i64)) -> Option<RankedRow> {
        let (focus, width) = to;
        let seats = self.positions.get(row.first.index()..row.end().index())?;
        let nearest = Frontage::of(seats)?.nearest_to(focus);
        let aside = i64::from(nearest.x).abs_diff(i64::from(focus.x));
        let away = |at: &Position| square_between(focus, *at, *at);
        let shortest = seats.iter().map(away).min()?;
        let seats = row.units().zip(seats);
        let best = seats.filter(|(_, at)| away(at) == shortest);
        let mut best = best.map(|(seat, _)| seat);
        let first = best.next()?;
        let last = best.last().unwrap_or(first);
        Some(RankedRow {
            row: number,
            middle: first.0.saturating_add(last.0).saturating_add(1),
            nearest: Distance {
                at_the_side: aside > (width / SIDE_FROM_PART_OF_WIDTH).unsigned_abs(),
                square: square_between(focus, nearest, nearest),
            },
        })
    }
}

fn in_chart_order((number, row): (RowNo, &Row)) -> RankedRow {
    RankedRow {
        row: number,
        middle: row.first.0.saturating_mul(2).saturating_add(row.seats),
        nearest: Distance {
            at_the_side: false,
            square: u64::from(number.0),
        },
    }
}

/// Returns the square of twice the distance from a point to the middle of two others.
fn square_between(point: Position, left: Position, right: Position) -> u64 {
    let twice = |point: i32, left: i32, right: i32| {
        let middle = i64::from(left) + i64::from(right);
        middle.abs_diff(2 * i64::from(point))
    };
    let across = twice(point.x, left.x, right.x);
    let along = twice(point.y, left.y, right.y);
    across
        .saturating_mul(across)
        .saturating_add(along.saturating_mul(along))
}

/// The least rectangle around some seats.
#[derive(Clone, Copy)]
struct Frontage {
    least: Position,
    most: Position,
}

impl Frontage {
    fn of(seats: &[Position]) -> Option<Self> {
        let first = *seats.first()?;
        let start = Self {
            least: first,
            most: first,
        };
        Some(seats.iter().fold(start, |all, at| Self {
            least: Position {
                x: all.least.x.min(at.x),
                y: all.least.y.min(at.y),
            },
            most: Position {
                x: all.most.x.max(at.x),
                y: all.most.y.max(at.y),
            },
        }))
    }

    fn width(self) -> i64 {
        i64::from(self.most.x) - i64::from(self.least.x)
    }

    /// Returns where the stage is drawn: above the seats, in the middle.
    fn middle(self) -> Option<Position> {
        let x = i64::from(self.least.x) + self.width() / 2;
        let (x, y) = (i32::try_from(x).ok()?, self.least.y);
        Some(Position { x, y })
    }

    fn nearest_to(self, point: Position) -> Position {
        Position {
            x: point.x.clamp(self.least.x, self.most.x),
            y: point.y.clamp(self.least.y, self.most.y),
        }
    }
}
