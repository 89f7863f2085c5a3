//! Events: create, look, change, call off.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::http::{HeaderValue, StatusCode, header};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use soldonce_core::{
    Amount, Currency, EventChange, EventId, NewEvent, Policy, Rejection, Span, Text,
};
use soldonce_engine::chart::{self, ReadChart};
use soldonce_engine::reply::Rfc3339;
use soldonce_engine::{Caller, EngineError, EventSummary, Listing, RequestKey, fingerprint};
use tokio::task::spawn_blocking;
use utoipa::ToSchema;

use super::api_request::ApiRequest;
use super::event_body::EventBody;
use super::json::{self, Str, Time, Whole};
use super::operation::{AFTER, Keyed, LIMIT, Tag, delete, get, patch, post};
use super::policy::PolicyRequest;
use super::problem::{Handled, Problem};
use super::route::Admission::{Admin, Look};
use super::route::BodySize;
use super::table::Table;
use super::{answer, kinds};
use crate::limits::INLINE_PARSE_BYTES_MAX;

pub(super) fn routes(table: &mut Table) {
    table.tag(Tag::Events);
    table.add(
        get("/v1/events", Look)
            .id("list_events")
            .summary("Lists events by id; for shoppers only those with `listed` in their policy")
            .query(&[AFTER, LIMIT])
            .gives::<EventList<'_>>(200, "A page of events"),
        list,
    );
    table.add(
        post("/v1/events", Admin)
            .id("create_event")
            .summary("Creates an event; the same again is the same event")
            .takes::<EventRequest<'_>>(
                r#"{"id": "carmen-2026-12-05", "name": "Carmen", "currency": "EUR", "chart": {"format": "grid",
                    "rows": 10, "seats_per_row": 20, "category": "Standard"},
                    "prices": {"Standard": 4500}}"#,
            )
            .sized(BodySize::Chart)
            .keyed(Keyed::Naming)
            .refuses(&[&[&kinds::EVENT_EXISTS, &kinds::EVENT_DROPPED]])
            .gives::<EventBody<'_>>(201, "The new event")
            .gives::<EventBody<'_>>(200, "The event, which was there already"),
        create,
    );
    table.add(
        get("/v1/events/{event}", Look)
            .id("read_event")
            .summary("Reads an event")
            .gives::<EventBody<'_>>(200, "The event"),
        read_one,
    );
    table.add(
        patch("/v1/events/{event}", Admin)
            .id("update_event")
            .summary("Changes an event's name, its start and parts of its policy")
            .takes::<UpdateRequest<'_>>(r#"{"policy": {"units_per_hold_max": 4}}"#)
            .gives::<EventBody<'_>>(200, "The event"),
        update,
    );
    table.add(
        post("/v1/events/{event}/cancel", Admin)
            .id("cancel_event")
            .summary("Calls an event off and revokes its holds")
            .may_take::<CallOffRequest<'_>>(r#"{"reason": "The singer is ill"}"#)
            .gives::<EventBody<'_>>(200, "The event"),
        call_off,
    );
    table.add(
        delete("/v1/events/{event}", Admin)
            .id("drop_event")
            .summary(
                "Drops an event that is over, with all its holds, bookings and history. Only its name \
                 is kept, and is never another's",
            )
            .refuses(&[&[&kinds::EVENT_NOT_OVER, &kinds::EVENT_IN_USE]])
            .gives::<DroppedEvent<'_>>(200, "The event that is gone"),
        drop_one,
    );
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct EventRequest<'a> {
    #[serde(borrow)]
    #[schema(value_type = Option<String>)]
    id: Option<Str<'a>>,
    #[schema(value_type = String)]
    name: Str<'a>,
    #[schema(value_type = Option<String>, format = DateTime)]
    starts_at: Option<Time>,
    #[schema(value_type = String)]
    currency: Str<'a>,
    #[schema(value_type = Object)]
    chart: &'a RawValue,
    #[serde(default)]
    #[schema(value_type = BTreeMap<String, i64>)]
    prices: BTreeMap<String, Whole<i64>>,
    #[serde(default)]
    policy: PolicyRequest,
}

