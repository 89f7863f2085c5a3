//! All units of one event, dense in memory, and the counts of them. The one place that changes a
//! unit, so the counts cannot drift from the units.

use std::ops::Range;
use std::sync::Arc;

use crate::bits::Bits;
use crate::number::{count, index};
use crate::unit::Step;
use crate::{
    Area, AreaNo, Chart, Fence, RowNo, StateKind, Tally, Timestamp, Transition, Unit, UnitNo,
};

/// Every unit of an event as the ledger has it written down.
///
/// Besides the states it keeps which units are *open* to a new owner: the free ones, and those of
/// holds that the clock has ended, as far as they were reported to it.
#[derive(Clone, Debug)]
pub struct Seating {
    chart: Arc<Chart>,
    units: Vec<Unit>,
    total: Tally,
    open: Bits,
    pub(crate) open_seats: u32,
    blocked: Bits,
    rows: Vec<RowCount>,
    areas: Vec<AreaCount>,
}

/// The counts of a row, to skip rows that cannot have the wanted seats.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowCount {
    pub(crate) open: u32,
    /// Open seats whose next neighbour is open too.
    pub(crate) pairs: u32,
}

#[derive(Clone, Copy, Debug)]
struct AreaCount {
    tally: Tally,
    open: u32,
}

impl Seating {
    pub fn new(chart: Arc<Chart>) -> Self {
        let area = |area: &Area| AreaCount {
            tally: Tally::all_free(area.capacity),
            open: area.capacity,
        };
        let row = |row: &crate::Row| RowCount {
            open: row.seats,
            pairs: row.seats.saturating_sub(1),
        };
        Self {
            units: vec![Unit::default(); index(chart.units())],
            total: Tally::all_free(chart.units()),
            open: Bits::all(chart.units()),
            open_seats: chart.seats(),
            blocked: Bits::none(chart.units()),
            rows: chart.rows().iter().map(row).collect(),
            areas: chart.areas().iter().map(area).collect(),
            chart,
        }
    }

    pub fn chart(&self) -> &Arc<Chart> {
        &self.chart
    }

    /// Returns one unit.
    ///
    /// # Panics
    /// When the event's chart has no such unit.
    pub fn unit(&self, unit: UnitNo) -> &Unit {
        self.units
            .get(unit.index())
            .expect("a unit number comes from the event's own chart")
    }

    pub fn units(&self) -> &[Unit] {
        &self.units
    }

    pub fn tally(&self) -> Tally {
        self.total
    }

    pub fn area_tally(&self, area: AreaNo) -> Tally {
        let count = self.areas.get(area.index());
        count.map(|count| count.tally).unwrap_or_default()
    }

    /// Returns its size on the heap in bytes, the chart's not counted: it is shared.
    pub fn heap_bytes(&self) -> usize {
        self.units.capacity() * size_of::<Unit>()
            + self.rows.capacity() * size_of::<RowCount>()
            + self.areas.capacity() * size_of::<AreaCount>()
            + self.open.heap_bytes()
            + self.blocked.heap_bytes()
    }

    pub(crate) fn row_count(&self, row: RowNo) -> Option<RowCount> {
        self.rows.get(row.index()).copied()
    }

    pub(crate) fn newest_fence(&self, units: impl Iterator<Item = UnitNo>) -> Fence {
        let fences = units.map(|unit| self.unit(unit).fence);
        fences.max().unwrap_or_default()
    }

    pub(crate) fn open_count(&self, area: AreaNo) -> u32 {
        self.areas.get(area.index()).map_or(0, |count| count.open)
    }

    /// Finds `quantity` open places of an area, fewer if there are not so many, in unit order:
    /// those from the open one with this number on, counted from 0 and around.
    pub(crate) fn open_places(&self, area: AreaNo, quantity: u32, from: u32) -> Vec<UnitNo> {
        let passed = from.checked_rem(self.open_count(area)).unwrap_or(0);
        let units = self.units_of(area);
        let first = self.open.nth_in(units.clone(), passed);
        let first = first.unwrap_or(units.start);
        let mut places = numbers_in(&self.open, first..units.end, quantity);
        let missing = quantity.saturating_sub(count(places.len()));
        places.extend(numbers_in(&self.open, units.start..first, missing));
        places.sort_unstable();
        places
    }

    /// Finds the first `quantity` blocked places of an area, fewer if there are not so many.
    pub(crate) fn blocked_places(&self, area: AreaNo, quantity: u32) -> Vec<UnitNo> {
        numbers_in(&self.blocked, self.units_of(area), quantity)
    }

    fn units_of(&self, area: AreaNo) -> Range<u32> {
        let area = self.chart.area(area);
        area.map_or(0..0, |area| area.first.0..area.end().0)
    }

    pub(crate) fn step(&mut self, unit: UnitNo, step: Step) -> Transition {
        let transition = self.unit_mut(unit).step(unit, step);
        self.count(unit, transition.from.kind(), transition.to.kind());
        transition
    }

