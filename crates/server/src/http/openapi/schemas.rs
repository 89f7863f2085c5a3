//! The shapes of bodies. Those of requests are the types that requests are read into; those of
//! answers that the engine writes are declared here, and tests compare every answer with them.
#![expect(dead_code, reason = "only their shape is read")]
#![expect(
    clippy::struct_field_names,
    reason = "fields are named as the API names them"
)]

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use super::super::{
    bookings, events, holds, keys, payments, policy, sessions, staff, units, webhook_endpoints,
};
use super::sold::{
    BlockedUnits, Booking, BookingList, History, Hold, HoldList, Payments, Problem, UnblockedUnits,
};
use super::{rules, webhooks};

/// Every schema by name.
pub(super) fn all() -> Map<String, Value> {
    let mut found: Vec<(String, RefOr<Schema>)> = Vec::new();
    add::<events::EventRequest<'_>>(&mut found);
    add::<events::UpdateRequest>(&mut found);
    add::<events::CallOffRequest<'_>>(&mut found);
    add::<holds::HoldRequest<'_>>(&mut found);
    add::<holds::ChangeRequest<'_>>(&mut found);
    add::<holds::ExtendRequest>(&mut found);
    add::<holds::RevokeRequest<'_>>(&mut found);
    add::<units::OwnUnitRequest<'_>>(&mut found);
    add::<bookings::ConfirmRequest<'_>>(&mut found);
    add::<payments::CheckoutRequest<'_>>(&mut found);
    add::<payments::AbandonRequest>(&mut found);
    add::<payments::RefundRequest>(&mut found);
    add::<payments::ExchangeRequest<'_>>(&mut found);
    add::<bookings::SaleRequest<'_>>(&mut found);
    add::<bookings::CancelRequest<'_>>(&mut found);
    add::<staff::BlockRequest<'_>>(&mut found);
    add::<sessions::SessionRequest>(&mut found);
    add::<keys::KeyRequest<'_>>(&mut found);
    add::<policy::PolicyRequest>(&mut found);
    add::<Event>(&mut found);
    add::<EventList>(&mut found);
    add::<Chart>(&mut found);
    add::<Seats>(&mut found);
    add::<FeedEntry>(&mut found);
    add::<Hold>(&mut found);
    add::<HoldList>(&mut found);
    add::<Booking>(&mut found);
    add::<BookingList>(&mut found);
    add::<Payments>(&mut found);
    add::<BlockedUnits>(&mut found);
    add::<UnblockedUnits>(&mut found);
    add::<History>(&mut found);
    add::<Session>(&mut found);
    add::<Key>(&mut found);
    add::<NewKey>(&mut found);
    add::<KeyList>(&mut found);
    add::<webhook_endpoints::WebhookEndpointRequest<'_>>(&mut found);
    add::<webhooks::WebhookEndpoint>(&mut found);
    add::<webhooks::NewWebhookEndpoint>(&mut found);
    add::<webhooks::WebhookEndpointList>(&mut found);
    add::<webhooks::WebhookDelivery>(&mut found);
    add::<webhooks::WebhookDeliveryList>(&mut found);
    add::<webhooks::HoldMessage>(&mut found);
    add::<webhooks::BookingMessage>(&mut found);
    add::<Problem>(&mut found);
    add::<ServerStatus>(&mut found);
    add::<Received>(&mut found);
    let mut all: Map<String, Value> = found
        .into_iter()
        .filter_map(|(name, schema)| Some((name, serde_json::to_value(schema).ok()?)))
        .collect();
    // Its shape is another standard's.
    all.insert("Document".to_owned(), json!({"type": "object"}));
    rules::add(&mut all);
    all
}

fn add<T: ToSchema + PartialSchema>(found: &mut Vec<(String, RefOr<Schema>)>) {
    T::schemas(found);
    found.push((T::name().into_owned(), T::schema()));
}

/// How the server is.
#[derive(ToSchema)]
struct ServerStatus {
    status: StatusWord,
    /// Left out while the ledger's clock is not ahead of the machine's.
    #[schema(nullable = false)]
    clock: Option<ClockWord>,
    /// How far the ledger's clock is ahead of the machine's, where it is.
    #[schema(nullable = false)]
    clock_ahead_ms: Option<u64>,
}

#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
enum StatusWord {
    Ok,
    Ready,
}

#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
enum ClockWord {
    Ahead,
    FarAhead,
}

/// That a notice is taken.
#[derive(ToSchema)]
struct Received {
    received: bool,
}