/// A body that was read: what the engine takes, and what the reader of the chart has to say.
struct NewEventBody {
    event: NewEvent,
    chart: Arc<[u8]>,
    notes: Vec<String>,
}

async fn create(mut req: ApiRequest) -> Handled {
    let body = req.json().await?;
    let call = req.call()?;
    let key = req.idempotency_key()?.map(|key| {
        let scope = RequestKey::new(call.caller.id(), &req.route.label(), key, &[], b"");
        u128::from_be_bytes(scope.scoped.0)
    });
    let drawn = drawn_id(key.unwrap_or_else(|| req.app.engine.ids().bits()));
    let wanted = if body.len() <= INLINE_PARSE_BYTES_MAX {
        read(&body, &drawn)?
    } else {
        let drawn = drawn.clone();
        let read = spawn_blocking(move || read(&body, &drawn)).await;
        read.map_err(|error| Problem::internal(&error))??
    };
    let is_drawn = wanted.event.id.as_str() == drawn;
    let app = &req.app;
    let created = app.engine.create_event(&call, wanted.event, wanted.chart);
    let (summary, is_new) = match created.await {
        Err(EngineError::Rejected(Rejection::EventExists)) if is_drawn => {
            return Err(Rejection::IdempotencyKeyReused.into());
        }
        created => created?,
    };
    let status = if is_new {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    let body = EventBody::new(&summary, app.engine.now(), &wanted.notes);
    let mut response = answer::object(app, status, &body);
    let place = format!("/v1/events/{}", summary.event.id);
    if let Ok(place) = HeaderValue::try_from(place) {
        response.headers_mut().insert(header::LOCATION, place);
    }
    Ok(response)
}

/// Builds the id of an event that is made without one. Its bits are drawn, or made of the request's
/// idempotency key, so that the same request again is the same event.
fn drawn_id(bits: u128) -> String {
    format!("evt_{}", soldonce_core::encode_128(bits))
}

fn read(body: &Bytes, drawn: &str) -> Result<NewEventBody, Problem> {
    let request: EventRequest<'_> = json::parse(body)?;
    let id = request.id.as_ref().map_or(drawn, |id| &*id.0);
    let policy = Policy::default().changed(&request.policy.0);
    let invalid = |error: soldonce_core::Invalid| Problem::invalid(error.field, error.reason);
    let chart = request.chart.get().as_bytes();
    let ReadChart { chart: read, notes } = chart::read(chart).map_err(invalid)?;
    let event = NewEvent {
        id: event_id(id).map_err(|error| Problem::invalid("id", error))?,
        name: Text::parse(&request.name.0).map_err(|error| Problem::invalid("name", error))?,
        starts_at: request.starts_at.map(|time| time.0),
        currency: currency(&request.currency)?,
        chart: Arc::new(read),
        prices: prices(request.prices)?,
        policy: policy.map_err(invalid)?,
        fingerprint: fingerprint(body),
    };
    Ok(NewEventBody {
        event,
        chart: chart.into(),
        notes,
    })
}

/// Parses the id of a new event. Refuses `.` and `..`, which programs take out of an address.
fn event_id(id: &str) -> Result<EventId, String> {
    if id == "." || id == ".." {
        return Err("`.` and `..` cannot be the name of anything in an address".to_owned());
    }
    EventId::parse(id).map_err(|error| error.to_string())
}

fn currency(code: &Str<'_>) -> Result<Currency, Problem> {
    let rule = "an ISO 4217 code of three letters, such as EUR";
    Currency::parse(&code.0).ok_or_else(|| Problem::invalid("currency", rule))
}

fn prices(given: BTreeMap<String, Whole<i64>>) -> Result<BTreeMap<String, Amount>, Problem> {
    let price = |(category, Whole(minor)): (String, Whole<i64>)| {
        let most = soldonce_core::limits::PRICE_MAX;
        let refusal = || {
            let reason = format!("{minor} is outside 0 ..= {most} minor units");
            Problem::invalid("prices", reason)
        };
        Ok((category, Amount::price(minor).ok_or_else(refusal)?))
    };
    given.into_iter().map(price).collect()
}

#[derive(Serialize, ToSchema)]
struct EventList<'a> {
    events: Vec<EventBody<'a>>,
    /// Goes into `after` for the next page.
    next: Option<&'a str>,
}

