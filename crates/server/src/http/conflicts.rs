//! Why units cannot be had, and what could be had instead, as JSON. Written straight from the
//! refusal: on a hot seat this is most of the work of an answer.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use soldonce_core::{Alternative, Chart, Conflict, Unavailable, UnitName, UnitNo};

/// The members that a `unit_unavailable` adds to its problem.
#[derive(Serialize)]
pub(super) struct Unavailability<'a> {
    conflicts: Conflicts<'a>,
    alternatives: Alternatives<'a>,
    seq: u64,
}

impl<'a> Unavailability<'a> {
    pub(super) fn new(chart: &'a Chart, refusal: &'a Unavailable) -> Self {
        Self {
            conflicts: Conflicts(chart, &refusal.conflicts),
            alternatives: Alternatives(chart, &refusal.alternatives),
            seq: refusal.seq.0,
        }
    }
}

struct Conflicts<'a>(&'a Chart, &'a [Conflict]);

impl Serialize for Conflicts<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.1.iter().map(|conflict| OneConflict(self.0, conflict)))
    }
}

struct OneConflict<'a>(&'a Chart, &'a Conflict);

impl Serialize for OneConflict<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut object = to.serialize_map(None)?;
        match self.1 {
            Conflict::Seat {
                unit,
                state,
                retry_after,
            } => {
                add_name(&mut object, self.0, *unit)?;
                object.serialize_entry("state", state.as_str())?;
                if let Some(span) = retry_after {
                    object.serialize_entry("retry_after_ms", &span.ms())?;
                }
            }
            Conflict::Area { area, free } => {
                let id = self.0.area(*area).map_or("", |area| area.id.as_str());
                object.serialize_entry("area", id)?;
                object.serialize_entry("state", "full")?;
                object.serialize_entry("free", free)?;
            }
        }
        object.end()
    }
}

struct Alternatives<'a>(&'a Chart, &'a [Alternative]);

impl Serialize for Alternatives<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.1.iter().map(|choice| OneAlternative {
            units: Units {
                chart: self.0,
                units: &choice.units,
            },
            together: choice.together,
        }))
    }
}

#[derive(Serialize)]
struct OneAlternative<'a> {
    units: Units<'a>,
    together: bool,
}

/// Units by their public names.
pub(super) struct Units<'a> {
    pub(super) chart: &'a Chart,
    pub(super) units: &'a [UnitNo],
}

impl Serialize for Units<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.units.iter().map(|unit| OneUnit(self.chart, *unit)))
    }
}

struct OneUnit<'a>(&'a Chart, UnitNo);

impl Serialize for OneUnit<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut object = to.serialize_map(None)?;
        add_name(&mut object, self.0, self.1)?;
        object.end()
    }
}

/// `"seat":"A-1"`, or `"area":"floor","place":"floor.17"`.
fn add_name<M: SerializeMap>(object: &mut M, chart: &Chart, unit: UnitNo) -> Result<(), M::Error> {
    match chart.unit_name(unit) {
        UnitName::Seat(seat) => object.serialize_entry("seat", seat),
        name @ UnitName::Place { area, .. } => {
            object.serialize_entry("area", area.id.as_str())?;
            object.serialize_entry("place", &name.to_string())
        }
    }
}