    /// Restores a unit to the state in which the ledger stored it.
    ///
    /// # Panics
    /// When the event's chart has no such unit.
    pub fn restore(&mut self, unit: UnitNo, stored: Unit) {
        let before = std::mem::replace(self.unit_mut(unit), stored);
        self.count(unit, before.state.kind(), stored.state.kind());
    }

    fn unit_mut(&mut self, unit: UnitNo) -> &mut Unit {
        self.units
            .get_mut(unit.index())
            .expect("a unit number comes from the event's own chart")
    }

    fn count(&mut self, unit: UnitNo, from: StateKind, to: StateKind) {
        if from != to {
            self.total.shift(from, to);
            if let Some(count) = self.area_count_mut(unit) {
                count.tally.shift(from, to);
            }
            match (from, to) {
                (_, StateKind::Blocked) => self.blocked.insert(unit.0),
                (StateKind::Blocked, _) => self.blocked.remove(unit.0),
                (StateKind::Free | StateKind::Held | StateKind::Sold, _) => false,
            };
        }
        match to {
            StateKind::Free => self.reopen(unit),
            StateKind::Held | StateKind::Sold | StateKind::Blocked => self.close(unit),
        }
    }

    fn area_count_mut(&mut self, unit: UnitNo) -> Option<&mut AreaCount> {
        let area = self.chart.area_no_of(unit)?;
        self.areas.get_mut(area.index())
    }

    /// Opens `unit` to a new owner: it is free, or its hold is over.
    pub(crate) fn reopen(&mut self, unit: UnitNo) {
        if self.open.insert(unit.0) {
            self.count_open(unit, 1);
        }
    }

    fn close(&mut self, unit: UnitNo) {
        if self.open.remove(unit.0) {
            self.count_open(unit, -1);
        }
    }

    /// Adds `by`, 1 or -1, to the counts of open units.
    fn count_open(&mut self, unit: UnitNo, by: i32) {
        if let Some((neighbours, row)) = self.row_count_mut(unit) {
            row.open = row.open.saturating_add_signed(by);
            row.pairs = row.pairs.saturating_add_signed(neighbours * by);
            self.open_seats = self.open_seats.saturating_add_signed(by);
        } else if let Some(area) = self.area_count_mut(unit) {
            area.open = area.open.saturating_add_signed(by);
        }
    }

    /// Returns how many neighbours of a seat are open, and the count of its row.
    fn row_count_mut(&mut self, seat: UnitNo) -> Option<(i32, &mut RowCount)> {
        let number = self.chart.row_no_of(seat)?;
        let row = self.chart.row_seats(number)?;
        let before = seat > row.start && self.open.has(seat.0 - 1);
        let behind = seat.0 + 1 < row.end.0 && self.open.has(seat.0 + 1);
        let neighbours = i32::from(before) + i32::from(behind);
        Some((neighbours, self.rows.get_mut(number.index())?))
    }

    /// Tells whether a new owner may take `unit` at `now`.
    pub fn is_available(&self, unit: UnitNo, now: Timestamp) -> bool {
        self.unit(unit).state.is_available(now)
    }

    /// Returns the open units, for choosing.
    pub(crate) fn open(&self) -> OpenUnits<'_> {
        OpenUnits(&self.open)
    }
}

/// Tells which units could be taken now.
pub trait Availability {
    fn is_available(&self, unit: UnitNo) -> bool;

    /// Finds the first run of neighbouring numbers inside `within` that may all be taken, in its
    /// full length. Looks at one unit after the other; an index can do better.
    fn next_run(&self, within: Range<UnitNo>) -> Option<Range<UnitNo>> {
        let mut units = (within.start.0..within.end.0).map(UnitNo);
        let first = units.find(|unit| self.is_available(*unit))?;
        let end = units.find(|unit| !self.is_available(*unit));
        Some(first..end.unwrap_or(within.end))
    }
}

/// The units of a seating that are open to a new owner.
#[derive(Clone, Copy)]
pub(crate) struct OpenUnits<'a>(&'a Bits);

impl Availability for OpenUnits<'_> {
    fn is_available(&self, unit: UnitNo) -> bool {
        self.0.has(unit.0)
    }

    fn next_run(&self, within: Range<UnitNo>) -> Option<Range<UnitNo>> {
        let end = within.end.0;
        let first = self.0.next_in(within.start.0..end)?;
        Some(UnitNo(first)..UnitNo(self.0.next_out(first..end)))
    }
}

/// Finds the first `quantity` units of a set in a range.
fn numbers_in(set: &Bits, units: Range<u32>, quantity: u32) -> Vec<UnitNo> {
    let mut from = units.start;
    let next = || {
        let found = set.next_in(from..units.end)?;
        from = found.saturating_add(1);
        Some(UnitNo(found))
    };
    std::iter::from_fn(next).take(index(quantity)).collect()
}
