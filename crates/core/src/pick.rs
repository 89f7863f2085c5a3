//! Chooses the best open seats of a hall: neighbours, the nearest to the chart's focal point, rows
//! that face it before rows at its sides. Without positions the rows of a chart rank in its order
//! and the middle of a row is best. Of the places in a row it takes one that leaves no single seat
//! if there is one, so its own choice passes `no_orphan`.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use crate::chart::{Distance, RankedRow};
use crate::number::index;
use crate::seating::{Availability, RowCount, Seating};
use crate::{CategoryNo, Chart, Row, UnitNo};

/// How many seats are wanted, and of which price class; `None` is any.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Want {
    pub(crate) quantity: u32,
    pub(crate) category: Option<CategoryNo>,
}

/// The seats that were found for a wish.
#[derive(Debug, Default)]
pub(crate) struct BestSeats {
    /// Neighbours.
    pub(crate) together: Option<Vec<UnitNo>>,
    /// Seats in as few groups as possible; searched only when there are no neighbours.
    pub(crate) apart: Option<Vec<UnitNo>>,
}

/// Returns the best seats of a hall, in unit order.
pub(crate) fn best_seats(seating: &Seating, want: Want) -> BestSeats {
    if want.quantity == 0 || seating.open_seats < want.quantity {
        return BestSeats::default();
    }
    match together(seating, want) {
        Some(window) => BestSeats {
            together: Some(window.units(want.quantity).collect()),
            apart: None,
        },
        None => BestSeats {
            together: None,
            apart: apart(seating, want),
        },
    }
}

/// The rest of a run after a window is taken from it, the better first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rest {
    /// No single seat.
    Clean,
    /// A single seat that no other window of the run would avoid.
    One,
    /// A single seat that another window would have avoided, if of another price class.
    Orphan,
}

impl Rest {
    fn of(before: u32, behind: u32) -> Self {
        match (before, behind) {
            (0, 1) | (1, 0) => Self::One,
            (1, _) | (_, 1) => Self::Orphan,
            (_, _) => Self::Clean,
        }
    }
}

/// Neighbouring seats that could be taken: `fits` of them are wanted ones, the run is as long as
/// neighbours are open.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    pub(crate) run: Range<UnitNo>,
    pub(crate) fits: Range<UnitNo>,
}

/// A place for the wanted seats; the least one is the best.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Window<D> {
    pub(crate) rest: Rest,
    /// By the caller's measure; if that is equal, twice the distance from the wanted middle.
    distance: (D, u32),
    first: UnitNo,
}

impl<D> Window<D> {
    pub(crate) fn units(&self, quantity: u32) -> impl Iterator<Item = UnitNo> + use<D> {
        (self.first.0..self.first.0.saturating_add(quantity)).map(UnitNo)
    }
}

impl Piece {
    fn seats(&self) -> u32 {
        self.fits.end.0.saturating_sub(self.fits.start.0)
    }

    /// Finds the best place for so many seats. `middle` is twice the number where their middle
    /// should be, and the places around it are compared by `distance` from their first seat.
    pub(crate) fn window<D: Ord>(
        &self,
        quantity: u32,
        middle: u32,
        distance: impl Fn(UnitNo) -> D,
    ) -> Option<Window<D>> {
        let spare = self.seats().checked_sub(quantity)?;
        let last = self.fits.start.0.saturating_add(spare);
        let ideal = middle.saturating_sub(quantity) / 2;
        let near = ideal.clamp(self.fits.start.0, last);
        // At most two places of a run leave an orphan, so one of the nearest does not.
        let from = near.saturating_sub(3).max(self.fits.start.0);
        (from..=near.saturating_add(3).min(last))
            .map(|first| {
                let own = first.saturating_mul(2).saturating_add(quantity);
                Window {
                    rest: self.rest(first, quantity),
                    distance: (distance(UnitNo(first)), own.abs_diff(middle)),
                    first: UnitNo(first),
                }
            })
            .min()
    }

    fn rest(&self, first: u32, quantity: u32) -> Rest {
        let before = first.saturating_sub(self.run.start.0);
        let end = first.saturating_add(quantity);
        Rest::of(before, self.run.end.0.saturating_sub(end))
    }
}

/// Returns the pieces of a row, from one end to the other.
pub(crate) fn pieces<'a>(
    chart: &'a Chart,
    hall: &'a impl Availability,
    within: Range<UnitNo>,
    category: Option<CategoryNo>,
) -> impl Iterator<Item = Piece> + 'a {
    let mut rest = within;
    let runs = std::iter::from_fn(move || {
        let run = hall.next_run(rest.clone())?;
        rest.start = run.end;
        Some(run)
    });
    runs.flat_map(move |run| {
        let mut rest = run.clone();
        std::iter::from_fn(move || {
            let fits = next_of_category(chart, rest.clone(), category)?;
            rest.start = fits.end;
            let run = run.clone();
            Some(Piece { run, fits })
        })
    })
}

