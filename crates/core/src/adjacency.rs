//! The rule `no_orphan`: a choice must not leave a single free seat where it need not (model.md 3).
//! Decides over the result of a command, for one hold at a time, from the seats next to the chosen
//! ones alone: a row of a million seats costs no more than one of ten.
//!
//! In a run of L neighbouring available seats from which k are taken, a single seat cannot be
//! avoided exactly when L - k is 1; every other single seat could have been.

use crate::number::index;
use crate::seating::Availability;
use crate::{Chart, Row, UnitNo};

/// Two neighbouring free seats are no orphans, however many more there are.
const REACH: u32 = 2;

/// Returns the seats that `taken` would leave single although it need not; empty if it passes.
///
/// `hall` says which seats are available before the choice; `taken` is sorted and distinct.
pub(crate) fn orphans(chart: &Chart, hall: &impl Availability, taken: &[UnitNo]) -> Vec<UnitNo> {
    let row_of = |unit: &UnitNo| chart.row_of(*unit).map(|(number, _)| number);
    let rows = taken.chunk_by(|a, b| row_of(a) == row_of(b));
    let orphans = rows.filter_map(|seats| {
        let (_, row) = chart.row_of(*seats.first()?)?;
        Some(orphans_of_row(row, hall, seats))
    });
    orphans.flatten().collect()
}

/// Returns the seats that [`orphans`] may look at, the chosen ones among them.
pub(crate) fn neighbours(chart: &Chart, taken: &[UnitNo]) -> impl Iterator<Item = UnitNo> {
    taken.iter().flat_map(|unit| {
        let row = chart.row_of(*unit).map(|(_, row)| row.range());
        let row = row.unwrap_or(*unit..*unit);
        let from = unit.0.saturating_sub(REACH).max(row.start.0);
        let to = unit.0.saturating_add(REACH + 1).min(row.end.0);
        (from..to).map(UnitNo)
    })
}

/// The seats that a choice leaves of one run, as far as they must be known.
#[derive(Default)]
struct Remainder {
    seats: usize,
    single: Vec<UnitNo>,
}

impl Remainder {
    /// Counts the free seats next to a chosen one.
    fn count(&mut self, free: &[UnitNo]) {
        self.seats += free.len();
        if let [single] = free {
            self.single.push(*single);
        }
    }

    /// Ends the run; returns its single seats, unless one is all that it has.
    fn end(&mut self) -> Vec<UnitNo> {
        let left = std::mem::take(self);
        if left.seats == 1 {
            Vec::new()
        } else {
            left.single
        }
    }
}

fn orphans_of_row(row: &Row, hall: &impl Availability, taken: &[UnitNo]) -> Vec<UnitNo> {
    let free = |seats: &mut dyn Iterator<Item = u32>| -> Vec<UnitNo> {
        let free = seats
            .map(UnitNo)
            .take_while(|seat| hall.is_available(*seat));
        free.take(index(REACH)).collect()
    };
    let mut orphans = Vec::new();
    let mut left = Remainder::default();
    let mut gap_start = row.first.0;
    for seat in taken {
        let gap = gap_start..seat.0;
        let mut same_run = false;
        if gap_start != row.first.0 {
            let behind = free(&mut gap.clone());
            left.count(&behind);
            // A longer gap leaves both of its sides two seats, or is interrupted: the sides need
            // not know of each other.
            same_run = behind.len() == gap.len();
        }
        if !same_run {
            orphans.extend(left.end());
            left.count(&free(&mut gap.rev()));
        }
        gap_start = seat.0 + 1;
    }
    left.count(&free(&mut (gap_start..row.end().0)));
    orphans.extend(left.end());
    orphans
}
