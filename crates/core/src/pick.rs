//! Chooses units: the best free ones of a hall, and alternatives to refused ones. Rows stand in the
//! chart from best to worst; inside a row the middle is best. Never leaves a single seat that it
//! need not, so its own choice passes `no_orphan`.

use crate::adjacency::{Run, runs};
use crate::limits::{ALTERNATIVE_ROWS_MAX, ALTERNATIVES_MAX};
use crate::{Alternative, CategoryNo, Chart, RowNo, Together, UnitNo};

/// Which units could be taken now.
pub trait Availability {
    /// Whether a new owner may take `unit`.
    fn is_available(&self, unit: UnitNo) -> bool;
}

/// How many seats of which price class.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Want {
    pub(crate) quantity: u32,
    pub(crate) category: Option<CategoryNo>,
    pub(crate) together: Together,
}

/// Chosen units, in unit order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pick {
    pub(crate) units: Vec<UnitNo>,
    pub(crate) together: bool,
}

/// The best seats among `rows`, which are given from best to worst.
pub(crate) fn best_seats(
    chart: &Chart,
    hall: &impl Availability,
    rows: impl Iterator<Item = RowNo>,
    want: Want,
) -> Option<Pick> {
    let fits = |unit: UnitNo| {
        want.category
            .is_none_or(|category| chart.category_of(unit) == category)
            && hall.is_available(unit)
    };
    let mut apart: Vec<Run> = Vec::new();
    for row in rows {
        let found = runs(chart, row, fits);
        if let Some(run) = middle_window(chart, row, &found, want.quantity) {
            return Some(Pick {
                units: run.units().collect(),
                together: true,
            });
        }
        if want.together == Together::Preferred {
            apart.extend(found);
        }
    }
    gather(apart, want.quantity)
}

/// Seats of several runs, the longest first: as few torn groups as can be.
fn gather(mut apart: Vec<Run>, quantity: u32) -> Option<Pick> {
    apart.sort_by_key(|run| std::cmp::Reverse(run.seats));
    let mut units: Vec<UnitNo> = Vec::new();
    let wanted = UnitNo(quantity).index();
    for run in apart {
        let missing = wanted - units.len();
        if missing == 0 {
            break;
        }
        units.extend(run.units().take(missing));
    }
    units.sort_unstable();
    (units.len() == wanted).then_some(Pick {
        units,
        together: false,
    })
}

/// `quantity` neighbours nearest to the middle of the row.
fn middle_window(chart: &Chart, row: RowNo, found: &[Run], quantity: u32) -> Option<Run> {
    let row = chart.rows().get(row.index())?;
    let middle = row.first.0.saturating_mul(2).saturating_add(row.seats);
    nearest_window(found, quantity, middle).map(|(run, _)| run)
}

/// `quantity` neighbours whose own middle is nearest to `middle`, which is twice a unit number, and
/// how far that is. Windows that leave a single seat in a run count only where none else exists.
fn nearest_window(found: &[Run], quantity: u32, middle: u32) -> Option<(Run, u32)> {
    found
        .iter()
        .filter_map(|run| {
            let spare = run.seats.checked_sub(quantity)?;
            (0..=spare)
                .filter(|before| spare == 1 || (*before != 1 && spare - before != 1))
                .map(|before| {
                    let first = run.first.0.saturating_add(before);
                    let own = first.saturating_mul(2).saturating_add(quantity);
                    (
                        Run {
                            first: UnitNo(first),
                            seats: quantity,
                        },
                        own.abs_diff(middle),
                    )
                })
                .min_by_key(|(_, distance)| *distance)
        })
        .min_by_key(|(_, distance)| *distance)
}

/// As many neighbouring seats as were wanted, near the wanted ones and of the first one's price
/// class: at most one offer a row, nearest rows first. Bounded work, since refusals are the rush.
pub(crate) fn near(chart: &Chart, hall: &impl Availability, wanted: &[UnitNo]) -> Vec<Alternative> {
    let (Some(first), Some(last)) = (wanted.first(), wanted.last()) else {
        return Vec::new();
    };
    let Some((home, home_row)) = chart.row_of(*first) else {
        return Vec::new();
    };
    let Ok(quantity) = u32::try_from(wanted.len()) else {
        return Vec::new();
    };
    let category = chart.category_of(*first);
    let fits = |unit: UnitNo| chart.category_of(unit) == category && hall.is_available(unit);
    let from_row_start = (first.0 - home_row.first.0).saturating_mul(2);
    let width = last
        .0
        .min(home_row.first.0.saturating_add(home_row.seats))
        .saturating_sub(first.0);
    let mut offers = Vec::new();
    for row in rows_around(chart, home) {
        let Some(start) = chart.rows().get(row.index()).map(|row| row.first.0) else {
            continue;
        };
        let middle = start
            .saturating_mul(2)
            .saturating_add(from_row_start)
            .saturating_add(width + 1);
        if let Some((run, _)) = nearest_window(&runs(chart, row, fits), quantity, middle) {
            offers.push(Alternative {
                units: run.units().collect(),
                together: true,
            });
        }
        if offers.len() == ALTERNATIVES_MAX {
            break;
        }
    }
    offers
}

/// The row itself, then those before and behind it, nearest first.
fn rows_around(chart: &Chart, home: RowNo) -> impl Iterator<Item = RowNo> {
    let rows = u32::try_from(chart.rows().len()).unwrap_or(u32::MAX);
    let reach = u32::try_from(ALTERNATIVE_ROWS_MAX).unwrap_or(u32::MAX);
    let beside = (1..=reach).flat_map(move |away| {
        [home.0.checked_sub(away), home.0.checked_add(away)]
            .into_iter()
            .flatten()
    });
    std::iter::once(home.0)
        .chain(beside)
        .filter(move |row| *row < rows)
        .map(RowNo)
}
