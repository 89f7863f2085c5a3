//! Finds the row of a unit and the area of a name without a scan of the chart.

use std::ops::Range;

use super::{Area, AreaNo, CategoryNo, Row, RowNo};
use crate::UnitNo;
use crate::number::{count, index};

/// Seats that share one entry of the index.
const BLOCK: u32 = 64;

/// The row of every 64th seat, and the fields of rows that are read most: eight bytes each, close
/// together, so that a hold in a hall of ten thousand rows finds them in the cache.
#[derive(Clone, Debug, Default)]
pub(super) struct RowIndex {
    row_of_block: Vec<RowNo>,
    /// One for each row, and one more that starts where the last row ends.
    entries: Vec<RowEntry>,
}

#[derive(Clone, Copy, Debug)]
struct RowEntry {
    first: UnitNo,
    /// `None` where the row's seats are of several classes, or where it has none.
    category: Option<CategoryNo>,
}

impl RowIndex {
    pub(super) fn build(rows: &[Row], seat_categories: &[CategoryNo]) -> Self {
        let seats = count(seat_categories.len());
        let category = |row: &Row| {
            let seats = seat_categories.get(row.first.index()..row.end().index())?;
            let first = seats.first()?;
            seats.iter().all(|other| other == first).then_some(*first)
        };
        let entry = |row: &Row| RowEntry {
            first: row.first,
            category: category(row),
        };
        let end = RowEntry {
            first: UnitNo(seats),
            category: None,
        };
        let entries: Vec<RowEntry> = rows.iter().map(entry).chain([end]).collect();
        let blocks = (0..seats.div_ceil(BLOCK)).map(|block| UnitNo(block * BLOCK));
        Self {
            row_of_block: blocks
                .map(|seat| RowNo(starting_by(&entries, seat).saturating_sub(1)))
                .collect(),
            entries,
        }
    }

    /// Returns the row of a seat of the chart.
    pub(super) fn find(&self, seat: UnitNo) -> Option<RowNo> {
        let block = index(seat.0 / BLOCK);
        let first = *self.row_of_block.get(block)?;
        let last = match self.row_of_block.get(block + 1) {
            Some(row) => row.index(),
            None => self.entries.len().checked_sub(1)?,
        };
        let beyond = self.entries.get(first.index() + 1..=last)?;
        Some(RowNo(first.0.saturating_add(starting_by(beyond, seat))))
    }

    pub(super) fn seats(&self, row: RowNo) -> Option<Range<UnitNo>> {
        let first = self.entries.get(row.index())?.first;
        Some(first..self.entries.get(row.index() + 1)?.first)
    }

    pub(super) fn category(&self, row: RowNo) -> Option<CategoryNo> {
        self.entries.get(row.index())?.category
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.row_of_block.capacity() * size_of::<RowNo>()
            + self.entries.capacity() * size_of::<RowEntry>()
    }
}

/// Returns how many rows start at `seat` or before it.
fn starting_by(entries: &[RowEntry], seat: UnitNo) -> u32 {
    count(entries.partition_point(|entry| entry.first <= seat))
}

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
