//! Resolves the names of a request against a chart.

use std::collections::BTreeMap;

use super::{AreaNo, Chart};
use crate::number::count;
use crate::{Rejection, UnitNo};

/// The units that a request names, resolved against the event's chart: seats sorted and distinct,
/// and how many places of which areas.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Selection {
    pub(crate) seats: Vec<UnitNo>,
    pub(crate) areas: BTreeMap<AreaNo, u32>,
}

impl Selection {
    fn add_area(&mut self, area: AreaNo, quantity: u32) {
        if quantity > 0 {
            let sum = self.areas.entry(area).or_default();
            *sum = sum.saturating_add(quantity);
        }
    }

    /// Returns the quantities alone.
    #[must_use]
    pub fn without_seats(self) -> Self {
        Self {
            seats: Vec::new(),
            ..self
        }
    }

    /// Returns the named seats, sorted and distinct.
    pub fn seats(&self) -> &[UnitNo] {
        &self.seats
    }

    /// Returns how many places of which areas, each at least one.
    pub fn areas(&self) -> &BTreeMap<AreaNo, u32> {
        &self.areas
    }

    pub fn count(&self) -> u32 {
        let seats = count(self.seats.len());
        let places = self.areas.values();
        places.fold(seats, |sum, quantity| sum.saturating_add(*quantity))
    }

    pub fn is_empty(&self) -> bool {
        self.seats.is_empty() && self.areas.is_empty()
    }
}

impl Chart {
    /// Resolves the names of a request to unit numbers: seats sorted and distinct, areas summed.
    ///
    /// # Errors
    /// `UnknownUnit` with every name that the chart does not have.
    pub fn select<'a>(
        &self,
        seats: impl IntoIterator<Item = &'a str>,
        areas: impl IntoIterator<Item = (&'a str, u32)>,
    ) -> Result<Selection, Rejection> {
        let mut selection = Selection::default();
        let mut unknown = Vec::new();
        for id in seats {
            match self.find_seat(id) {
                Some(unit) => selection.seats.push(unit),
                None => unknown.push(id.to_owned()),
            }
        }
        for (id, quantity) in areas {
            match self.find_area(id) {
                Some(area) => selection.add_area(area, quantity),
                None => unknown.push(id.to_owned()),
            }
        }
        if !unknown.is_empty() {
            return Err(Rejection::UnknownUnit(unknown));
        }
        selection.seats.sort_unstable();
        selection.seats.dedup();
        Ok(selection)
    }
}