/// Finds the first neighbouring seats of a price class; `None` is any.
fn next_of_category(
    chart: &Chart,
    within: Range<UnitNo>,
    category: Option<CategoryNo>,
) -> Option<Range<UnitNo>> {
    let Some(category) = category else {
        return Some(within).filter(|seats| !seats.is_empty());
    };
    let mut seats = (within.start.0..within.end.0).map(UnitNo);
    let first = seats.find(|seat| chart.category_of(*seat) == category)?;
    let end = seats.find(|seat| chart.category_of(*seat) != category);
    Some(first..end.unwrap_or(within.end))
}

/// Finds neighbours in the best place of the hall that has room for them.
fn together(seating: &Seating, want: Want) -> Option<Window<Distance>> {
    let has_room =
        |count: &RowCount| count.open >= want.quantity && count.pairs >= want.quantity - 1;
    let rank = |window: &Window<Distance>| (window.rest == Rest::Orphan, window.distance);
    let mut best: Option<Window<Distance>> = None;
    for (ranked, row, category) in rows(seating, want, has_room) {
        // From here on no row has seats that are as near.
        let is_settled = |found: &Window<Distance>| {
            found.rest < Rest::Orphan && found.distance.0 < ranked.nearest
        };
        if best.as_ref().is_some_and(is_settled) {
            break;
        }
        let chart = seating.chart();
        let distance = |first| chart.distance(ranked, first, want.quantity);
        let of_row = pieces(chart, &seating.open(), row.range(), category)
            .filter_map(|piece| piece.window(want.quantity, ranked.middle, distance))
            .min();
        let is_better =
            |new: &Window<Distance>| best.as_ref().is_none_or(|known| rank(new) < rank(known));
        if let Some(new) = of_row.filter(is_better) {
            best = Some(new);
        }
    }
    best
}

/// Returns rows that may have the wanted seats, the best first, and the price class to look for
/// seat by seat: `None` where all seats of the row are of the wanted one.
fn rows(
    seating: &Seating,
    want: Want,
    has_room: impl Fn(&RowCount) -> bool,
) -> impl Iterator<Item = (&RankedRow, &Row, Option<CategoryNo>)> {
    let chart = seating.chart();
    chart.ranked_rows.iter().filter_map(move |ranked| {
        if !has_room(&seating.row_count(ranked.row)?) {
            return None;
        }
        let row = chart.rows().get(ranked.row.index())?;
        match (want.category, chart.row_category(ranked.row)) {
            (None, _) => Some((ranked, row, None)),
            (Some(wanted), Some(of_row)) if wanted == of_row => Some((ranked, row, None)),
            (Some(_), Some(_)) => None,
            (Some(wanted), None) => Some((ranked, row, Some(wanted))),
        }
    })
}

/// Finds seats of several pieces, the longest first: as few torn groups as possible.
fn apart(seating: &Seating, want: Want) -> Option<Vec<UnitNo>> {
    let hall = seating.open();
    let mut by_size: BTreeMap<u32, VecDeque<Piece>> = BTreeMap::new();
    for (_, row, category) in rows(seating, want, |count| count.open > 0) {
        for piece in pieces(seating.chart(), &hall, row.range(), category) {
            let size = piece.seats();
            let known = by_size.entry(size).or_default();
            // No more pieces than can be used: a torn hall of a million seats needs no long list.
            if known.len() <= index(want.quantity / size) {
                known.push_back(piece);
            }
        }
    }
    let mut units: Vec<UnitNo> = Vec::new();
    let mut missing = want.quantity;
    while missing > 0 {
        // A piece of just the missing size rather than a part of a longer one.
        let exact = by_size.contains_key(&missing).then_some(missing);
        let size = exact.or_else(|| by_size.keys().next_back().copied())?;
        let mut of_size = by_size.remove(&size)?;
        let piece = of_size.pop_front()?;
        if !of_size.is_empty() {
            by_size.insert(size, of_size);
        }
        units.extend(piece.end_part(missing));
        missing = missing.saturating_sub(size);
    }
    units.sort_unstable();
    Some(units)
}

impl Piece {
    /// Takes at most so many seats, from the end where they leave the run whole.
    fn end_part(&self, quantity: u32) -> impl Iterator<Item = UnitNo> {
        let taken = quantity.min(self.seats());
        let spare = self.seats() - taken;
        let at_end = self.fits.end == self.run.end && self.fits.start != self.run.start;
        let skipped = if at_end { spare } else { 0 };
        let first = self.fits.start.0.saturating_add(skipped);
        (first..first.saturating_add(taken)).map(UnitNo)
    }
}
