//! Units as requests name them. A client's idea of a price or a state never counts.

use std::sync::Arc;

use serde::Deserialize;
use serde::de::IgnoredAny;
use soldonce_core::{Event, Rejection};
use soldonce_engine::{EngineError, NamedUnits};

use utoipa::ToSchema;

use super::json::{Str, Whole};
use super::problem::Problem;

/// A seat, or so many places of an area.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = r#"a unit, such as {"seat": "A-1"}"#)]
pub(super) struct UnitRequest<'a> {
    #[serde(borrow)]
    #[schema(value_type = Option<String>)]
    seat: Option<Str<'a>>,
    #[schema(value_type = Option<String>)]
    area: Option<Str<'a>>,
    #[schema(value_type = Option<u32>)]
    quantity: Option<Whole<u32>>,
}

/// A unit that one has: a seat, so many places of an area, or an entry of a hold or a booking as it
/// was answered.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = r#"a unit, such as {"seat": "A-1"}"#)]
pub(super) struct OwnUnitRequest<'a> {
    #[serde(borrow)]
    #[schema(value_type = Option<String>)]
    seat: Option<Str<'a>>,
    #[schema(value_type = Option<String>)]
    area: Option<Str<'a>>,
    #[schema(value_type = Option<u32>)]
    quantity: Option<Whole<u32>>,
    #[schema(value_type = Option<String>)]
    place: Option<Str<'a>>,
    #[serde(rename = "price")]
    #[schema(value_type = Option<Object>)]
    _price: Option<IgnoredAny>,
    #[serde(rename = "version")]
    #[schema(value_type = Option<Object>)]
    _version: Option<IgnoredAny>,
    #[serde(rename = "state")]
    #[schema(value_type = Option<Object>)]
    _state: Option<IgnoredAny>,
}

/// Parses units that are wanted; `field` names their list in refusals.
pub(super) fn wanted<'a>(
    field: &str,
    requests: Vec<UnitRequest<'a>>,
) -> Result<NamedUnits<'a>, Problem> {
    let mut named = NamedUnits::default();
    for (at, request) in requests.into_iter().enumerate() {
        match (request.seat, request.area, request.quantity) {
            (Some(Str(seat)), None, None) => named.seats.push(seat),
            (None, Some(Str(area)), Some(Whole(quantity @ 1..))) => {
                named.areas.push((area, quantity));
            }
            _ => return Err(unclear(field, at)),
        }
    }
    Ok(named)
}

/// Parses units that one has; `field` names their list in refusals.
pub(super) fn owned<'a>(
    field: &str,
    requests: Vec<OwnUnitRequest<'a>>,
) -> Result<NamedUnits<'a>, Problem> {
    let mut named = NamedUnits::default();
    for (at, request) in requests.into_iter().enumerate() {
        match (request.seat, request.area, request.quantity, request.place) {
            (Some(Str(seat)), None, None, None) => named.seats.push(seat),
            (None, Some(Str(area)), Some(Whole(quantity @ 1..)), None) => {
                named.areas.push((area, quantity));
            }
            (None, area, None, Some(Str(place))) if is_of(area.as_ref(), &place) => {
                named.places.push(place);
            }
            _ => return Err(unclear(field, at)),
        }
    }
    Ok(named)
}

/// Makes a refusal of units that are to be given up, with its units named by their `event`, which is looked up
/// only if there are some. That its chart knows a unit and `whose` thing does not have it is said so.
pub(super) async fn refused_owned(
    error: &EngineError,
    event: impl Future<Output = Option<Arc<Event>>>,
    whose: &str,
) -> Problem {
    let event = match error {
        EngineError::Rejected(rejection) if rejection.names_units() => event.await,
        EngineError::Rejected(_) | EngineError::Read(_) | EngineError::Provider(_) => None,
    };
    let chart = event.as_ref().map(|event| &*event.chart);
    let problem = Problem::of(error, chart);
    let (EngineError::Rejected(Rejection::UnknownUnit(names)), Some(chart)) = (error, chart) else {
        return problem;
    };
    let is_known =
        |name: &String| chart.find_unit(name).is_some() || chart.find_area(name).is_some();
    if names.iter().all(is_known) {
        problem.saying(format!(
            "not in this {whose}, or not as many: {}",
            names.join(", ")
        ))
    } else {
        problem
    }
}

/// Tells whether a place may be one of the area named with it.
fn is_of(area: Option<&Str<'_>>, place: &str) -> bool {
    let Some(Str(area)) = area else { return true };
    let number = place
        .strip_prefix(&**area)
        .and_then(|rest| rest.strip_prefix('.'));
    number.is_some()
}

fn unclear(field: &str, at: usize) -> Problem {
    let rule = "name either a `seat`, or an `area` and a `quantity` of at least 1";
    Problem::invalid(&format!("{field}[{at}]"), rule)
}
