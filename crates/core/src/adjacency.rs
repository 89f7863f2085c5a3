//! The rule `no_orphan`: a choice must not leave a single free seat where it need not (model.md 3).
//! Decides over the result of a command, for one hold at a time.

use crate::pick::Availability;
use crate::{Chart, RowNo, UnitNo};

/// The seats that `taken` would leave single although it need not. Empty: the choice is fine.
///
/// `hall` tells which seats could be taken before the choice, those of `taken` included; `taken` is
/// sorted. In a run of L neighbouring available seats from which k are taken, a single seat cannot
/// be avoided exactly when L - k is 1; every other single seat could have been.
pub(crate) fn orphans(chart: &Chart, hall: &impl Availability, taken: &[UnitNo]) -> Vec<UnitNo> {
    let mut orphans = Vec::new();
    let mut last_row = None;
    for unit in taken {
        let Some((number, _)) = chart.row_of(*unit) else {
            continue;
        };
        if last_row != Some(number) {
            last_row = Some(number);
            orphans.extend(orphans_of_row(chart, number, hall, taken));
        }
    }
    orphans
}

fn orphans_of_row(
    chart: &Chart,
    row: RowNo,
    hall: &impl Availability,
    taken: &[UnitNo],
) -> Vec<UnitNo> {
    let is_taken = |unit: UnitNo| taken.binary_search(&unit).is_ok();
    let mut orphans = Vec::new();
    for run in runs(chart, row, |unit| is_taken(unit) || hall.is_available(unit)) {
        let left: Vec<UnitNo> = run.units().filter(|unit| !is_taken(*unit)).collect();
        let untouched = left.len() == run.len();
        let unavoidable = left.len() == 1;
        if untouched || unavoidable {
            continue;
        }
        let is_left = |number: Option<u32>| {
            number.is_some_and(|number| left.binary_search(&UnitNo(number)).is_ok())
        };
        orphans.extend(
            left.iter()
                .filter(|unit| !is_left(unit.0.checked_sub(1)) && !is_left(unit.0.checked_add(1))),
        );
    }
    orphans
}

/// Neighbouring seats: from the first, so many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) first: UnitNo,
    pub(crate) seats: u32,
}

impl Run {
    pub(crate) fn units(self) -> impl Iterator<Item = UnitNo> {
        (self.first.0..self.first.0.saturating_add(self.seats)).map(UnitNo)
    }

    fn len(self) -> usize {
        UnitNo(self.seats).index()
    }
}

/// The longest runs of neighbours of a row that pass `fits`, from one end to the other.
pub(crate) fn runs(chart: &Chart, row: RowNo, fits: impl Fn(UnitNo) -> bool) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let Some(row) = chart.rows().get(row.index()) else {
        return runs;
    };
    for unit in row.units().filter(|unit| fits(*unit)) {
        match runs.last_mut() {
            Some(run) if run.first.0.saturating_add(run.seats) == unit.0 => run.seats += 1,
            Some(_) | None => runs.push(Run {
                first: unit,
                seats: 1,
            }),
        }
    }
    runs
}