async fn list(req: ApiRequest) -> Handled {
    let query = req.query()?;
    let after = query.get("after").map(EventId::parse).transpose();
    let after = after.map_err(|error| Problem::invalid("after", error))?;
    let limit = query.limit()?;
    let app = &req.app;
    let which = match req.caller {
        Some(Caller::Key { .. }) => Listing::All,
        Some(Caller::Shopper(_)) | None => Listing::Listed,
    };
    let (found, more) = app.engine.events(which, after.as_ref(), limit).await;
    let now = app.engine.now();
    let end = found.last().filter(|_| more);
    let events = found.iter().map(|found| EventBody::new(found, now, &[]));
    let list = EventList {
        next: end.map(|last| last.event.id.as_str()),
        events: events.collect(),
    };
    Ok(answer::object(app, StatusCode::OK, &list))
}

async fn read_one(req: ApiRequest) -> Handled {
    req.query()?;
    let found = req.app.engine.event(&req.event_id()?).await?;
    Ok(described(&req, &found))
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct UpdateRequest<'a> {
    #[serde(borrow, default, deserialize_with = "json::given")]
    #[schema(value_type = Option<String>, nullable = false)]
    name: Option<Str<'a>>,
    #[serde(default, deserialize_with = "json::given")]
    #[schema(value_type = Option<String>, format = DateTime, nullable = false)]
    starts_at: Option<Time>,
    #[serde(default)]
    policy: PolicyRequest,
}

async fn update(mut req: ApiRequest) -> Handled {
    let event = req.event_id()?;
    let body = req.json().await?;
    let request: UpdateRequest<'_> = json::parse(&body)?;
    let change = EventChange {
        name: json::text("name", request.name.as_ref())?,
        starts_at: request.starts_at.map(|time| time.0),
        policy: request.policy.0,
    };
    let call = req.call()?;
    let found = req.app.engine.update_event(&call, &event, change).await?;
    Ok(described(&req, &found))
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct CallOffRequest<'a> {
    #[serde(borrow)]
    #[schema(value_type = Option<String>)]
    reason: Option<Str<'a>>,
}

async fn call_off(mut req: ApiRequest) -> Handled {
    let event = req.event_id()?;
    let body = req.json().await?;
    let request: CallOffRequest<'_> = json::parse(&body)?;
    let reason = json::reason(request.reason.as_ref())?;
    let call = req.call()?;
    let found = req.app.engine.cancel_event(&call, &event, reason).await?;
    Ok(described(&req, &found))
}

#[derive(Serialize, ToSchema)]
struct DroppedEvent<'a> {
    id: &'a str,
    #[schema(value_type = String, format = DateTime)]
    dropped_at: Rfc3339,
}

async fn drop_one(req: ApiRequest) -> Handled {
    req.query()?;
    let event = req.event_id()?;
    let origin = req.call()?.origin();
    let app = &req.app;
    let at = app.engine.drop_event(&event, Span::default(), origin);
    let body = DroppedEvent {
        dropped_at: Rfc3339(at.await?),
        id: event.as_str(),
    };
    Ok(answer::object(app, StatusCode::OK, &body))
}

fn described(req: &ApiRequest, found: &EventSummary) -> axum::response::Response {
    let app = &req.app;
    let body = EventBody::new(found, app.engine.now(), &[]);
    answer::object(app, StatusCode::OK, &body)
}
