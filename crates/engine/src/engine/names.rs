//! Units as a request names them, and their resolution against an event's chart.

use std::borrow::Cow;
use std::collections::BTreeSet;

use soldonce_core::{Chart, Event, Invalid, Rejection, Selection, Together, UnitNo, Wish};

/// The units that a request asks for.
#[derive(Clone, Debug)]
pub enum WishAsk<'a> {
    Named(NamedUnits<'a>),
    /// The best free ones.
    Best {
        quantity: u32,
        /// Their price class; `None` is any.
        category: Option<&'a str>,
        /// Whether they must be neighbours.
        together: Together,
    },
}

/// Seats by id, places by area and quantity, single places by their public id.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamedUnits<'a> {
    pub seats: Vec<Cow<'a, str>>,
    /// Areas, and how many places of each.
    pub areas: Vec<(Cow<'a, str>, u32)>,
    /// Places by public id, such as `floor.17`; only for units that the caller has.
    pub places: Vec<Cow<'a, str>>,
}

impl NamedUnits<'_> {
    /// Tells whether no unit is named.
    pub fn is_empty(&self) -> bool {
        self.seats.is_empty() && self.areas.is_empty() && self.places.is_empty()
    }

    /// Returns how many units are named. One that is named twice counts once.
    pub fn count(&self) -> u32 {
        let distinct = |names: &[Cow<'_, str>]| match names {
            [] | [_] => names.len(),
            _ => names.iter().collect::<BTreeSet<_>>().len(),
        };
        let single = distinct(&self.seats).saturating_add(distinct(&self.places));
        let single = u32::try_from(single).unwrap_or(u32::MAX);
        let places = self.areas.iter().map(|(_, quantity)| *quantity);
        places.fold(single, u32::saturating_add)
    }

    /// Resolves units that are asked for: seats and quantities.
    ///
    /// # Errors
    /// `UnknownUnit`; places cannot be chosen one by one.
    pub(super) fn wanted(&self, chart: &Chart) -> Result<Selection, Rejection> {
        if let Some(place) = self.places.first() {
            return Err(Rejection::UnknownUnit(vec![place.to_string()]));
        }
        self.select(chart)
    }

    /// Resolves units that the caller has: single units, sorted and distinct, and quantities.
    ///
    /// # Errors
    /// `UnknownUnit` with every name the chart does not have.
    pub(super) fn owned(&self, chart: &Chart) -> Result<(Vec<UnitNo>, Selection), Rejection> {
        let selection = self.select(chart)?;
        let mut units = selection.seats().to_vec();
        for place in &self.places {
            let known = chart.find_unit(place);
            let known = known.filter(|unit| chart.area_of(*unit).is_some());
            units.push(known.ok_or_else(|| Rejection::UnknownUnit(vec![place.to_string()]))?);
        }
        units.sort_unstable();
        units.dedup();
        Ok((units, selection.without_seats()))
    }

    fn select(&self, chart: &Chart) -> Result<Selection, Rejection> {
        let areas = self.areas.iter();
        let areas = areas.map(|(area, quantity)| (area.as_ref(), *quantity));
        chart.select(self.seats.iter().map(AsRef::as_ref), areas)
    }
}

/// Resolves what a hold of an event is asked for.
pub(super) fn resolve_wish(event: &Event, ask: &WishAsk<'_>) -> Result<Wish, Rejection> {
    match ask {
        WishAsk::Named(units) => Ok(Wish::Named(units.wanted(&event.chart)?)),
        WishAsk::Best {
            quantity,
            category,
            together,
        } => {
            let category = match category {
                None => None,
                Some(name) => Some(event.chart.category(name).ok_or_else(|| {
                    let known = event.chart.categories().join("`, `");
                    let text = format!("no category `{name}`; there are `{known}`");
                    Rejection::Invalid(Invalid::new("best.category", text))
                })?),
            };
            Ok(Wish::Best {
                quantity: *quantity,
                category,
                together: *together,
            })
        }
    }
}
