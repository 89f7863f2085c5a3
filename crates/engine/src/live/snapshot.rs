//! The seats of an event at one commit number, published as a whole. A change copies one chunk, and
//! only while a reader still has the old snapshot (copy on write).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use soldonce_core::{
    AreaNo, Chart, Commit, Event, Inventory, Seating, Seq, StateKind, Tally, UnitNo,
};

use super::feed::{Digest, FeedChange, Frame};
use crate::limits::SNAPSHOT_CHUNK_SEATS;

/// The public state of every unit at one commit number.
#[derive(Clone)]
pub struct SeatSnapshot {
    /// The number of its last commit.
    pub seq: Seq,
    /// The digest of that commit.
    pub digest: Digest,
    /// How many units are in each state.
    pub total: Tally,
    /// The same for each area, in chart order.
    pub areas: Vec<Tally>,
    chart: Arc<Chart>,
    chunks: Vec<Arc<[StateKind]>>,
}

impl SeatSnapshot {
    /// Builds the snapshot of an event from a ledger's inventory.
    pub(super) fn of(inventory: &Inventory, event: &Event, digest: Digest) -> Self {
        let (seq, chart) = (inventory.seq(event.no), Arc::clone(&event.chart));
        let seating = inventory.seating(event.no);
        let seats = UnitNo(chart.seats()).index();
        let units = seating.map(Seating::units).unwrap_or_default();
        let kinds = units.iter().take(seats).map(|unit| unit.state.kind());
        let kinds: Vec<StateKind> = kinds.collect();
        let areas = (0..).zip(chart.areas()).map(|(no, _)| AreaNo(no));
        let tally = |area| seating.map_or_else(Tally::default, |of| of.area_tally(area));
        Self {
            seq,
            digest,
            total: seating.map(Seating::tally).unwrap_or_default(),
            areas: areas.map(tally).collect(),
            chunks: kinds.chunks(SNAPSHOT_CHUNK_SEATS).map(Arc::from).collect(),
            chart,
        }
    }

    /// Returns the chart whose seats these are.
    pub fn chart(&self) -> &Chart {
        &self.chart
    }

    /// Lists every seat with its state, in chart order.
    pub fn seats(&self) -> impl Iterator<Item = (UnitNo, StateKind)> + '_ {
        (0..)
            .map(UnitNo)
            .zip(self.chunks.iter().flat_map(|chunk| chunk.iter().copied()))
    }

    /// Returns the state of one seat; none for places of an area.
    pub fn seat(&self, unit: UnitNo) -> Option<StateKind> {
        let at = unit.index();
        let chunk = self.chunks.get(at / SNAPSHOT_CHUNK_SEATS)?;
        chunk.get(at % SNAPSHOT_CHUNK_SEATS).copied()
    }

    /// Applies one commit and returns what changed for the public: of each seat its last state, of
    /// each area its counts.
    pub(super) fn advance(&mut self, commit: &Commit, digest: Digest) -> Frame {
        let (mut seats, mut areas) = (BTreeMap::new(), BTreeSet::new());
        for step in &commit.transitions {
            let (from, to) = (step.from.kind(), step.to.kind());
            if from == to {
                continue;
            }
            self.total.shift(from, to);
            if let Some(area) = self.chart.area_no_of(step.unit) {
                self.shift_area(area, from, to);
                areas.insert(area);
                continue;
            }
            self.set(step.unit, to);
            seats.insert(step.unit, to);
        }
        (self.seq, self.digest) = (commit.seq, digest);
        let seat = |(unit, kind)| FeedChange::Seat(unit, kind);
        let area = |area| FeedChange::Area(area, self.area(area));
        let areas = areas.into_iter().map(area);
        let changes = seats.into_iter().map(seat).chain(areas).collect();
        Frame {
            from: commit.seq,
            seq: commit.seq,
            digest,
            at: commit.at,
            changes,
        }
    }

    /// Returns the counts of one area.
    pub fn area(&self, area: AreaNo) -> Tally {
        self.areas.get(area.index()).copied().unwrap_or_default()
    }

    fn shift_area(&mut self, area: AreaNo, from: StateKind, to: StateKind) {
        if let Some(tally) = self.areas.get_mut(area.index()) {
            tally.shift(from, to);
        }
    }

    fn set(&mut self, unit: UnitNo, kind: StateKind) {
        let at = unit.index();
        let Some(chunk) = self.chunks.get_mut(at / SNAPSHOT_CHUNK_SEATS) else {
            return;
        };
        if let Some(seat) = Arc::make_mut(chunk).get_mut(at % SNAPSHOT_CHUNK_SEATS) {
            *seat = kind;
        }
    }
}