/// One performance, sale or drop.
#[derive(ToSchema)]
struct Event {
    id: String,
    name: String,
    #[schema(format = DateTime)]
    starts_at: Option<String>,
    /// ISO 4217.
    currency: String,
    /// Of each category, in minor units.
    prices: BTreeMap<String, i64>,
    #[schema(inline = false)]
    policy: policy::PolicySchema,
    state: EventState,
    /// Why it was called off.
    #[schema(nullable = false)]
    reason: Option<String>,
    #[schema(format = DateTime)]
    created_at: String,
    /// Units in all, area places included.
    total: u32,
    free: u32,
    /// Held for the moment; they may be free again.
    held: u32,
    on_sale: bool,
    /// The last commit number.
    seq: u64,
    /// What the reader of the chart had to change or leave out.
    #[schema(nullable = false)]
    notes: Option<Vec<String>>,
    /// Left out inside lists.
    #[schema(format = DateTime, nullable = false)]
    server_time: Option<String>,
}

#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
enum EventState {
    Open,
    Cancelled,
}

#[derive(ToSchema)]
struct EventList {
    events: Vec<Event>,
    /// Goes into `after` for the next page.
    next: Option<String>,
    #[schema(format = DateTime)]
    server_time: String,
}

/// A seat plan in the native format.
#[derive(ToSchema)]
struct Chart {
    format: String,
    name: String,
    /// The point that `best` seats surround, if the plan names one.
    #[schema(nullable = false)]
    focus: Option<Point>,
    zones: Vec<Zone>,
    areas: Vec<Area>,
}

#[derive(ToSchema)]
struct Point {
    x: f64,
    y: f64,
}

#[derive(ToSchema)]
struct Zone {
    zone: String,
    name: String,
    rows: Vec<Row>,
}

#[derive(ToSchema)]
struct Row {
    row: String,
    seats: Vec<Seat>,
}

#[derive(ToSchema)]
struct Seat {
    /// Its id.
    seat: String,
    /// For people.
    label: String,
    category: String,
    #[schema(nullable = false)]
    x: Option<f64>,
    #[schema(nullable = false)]
    y: Option<f64>,
}

#[derive(ToSchema)]
struct Area {
    /// Its id.
    area: String,
    /// For people.
    label: String,
    capacity: u32,
    category: String,
    #[schema(nullable = false)]
    x: Option<f64>,
    #[schema(nullable = false)]
    y: Option<f64>,
    #[schema(nullable = false)]
    width: Option<f64>,
    #[schema(nullable = false)]
    height: Option<f64>,
}

/// The seats at one commit number. Those in no list are free.
#[derive(ToSchema)]
struct Seats {
    event: String,
    seq: u64,
    /// Units in all, area places included.
    total: u32,
    free: u32,
    held: Vec<String>,
    sold: Vec<String>,
    blocked: Vec<String>,
    areas: Vec<AreaCounts>,
    #[schema(format = DateTime)]
    server_time: String,
}

#[derive(ToSchema)]
struct AreaCounts {
    area: String,
    capacity: u32,
    free: u32,
    held: u32,
    sold: u32,
    blocked: u32,
}

/// One commit as the public sees it.
#[derive(ToSchema)]
struct FeedEntry {
    /// Dense: a missing number is a missing entry.
    seq: u64,
    #[schema(format = DateTime)]
    at: String,
    changes: Vec<FeedChange>,
}

/// A seat with its state, or an area with its counts.
#[derive(ToSchema)]
struct FeedChange {
    #[schema(nullable = false)]
    seat: Option<String>,
    #[schema(nullable = false)]
    state: Option<UnitState>,
    #[schema(nullable = false)]
    area: Option<String>,
    #[schema(nullable = false)]
    free: Option<u32>,
    #[schema(nullable = false)]
    held: Option<u32>,
    #[schema(nullable = false)]
    sold: Option<u32>,
    #[schema(nullable = false)]
    blocked: Option<u32>,
}

#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
pub(super) enum UnitState {
    Free,
    Held,
    Sold,
    Blocked,
}

/// A shopper's session.
#[derive(ToSchema)]
struct Session {
    /// The token, for clients that keep no cookies.
    session: String,
    holder: String,
    #[schema(format = DateTime)]
    expires_at: String,
    #[schema(format = DateTime)]
    server_time: String,
}

#[derive(ToSchema)]
struct Key {
    id: String,
    name: String,
    scopes: Vec<String>,
    #[schema(format = DateTime)]
    created_at: String,
    #[schema(format = DateTime)]
    revoked_at: Option<String>,
    /// Left out inside lists.
    #[schema(format = DateTime, nullable = false)]
    server_time: Option<String>,
}

#[derive(ToSchema)]
struct NewKey {
    id: String,
    name: String,
    scopes: Vec<String>,
    #[schema(format = DateTime)]
    created_at: String,
    #[schema(format = DateTime)]
    revoked_at: Option<String>,
    /// Its text, told here and never again.
    key: String,
    #[schema(format = DateTime)]
    server_time: String,
}

#[derive(ToSchema)]
struct KeyList {
    keys: Vec<Key>,
    next: Option<String>,
    #[schema(format = DateTime)]
    server_time: String,
}
