//! All units of one event, dense in memory, and what is counted from them. The one place that
//! changes a unit, so the counts cannot drift from the units.

use std::sync::Arc;

use crate::pick::Availability;
use crate::unit::Step;
use crate::{
    Area, AreaNo, Chart, Fence, RowNo, StateKind, Timestamp, Transition, Unit, UnitNo, UnitState,
};

/// How many units are in which state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Tally {
    /// Can be held.
    pub free: u32,
    /// In holds, as written down.
    pub held: u32,
    /// In bookings.
    pub sold: u32,
    /// Not for sale.
    pub blocked: u32,
}

impl Tally {
    /// All units free.
    pub fn all_free(units: u32) -> Self {
        Self {
            free: units,
            ..Self::default()
        }
    }

    /// All units counted.
    pub fn total(self) -> u32 {
        [self.free, self.held, self.sold, self.blocked]
            .iter()
            .fold(0, |a, b| a.saturating_add(*b))
    }

    /// One unit goes from one state to another.
    ///
    /// # Panics
    /// When no unit is in state `from`.
    pub fn shift(&mut self, from: StateKind, to: StateKind) {
        let count = self.count_mut(from);
        *count = count
            .checked_sub(1)
            .expect("the tally counts the unit that leaves");
        let count = self.count_mut(to);
        *count = count.saturating_add(1);
    }

    fn count_mut(&mut self, kind: StateKind) -> &mut u32 {
        match kind {
            StateKind::Free => &mut self.free,
            StateKind::Held => &mut self.held,
            StateKind::Sold => &mut self.sold,
            StateKind::Blocked => &mut self.blocked,
        }
    }
}

/// Every unit of an event as the ledger has it written down.
#[derive(Clone, Debug)]
pub struct Seating {
    chart: Arc<Chart>,
    units: Vec<Unit>,
    total: Tally,
    row_free: Vec<u32>,
    areas: Vec<Places>,
}

/// What is known of an area beyond its units.
#[derive(Clone, Copy, Debug)]
struct Places {
    tally: Tally,
    /// No place below it is free: where a search may begin.
    first_maybe_free: UnitNo,
}

impl Seating {
    /// A hall with every unit free.
    pub fn new(chart: Arc<Chart>) -> Self {
        let places = |area: &Area| Places {
            tally: Tally::all_free(area.capacity),
            first_maybe_free: area.first,
        };
        Self {
            units: vec![Unit::default(); UnitNo(chart.units()).index()],
            total: Tally::all_free(chart.units()),
            row_free: chart.rows().iter().map(|row| row.seats).collect(),
            areas: chart.areas().iter().map(places).collect(),
            chart,
        }
    }

    /// The chart whose units these are.
    pub fn chart(&self) -> &Arc<Chart> {
        &self.chart
    }

    /// One unit.
    ///
    /// # Panics
    /// When the event's chart has no such unit.
    pub fn unit(&self, unit: UnitNo) -> &Unit {
        self.units
            .get(unit.index())
            .expect("a unit number comes from the event's own chart")
    }

    /// All units, in unit order.
    pub fn units(&self) -> &[Unit] {
        &self.units
    }

    /// How many units are in which state.
    pub fn tally(&self) -> Tally {
        self.total
    }

    /// How many places of an area are in which state.
    pub fn area_tally(&self, area: AreaNo) -> Tally {
        self.areas
            .get(area.index())
            .map(|places| places.tally)
            .unwrap_or_default()
    }

    /// How many seats of a row are free, as written down.
    pub(crate) fn row_free(&self, row: RowNo) -> u32 {
        self.row_free.get(row.index()).copied().unwrap_or(0)
    }

    /// The highest fence among `units`.
    pub(crate) fn newest_fence(&self, units: impl Iterator<Item = UnitNo>) -> Fence {
        units
            .map(|unit| self.unit(unit).fence)
            .max()
            .unwrap_or_default()
    }

    /// The first `quantity` free places of an area, fewer if there are not so many.
    pub(crate) fn free_places(&self, area: AreaNo, quantity: u32) -> Vec<UnitNo> {
        let (Some(spec), Some(places)) = (self.chart.area(area), self.areas.get(area.index()))
        else {
            return Vec::new();
        };
        let wanted = quantity.min(places.tally.free);
        (places.first_maybe_free.0..spec.end().0)
            .map(UnitNo)
            .filter(|unit| self.unit(*unit).state == UnitState::Free)
            .take(UnitNo(wanted).index())
            .collect()
    }

    /// Makes one transition of one unit.
    pub(crate) fn step(&mut self, unit: UnitNo, step: Step) -> Transition {
        let cell = self
            .units
            .get_mut(unit.index())
            .expect("a unit number comes from the chart");
        let transition = cell.step(unit, step);
        self.count(unit, transition.from.kind(), transition.to.kind());
        transition
    }

    /// Puts a unit into the state in which the ledger stored it.
    pub fn restore(&mut self, unit: UnitNo, stored: Unit) {
        let cell = self
            .units
            .get_mut(unit.index())
            .expect("a unit number comes from the chart");
        let from = std::mem::replace(cell, stored).state.kind();
        self.count(unit, from, stored.state.kind());
    }

    fn count(&mut self, unit: UnitNo, from: StateKind, to: StateKind) {
        if from == to {
            return;
        }
        self.total.shift(from, to);
        if let Some((row, _)) = self.chart.row_of(unit) {
            let free = self
                .row_free
                .get_mut(row.index())
                .expect("one count for each row");
            match (from, to) {
                (StateKind::Free, _) => *free = free.saturating_sub(1),
                (_, StateKind::Free) => *free = free.saturating_add(1),
                (_, StateKind::Held | StateKind::Sold | StateKind::Blocked) => {}
            }
        } else if let Some(area) = self.chart.area_no_of(unit) {
            let places = self
                .areas
                .get_mut(area.index())
                .expect("one count for each area");
            places.tally.shift(from, to);
            if to == StateKind::Free {
                places.first_maybe_free = places.first_maybe_free.min(unit);
            } else if from == StateKind::Free && places.first_maybe_free == unit {
                places.first_maybe_free = UnitNo(unit.0.saturating_add(1));
            }
        }
    }

    /// Whether a new owner may take `unit` at `now`.
    pub fn is_available(&self, unit: UnitNo, now: Timestamp) -> bool {
        self.unit(unit).state.is_available(now)
    }

    /// The seating as it is at `now`, for choosing.
    pub(crate) fn at(&self, now: Timestamp) -> SeatingAt<'_> {
        SeatingAt { seating: self, now }
    }
}

/// A seating at one point of time.
#[derive(Clone, Copy)]
pub(crate) struct SeatingAt<'a> {
    seating: &'a Seating,
    now: Timestamp,
}

impl Availability for SeatingAt<'_> {
    fn is_available(&self, unit: UnitNo) -> bool {
        self.seating.is_available(unit, self.now)
    }
}
