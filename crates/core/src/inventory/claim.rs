//! Finds the units that a new owner gets, or why not: the guards of FREE > HELD and FREE > SOLD
//! (model.md 3). Takes nothing.

use super::Inventory;
use super::indexes::OpenEvent;
use super::work::Work;
use crate::adjacency::{neighbours, orphans};
use crate::near::alternatives_near;
use crate::number::{count, index};
use crate::pick::{Want, best_seats};
use crate::seating::Availability;
use crate::unit::Owner;
use crate::{
    Adjacency, Alternative, AreaNo, Conflict, ConflictState, Hold, HoldId, Holder, Rejection,
    Selection, Timestamp, Together, Unavailable, UnitNo, UnitState, Wish,
};

/// Units found for a wish, in unit order.
pub(super) struct Choice {
    pub(super) units: Vec<UnitNo>,
    /// For units that were chosen here: whether they are neighbours.
    pub(super) together: Option<bool>,
}

impl Inventory {
    /// Returns the units of a wish, all open to a new owner at `now`.
    ///
    /// # Errors
    /// `UnitUnavailable` with every conflict. The adjacency of named seats is for the caller to check; seats that are
    /// picked here leave a single one only where their row has no better place.
    pub(super) fn claim(
        &self,
        book: &OpenEvent,
        now: Timestamp,
        wish: &Wish,
        holder: &Holder,
    ) -> Result<Choice, Rejection> {
        match wish {
            Wish::Named(selection) => {
                let units = self.claim_named(book, now, selection, Some(holder))?;
                let together = None;
                Ok(Choice { units, together })
            }
            Wish::Best {
                quantity,
                category,
                together,
            } => {
                let (quantity, category) = (*quantity, *category);
                let want = Want { quantity, category };
                claim_best(book, want, *together, self.places_from())
            }
        }
    }

    /// Returns the units of a selection, all open to a new owner at `now`.
    pub(super) fn claim_named(
        &self,
        book: &OpenEvent,
        now: Timestamp,
        selection: &Selection,
        holder: Option<&Holder>,
    ) -> Result<Vec<UnitNo>, Rejection> {
        let mut conflicts: Vec<Conflict> = selection
            .seats()
            .iter()
            .filter_map(|unit| self.conflict(book, now, *unit, holder))
            .collect();
        let mut units = selection.seats().to_vec();
        for (area, quantity) in selection.areas() {
            let places = book
                .seating
                .open_places(*area, *quantity, self.places_from());
            let free = count(places.len());
            if free < *quantity {
                conflicts.push(Conflict::Area { area: *area, free });
            }
            units.extend(places);
        }
        if !conflicts.is_empty() {
            // A full area has no alternatives near it.
            let is_seat = |conflict: &Conflict| matches!(conflict, Conflict::Seat { .. });
            let seats = if conflicts.iter().any(is_seat) {
                selection.seats()
            } else {
                &[]
            };
            let alternatives = alternatives_near(&book.event.chart, &book.seating.open(), seats);
            return Err(unavailable(book, conflicts, alternatives));
        }
        units.sort_unstable();
        Ok(units)
    }

    /// Returns the conflict of taking one seat, if there is one.
    fn conflict(
        &self,
        book: &OpenEvent,
        now: Timestamp,
        unit: UnitNo,
        holder: Option<&Holder>,
    ) -> Option<Conflict> {
        let (state, retry_after) = match book.seating.unit(unit).state {
            state if state.is_available(now) => return None,
            UnitState::Held { hold, until } => {
                let owner = self.holds.get(&hold).map(|hold| &hold.holder);
                let is_yours = holder.is_some() && owner == holder;
                let state = if is_yours {
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
}

/// Builds the refusal with every conflict and the alternatives, as of the event's last commit.
pub(super) fn unavailable(
    book: &OpenEvent,
    conflicts: Vec<Conflict>,
    alternatives: Vec<Alternative>,
) -> Rejection {
    Rejection::UnitUnavailable(Box::new(Unavailable {
        conflicts,
        alternatives,
        seq: book.seq,
    }))
}

fn claim_best(
    book: &OpenEvent,
    want: Want,
    together: Together,
    places_from: u32,
) -> Result<Choice, Rejection> {
    let seats = best_seats(&book.seating, want);
    let (apart, offer) = match together {
        Together::Preferred => (seats.apart, None),
        Together::Required => (None, seats.apart),
    };
    let places = || best_places(book, want, places_from);
    let found = None
        .or_else(|| seats.together.map(|units| (units, true)))
        .or_else(|| apart.map(|units| (units, false)))
        .or_else(|| places().map(|units| (units, true)));
    if let Some((units, together)) = found {
        let together = Some(together);
        return Ok(Choice { units, together });
    }
    let offer = offer.map(|units| Alternative {
        units,
        together: false,
    });
    Err(unavailable(book, Vec::new(), offer.into_iter().collect()))
}

/// Finds places in the first area that has enough of the wanted price class.
fn best_places(book: &OpenEvent, want: Want, from: u32) -> Option<Vec<UnitNo>> {
    let wanted = index(want.quantity);
    (0..)
        .map(AreaNo)
        .zip(book.event.chart.areas())
        .filter(|(_, area)| {
            want.category
                .is_none_or(|category| category == area.category)
        })
        .filter(|(number, _)| book.seating.open_count(*number) >= want.quantity)
        .map(|(number, _)| book.seating.open_places(number, want.quantity, from))
        .find(|places| places.len() == wanted)
}

/// Checks the event's adjacency rule. `units` are all that the hold `own` will have, sorted; what it has now counts as
/// free. Seats that it left single before, as the engine's pick of a price class may, are not refused again.
///
/// # Errors
/// `AdjacencyRefused` with the seats that would be left single.
pub(super) fn require_adjacency(
    work: &mut Work<'_>,
    book: &OpenEvent,
    units: &[UnitNo],
    own: Option<&Hold>,
) -> Result<(), Rejection> {
    match book.event.policy.adjacency {
        Adjacency::None => return Ok(()),
        Adjacency::NoOrphan => rest_on_neighbours(work, book, units),
    }
    let hall = WithoutHold {
        book,
        own: own.map(|own| own.id),
    };
    let mut left = orphans(&book.event.chart, &hall, units);
    if let Some(own) = own.filter(|_| !left.is_empty()) {
        let before: Vec<UnitNo> = own.unit_nos().collect();
        rest_on_neighbours(work, book, &before);
        let before = orphans(&book.event.chart, &hall, &before);
        left.retain(|seat| !before.contains(seat));
    }
    if left.is_empty() {
        Ok(())
    } else {
        Err(Rejection::AdjacencyRefused(left))
    }
}

/// Notes in the basis the seats that an adjacency rule of the event reads for a choice.
pub(super) fn rest_on_neighbours(work: &mut Work<'_>, book: &OpenEvent, units: &[UnitNo]) {
    match book.event.policy.adjacency {
        Adjacency::None => {}
        Adjacency::NoOrphan => work
            .basis
            .units
            .extend(neighbours(&book.event.chart, units)),
    }
}

/// The hall as if one hold did not exist.
struct WithoutHold<'a> {
    book: &'a OpenEvent,
    own: Option<HoldId>,
}

impl Availability for WithoutHold<'_> {
    fn is_available(&self, unit: UnitNo) -> bool {
        let seating = &self.book.seating;
        let owner = Owner::from(seating.unit(unit).state);
        self.own.is_some_and(|own| owner == Owner::Hold(own)) || seating.open().is_available(unit)
    }
}
