//! Alternatives to refused seats: as many neighbours near the wanted ones. Bounded work in a hall of any
//! size, since refusals are the rush.

use std::ops::Range;

use crate::limits::{
    ALTERNATIVE_REACH_MAX, ALTERNATIVE_ROWS_MAX, ALTERNATIVE_SEATS_MAX, ALTERNATIVES_MAX,
    UNITS_PER_HOLD_MAX,
};
use crate::number::count;
use crate::pick::{Piece, Rest, pieces};
use crate::seating::Availability;
use crate::{Alternative, Chart, Row, RowNo, UnitNo};

/// Finds as many neighbouring seats as were wanted, near the wanted ones and of the first one's
/// price class: at most one offer a row, nearest rows first. What is offered passes `no_orphan`.
///
/// `wanted` is sorted. Also for shields, which refuse in front of the ledger.
pub fn alternatives_near(
    chart: &Chart,
    hall: &impl Availability,
    wanted: &[UnitNo],
) -> Vec<Alternative> {
    let (Some(first), Some(last)) = (wanted.first(), wanted.last()) else {
        return Vec::new();
    };
    let quantity = count(wanted.len());
    let Some((home, home_row)) = chart.row_of(*first) else {
        return Vec::new();
    };
    if quantity > UNITS_PER_HOLD_MAX {
        return Vec::new();
    }
    // The middle of the wanted seats: twice its number, from the start of their row.
    let end = last.0.saturating_add(1).min(home_row.end().0);
    let middle = first.0.saturating_add(end) - home_row.first.0.saturating_mul(2);
    let category = Some(chart.category_of(*first));
    // A row of one price class is skipped, or searched without the class of each seat.
    let fits = |(number, _): &(RowNo, &Row)| {
        let of_row = chart.row_category(*number);
        of_row.is_none() || of_row == category
    };
    let offer = |(number, row): (RowNo, &Row)| {
        let category = category.filter(|_| chart.row_category(number).is_none());
        let middle = row.first.0.saturating_mul(2).saturating_add(middle);
        let units = pieces(chart, hall, searched(row, middle), category)
            .map(|piece| widened(piece, row, hall))
            .filter_map(|piece| piece.window(quantity, middle, |_| ()))
            .filter(|window| window.rest < Rest::Orphan)
            .min()?
            .units(quantity)
            .collect();
        Some(Alternative {
            units,
            together: true,
        })
    };
    rows_around(chart, home)
        .filter(fits)
        .take(ALTERNATIVE_ROWS_MAX)
        .filter_map(offer)
        .take(ALTERNATIVES_MAX)
        .collect()
}

/// Returns the part of a row that is near `middle`, which is twice a seat's number.
fn searched(row: &Row, middle: u32) -> Range<UnitNo> {
    let from = (middle / 2).saturating_sub(ALTERNATIVE_SEATS_MAX);
    let to = (middle / 2).saturating_add(ALTERNATIVE_SEATS_MAX);
    let (first, end) = (row.first.0, row.end().0);
    UnitNo(from.clamp(first, end))..UnitNo(to.clamp(first, end))
}

/// Widens the piece by seats beyond the searched part of the row, as far as they must be known: two
/// free seats are no orphans.
fn widened(mut piece: Piece, row: &Row, hall: &impl Availability) -> Piece {
    for _ in 0..2 {
        let Range { start, end } = piece.run;
        if start > row.first && hall.is_available(UnitNo(start.0 - 1)) {
            piece.run.start = UnitNo(start.0 - 1);
        }
        if end < row.end() && hall.is_available(end) {
            piece.run.end = UnitNo(end.0 + 1);
        }
    }
    piece
}

/// Returns the row itself, then those before and behind it, nearest first.
fn rows_around(chart: &Chart, home: RowNo) -> impl Iterator<Item = (RowNo, &Row)> {
    let neighbours = (1..=ALTERNATIVE_REACH_MAX).flat_map(move |away| {
        let both = [home.0.checked_sub(away), home.0.checked_add(away)];
        both.into_iter().flatten()
    });
    let numbers = std::iter::once(home.0).chain(neighbours).map(RowNo);
    numbers.filter_map(|number| Some((number, chart.rows().get(number.index())?)))
}
