//! Which units a new owner gets, or why not: the guards of FREE > HELD and FREE > SOLD (model.md 3).
//! Looks only; takes nothing.

use std::collections::BTreeSet;

use super::{EventBook, Inventory};
use crate::adjacency::orphans;
use crate::pick::{Availability, Want, best_seats, near};
use crate::{
    Adjacency, Alternative, AreaNo, Budget, CategoryNo, Chart, Conflict, ConflictState, Hold,
    HoldId, Holder, Planted, Rejection, RowNo, Selection, Timestamp, Together, Unavailable, UnitNo,
    UnitState, Wish,
};

/// As many neighbouring seats near refused ones, as [`Inventory`] itself would offer them.
///
/// `wanted` is sorted. For shields, which refuse before the ledger is asked.
pub fn alternatives_near(
    chart: &Chart,
    hall: &impl Availability,
    wanted: &[UnitNo],
) -> Vec<Alternative> {
    near(chart, hall, wanted)
}

/// Units found for a wish, in unit order.
pub(super) struct Claim {
    pub(super) units: Vec<UnitNo>,
    pub(super) together: Option<bool>,
}

/// What a holder is about to have besides what he has.
pub(super) struct Demand<'a> {
    pub(super) holder: &'a Holder,
    /// A hold of his that will be replaced and does not count.
    pub(super) besides: Option<HoldId>,
    pub(super) units: u32,
}

impl Inventory {
    /// The units of a wish, all available at `now`.
    ///
    /// # Errors
    /// `UnitUnavailable` with every conflict.
    pub(super) fn claim(
        &self,
        book: &EventBook,
        now: Timestamp,
        wish: &Wish,
        holder: &Holder,
    ) -> Result<Claim, Rejection> {
        match wish {
            Wish::Named(selection) => {
                let units = self.claim_named(book, now, selection, holder)?;
                Ok(Claim {
                    units,
                    together: None,
                })
            }
            Wish::Best {
                quantity,
                category,
                together,
            } => {
                let want = Want {
                    quantity: *quantity,
                    category: *category,
                    together: *together,
                };
                self.claim_best(book, now, want)
            }
        }
    }

    pub(super) fn claim_named(
        &self,
        book: &EventBook,
        now: Timestamp,
        selection: &Selection,
        holder: &Holder,
    ) -> Result<Vec<UnitNo>, Rejection> {
        let mut conflicts: Vec<Conflict> = selection
            .seats()
            .iter()
            .filter_map(|unit| self.conflict(book, now, *unit, holder))
            .collect();
        let mut units = selection.seats().to_vec();
        if self.has(Planted::TakesHeld) {
            conflicts.retain(|conflict| {
                !matches!(
                    conflict,
                    Conflict::Seat {
                        state: ConflictState::Held,
                        ..
                    }
                )
            });
        }
        for (area, quantity) in selection.areas() {
            let places = self.places(book, now, *area, *quantity);
            match u32::try_from(places.len()) {
                Ok(found) if found == *quantity => units.extend(places),
                Ok(free) => conflicts.push(Conflict::Area { area: *area, free }),
                Err(_) => {}
            }
        }
        if conflicts.is_empty() {
            units.sort_unstable();
            return Ok(units);
        }
        let alternatives = near(&book.event.chart, &book.seating.at(now), selection.seats());
        let refusal = Unavailable {
            conflicts,
            alternatives,
            seq: book.seq,
        };
        Err(Rejection::UnitUnavailable(Box::new(refusal)))
    }

    /// What stands in the way of taking one seat.
    pub(super) fn conflict(
        &self,
        book: &EventBook,
        now: Timestamp,
        unit: UnitNo,
        holder: &Holder,
    ) -> Option<Conflict> {
        let (state, retry_after) = match book.seating.unit(unit).state {
            state if state.is_available(now) => return None,
            UnitState::Held { hold, until } => {
                let yours = self
                    .holds
                    .get(&hold)
                    .is_some_and(|hold| hold.holder == *holder);
                let state = if yours {
                    ConflictState::Yours
                } else {
                    ConflictState::Held
                };
                (state, Some(now.until(until)))
            }
            UnitState::Sold(_) => (ConflictState::Sold, None),
            UnitState::Blocked | UnitState::Free => (ConflictState::Blocked, None),
        };
        Some(Conflict::Seat {
            unit,
            state,
            retry_after,
        })
    }

    /// The first `quantity` available places of an area: those written down as free, then those of
    /// holds that are over, oldest first. Fewer if there are not so many.
    fn places(&self, book: &EventBook, now: Timestamp, area: AreaNo, quantity: u32) -> Vec<UnitNo> {
        let wanted = UnitNo(quantity).index();
        let mut places = book.seating.free_places(area, quantity);
        if places.len() < wanted {
            let overdue = self.overdue_units(book, now);
            let in_area = |unit: &UnitNo| book.event.chart.area_no_of(*unit) == Some(area);
            places.extend(overdue.filter(in_area).take(wanted - places.len()));
        }
        places
    }

