//! From a unit to its row and from a name to its area, without a walk over the chart.

use super::{Area, AreaNo, CategoryNo, Row, RowNo};
use crate::UnitNo;

/// Seats that share one entry of the row index.
const BLOCK: u32 = 64;

/// The row of every 64th seat, and the price class of each row.
#[derive(Clone, Debug, Default)]
pub(super) struct RowIndex {
    row_of_block: Vec<RowNo>,
    /// Of each row; none where its seats are of several, or where it has none.
    categories: Vec<Option<CategoryNo>>,
}

impl RowIndex {
    pub(super) fn build(rows: &[Row], seat_categories: &[CategoryNo]) -> Self {
        let seats = u32::try_from(seat_categories.len()).unwrap_or(u32::MAX);
        let blocks = (0..seats.div_ceil(BLOCK)).map(|block| UnitNo(block * BLOCK));
        let category = |row: &Row| {
            let seats = seat_categories.get(row.first.index()..row.end().index())?;
            let first = seats.first()?;
            seats.iter().all(|other| other == first).then_some(*first)
        };
        Self {
            row_of_block: blocks.map(|seat| last_starting_by(rows, seat)).collect(),
            categories: rows.iter().map(category).collect(),
        }
    }

    /// The row of a seat of the chart.
    pub(super) fn find(&self, rows: &[Row], seat: UnitNo) -> Option<RowNo> {
        let block = UnitNo(seat.0 / BLOCK).index();
        let first = *self.row_of_block.get(block)?;
        let last = match self.row_of_block.get(block + 1) {
            Some(row) => row.index(),
            None => rows.len().checked_sub(1)?,
        };
        let beyond = rows.get(first.index() + 1..=last)?;
        let RowNo(within) = starting_by(beyond, seat);
        Some(RowNo(first.0.saturating_add(within)))
    }

    pub(super) fn category(&self, row: RowNo) -> Option<CategoryNo> {
        self.categories.get(row.index()).copied().flatten()
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.row_of_block.capacity() * size_of::<RowNo>()
            + self.categories.capacity() * size_of::<Option<CategoryNo>>()
    }
}

/// How many of `rows` start at `seat` or before it.
fn starting_by(rows: &[Row], seat: UnitNo) -> RowNo {
    let count = rows.partition_point(|row| row.first <= seat);
    RowNo(u32::try_from(count).unwrap_or(u32::MAX))
}

fn last_starting_by(rows: &[Row], seat: UnitNo) -> RowNo {
    RowNo(starting_by(rows, seat).0.saturating_sub(1))
}

/// Areas by their ids.
#[derive(Clone, Debug, Default)]
pub(super) struct AreaIndex(Vec<AreaNo>);

impl AreaIndex {
    pub(super) fn build(areas: &[Area]) -> Self {
        let mut numbers: Vec<AreaNo> = (0..).map(AreaNo).take(areas.len()).collect();
        numbers.sort_by_key(|number| areas.get(number.index()).map(|area| &area.id));
        Self(numbers)
    }

    pub(super) fn find(&self, areas: &[Area], id: &str) -> Option<AreaNo> {
        let id_of = |number: &AreaNo| areas.get(number.index()).map(|area| area.id.as_str());
        let at = self.0.binary_search_by_key(&Some(id), id_of).ok()?;
        self.0.get(at).copied()
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.0.capacity() * size_of::<AreaNo>()
    }
}