    /// Units of holds that are over but not written down so, oldest first.
    fn overdue_units<'a>(
        &'a self,
        book: &'a EventBook,
        now: Timestamp,
    ) -> impl Iterator<Item = UnitNo> + 'a {
        book.expiry
            .iter()
            .take_while(move |(until, _)| *until <= now)
            .filter_map(|(_, hold)| self.holds.get(hold))
            .flat_map(|hold| hold.units.iter().map(|held| held.unit))
    }

    fn claim_best(&self, book: &EventBook, now: Timestamp, want: Want) -> Result<Claim, Rejection> {
        let chart = &book.event.chart;
        let overdue: BTreeSet<RowNo> = self
            .overdue_units(book, now)
            .filter_map(|unit| chart.row_of(unit).map(|(row, _)| row))
            .collect();
        let rows = (0..)
            .zip(chart.rows())
            .map(|(number, _)| RowNo(number))
            .filter(|row| book.seating.row_free(*row) > 0 || overdue.contains(row));
        let hall = book.seating.at(now);
        if let Some(pick) = best_seats(chart, &hall, rows, want) {
            return Ok(Claim {
                units: pick.units,
                together: Some(pick.together),
            });
        }
        if let Some(units) = self.best_places(book, now, want.quantity, want.category) {
            return Ok(Claim {
                units,
                together: Some(true),
            });
        }
        let apart = Want {
            together: Together::Preferred,
            ..want
        };
        let all_rows = (0..).zip(chart.rows()).map(|(number, _)| RowNo(number));
        let offer = (want.together == Together::Required)
            .then(|| best_seats(chart, &hall, all_rows, apart))
            .flatten()
            .map(|pick| Alternative {
                units: pick.units,
                together: pick.together,
            });
        let alternatives = offer.into_iter().collect();
        let refusal = Unavailable {
            conflicts: Vec::new(),
            alternatives,
            seq: book.seq,
        };
        Err(Rejection::UnitUnavailable(Box::new(refusal)))
    }

    /// Places of the first area that has enough of the wanted price class.
    fn best_places(
        &self,
        book: &EventBook,
        now: Timestamp,
        quantity: u32,
        category: Option<CategoryNo>,
    ) -> Option<Vec<UnitNo>> {
        let wanted = UnitNo(quantity).index();
        (0..)
            .zip(book.event.chart.areas())
            .filter(|(_, area)| category.is_none_or(|category| category == area.category))
            .map(|(number, _)| self.places(book, now, AreaNo(number), quantity))
            .find(|places| places.len() == wanted)
    }

    /// Passes when the holder's budgets allow so many more units.
    ///
    /// # Errors
    /// `BudgetExceeded` with the limit and what counts against it.
    pub(super) fn require_budget(
        &self,
        book: &EventBook,
        now: Timestamp,
        demand: &Demand<'_>,
    ) -> Result<(), Rejection> {
        if self.has(Planted::BudgetIgnored) {
            return Ok(());
        }
        let Some(holder) = book.holders.get(demand.holder) else {
            return within(
                Budget::Held,
                book.event.policy.units_per_holder_max,
                0,
                demand.units,
            )
            .and_then(|()| self.require_bought(book, 0, 0, demand.units));
        };
        let live = |id: &&HoldId| Some(**id) != demand.besides;
        let held = holder
            .holds
            .iter()
            .filter(live)
            .filter_map(|id| self.holds.get(id))
            .filter(|hold| hold.is_live(now))
            .fold(0_u32, |sum, hold| sum.saturating_add(count_units(hold)));
        within(
            Budget::Held,
            book.event.policy.units_per_holder_max,
            held,
            demand.units,
        )?;
        self.require_bought(book, holder.bought, held, demand.units)
    }

    /// What is held may all be bought, so it counts against what may be bought.
    #[expect(clippy::unused_self, reason = "reads as one of the guards")]
    fn require_bought(
        &self,
        book: &EventBook,
        bought: u32,
        held: u32,
        units: u32,
    ) -> Result<(), Rejection> {
        match book.event.policy.units_bought_per_holder_max {
            Some(limit) => within(Budget::Bought, limit, bought.saturating_add(held), units),
            None => Ok(()),
        }
    }
}

fn within(budget: Budget, limit: u32, used: u32, units: u32) -> Result<(), Rejection> {
    if used.saturating_add(units) <= limit {
        return Ok(());
    }
    Err(Rejection::BudgetExceeded {
        budget,
        limit,
        used,
    })
}

/// How many units a hold has.
pub(super) fn count_units(hold: &Hold) -> u32 {
    u32::try_from(hold.units.len()).unwrap_or(u32::MAX)
}

/// Passes when the event's adjacency rule holds over the result: `units` is everything the hold
/// will have, sorted; the units it has now count as available before.
///
/// # Errors
/// `AdjacencyRefused` with the seats that would be left single.
pub(super) fn require_adjacency(
    book: &EventBook,
    now: Timestamp,
    units: &[UnitNo],
    own: Option<HoldId>,
) -> Result<(), Rejection> {
    match book.event.policy.adjacency {
        Adjacency::None => return Ok(()),
        Adjacency::NoOrphan => {}
    }
    let hall = WithoutHold { book, now, own };
    let orphans = orphans(&book.event.chart, &hall, units);
    if orphans.is_empty() {
        Ok(())
    } else {
        Err(Rejection::AdjacencyRefused(orphans))
    }
}

/// The hall as if one hold had never been.
struct WithoutHold<'a> {
    book: &'a EventBook,
    now: Timestamp,
    own: Option<HoldId>,
}

impl Availability for WithoutHold<'_> {
    fn is_available(&self, unit: UnitNo) -> bool {
        match self.book.seating.unit(unit).state {
            UnitState::Held { hold, .. } if Some(hold) == self.own => true,
            state => state.is_available(self.now),
        }
    }
}
