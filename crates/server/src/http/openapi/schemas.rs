//! The shapes of bodies. Those of requests are the types that requests are read into; those of
//! answers that the engine writes are declared here, and tests compare every answer with them.
#![expect(dead_code, reason = "only their shape is read")]

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use super::super::{bookings, events, holds, keys, policy, sessions, staff, units};

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
    add::<Blocked>(&mut found);
    add::<Unblocked>(&mut found);
    add::<History>(&mut found);
    add::<Session>(&mut found);
    add::<Key>(&mut found);
    add::<NewKey>(&mut found);
    add::<KeyList>(&mut found);
    add::<Problem>(&mut found);
    let mut all: Map<String, Value> = found
        .into_iter()
        .filter_map(|(name, schema)| Some((name, serde_json::to_value(schema).ok()?)))
        .collect();
    all.insert("Status".to_owned(), json!({"type": "object"}));
    all
}

fn add<T: ToSchema + PartialSchema>(found: &mut Vec<(String, RefOr<Schema>)>) {
    T::schemas(found);
    found.push((T::name().into_owned(), T::schema()));
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
    policy: Policy,
    state: EventState,
    /// Why it was called off.
    #[schema(nullable = false)]
    reason: Option<String>,
    #[schema(format = DateTime)]
    created_at: String,
    /// Units in all, area places included.
    total: u32,
    free: u32,
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

/// The rules of an event.
#[derive(ToSchema)]
struct Policy {
    /// How long a hold lives when the caller does not say.
    hold_ttl_ms: u64,
    /// How long it may live with all extensions.
    hold_max_ms: u64,
    units_per_hold_max: u32,
    /// Units that one holder may hold live at once.
    units_per_holder_max: u32,
    units_bought_per_holder_max: Option<u32>,
    payment_window_ms: u64,
    retry_window_ms: u64,
    late_payment: policy::LateWord,
    on_payment_failure: policy::FailureWord,
    adjacency: policy::AdjacencyWord,
    #[schema(format = DateTime)]
    sale_opens_at: Option<String>,
    #[schema(format = DateTime)]
    sale_closes_at: Option<String>,
    #[schema(format = DateTime)]
    cancel_until: Option<String>,
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
    zones: Vec<Zone>,
    areas: Vec<Area>,
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
enum UnitState {
    Free,
    Held,
    Sold,
    Blocked,
}

/// A unit: a seat, or a place of an area.
#[derive(ToSchema)]
struct Unit {
    #[schema(nullable = false)]
    seat: Option<String>,
    #[schema(nullable = false)]
    area: Option<String>,
    /// The public id of a place, such as `floor.17`.
    #[schema(nullable = false)]
    place: Option<String>,
}

/// A unit of a hold.
#[derive(ToSchema)]
struct HeldUnit {
    #[schema(nullable = false)]
    seat: Option<String>,
    #[schema(nullable = false)]
    area: Option<String>,
    #[schema(nullable = false)]
    place: Option<String>,
    /// In minor units; frozen with the hold.
    price: i64,
    /// Rises with every transition of the unit.
    version: u64,
}

/// An exclusive, timed claim.
#[derive(ToSchema)]
struct Hold {
    id: String,
    /// Proves ownership. Only in answers to the request that made the hold.
    #[schema(nullable = false)]
    secret: Option<String>,
    event: String,
    holder: String,
    state: HoldState,
    /// Rises with every change of owner of a unit. It orders, it does not authorise.
    fence: u64,
    units: Vec<HeldUnit>,
    /// In minor units.
    total: i64,
    currency: String,
    #[schema(format = DateTime)]
    created_at: String,
    #[schema(format = DateTime)]
    expires_at: String,
    #[schema(format = DateTime)]
    max_expires_at: String,
    booking: Option<String>,
    /// Whether the units that were picked are neighbours.
    #[schema(nullable = false)]
    together: Option<bool>,
    /// Why staff ended it.
    #[schema(nullable = false)]
    reason: Option<String>,
    /// The commit number of the command.
    #[schema(nullable = false)]
    seq: Option<u64>,
    #[schema(format = DateTime)]
    server_time: String,
}

#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
enum HoldState {
    Active,
    Pinned,
    Consumed,
    Released,
    Expired,
    Revoked,
}

#[derive(ToSchema)]
struct HoldList {
    holds: Vec<Hold>,
    next: Option<String>,
    #[schema(format = DateTime)]
    server_time: String,
}

/// A unit of a booking.
#[derive(ToSchema)]
struct Line {
    #[schema(nullable = false)]
    seat: Option<String>,
    #[schema(nullable = false)]
    area: Option<String>,
    #[schema(nullable = false)]
    place: Option<String>,
    price: i64,
    version: u64,
    state: String,
}

/// A sale.
#[derive(ToSchema)]
struct Booking {
    id: String,
    event: String,
    holder: String,
    /// None for sales of the box office.
    hold: Option<String>,
    state: String,
    fence: u64,
    lines: Vec<Line>,
    /// In minor units.
    total: i64,
    currency: String,
    reference: Option<String>,
    #[schema(value_type = Option<Object>)]
    payment: Option<()>,
    #[schema(format = DateTime)]
    created_at: String,
    #[schema(format = DateTime)]
    confirmed_at: Option<String>,
    /// The commit number of the command.
    #[schema(nullable = false)]
    seq: Option<u64>,
    #[schema(format = DateTime)]
    server_time: String,
}

#[derive(ToSchema)]
struct BookingList {
    bookings: Vec<Booking>,
    next: Option<String>,
    #[schema(format = DateTime)]
    server_time: String,
}

#[derive(ToSchema)]
struct Blocked {
    blocked: Vec<Unit>,
    #[schema(nullable = false)]
    seq: Option<u64>,
    #[schema(format = DateTime)]
    server_time: String,
}

#[derive(ToSchema)]
struct Unblocked {
    unblocked: Vec<Unit>,
    #[schema(nullable = false)]
    seq: Option<u64>,
    #[schema(format = DateTime)]
    server_time: String,
}

/// What happened to a unit.
#[derive(ToSchema)]
struct History {
    unit: String,
    transitions: Vec<Transition>,
    #[schema(format = DateTime)]
    server_time: String,
}

#[derive(ToSchema)]
struct Transition {
    #[schema(format = DateTime)]
    at: String,
    seq: u64,
    from: UnitState,
    to: UnitState,
    cause: String,
    /// A key's or a session's id, or `system`.
    actor: String,
    reason: Option<String>,
    hold: Option<String>,
    booking: Option<String>,
    fence: u64,
    version: u64,
    request_id: String,
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

/// A refusal (RFC 9457). Which of the last members it has, its code tells.
#[derive(ToSchema)]
struct Problem {
    /// A page about it.
    r#type: String,
    title: String,
    status: u16,
    /// What is wrong with this request.
    detail: String,
    code: String,
    advice: Advice,
    #[schema(nullable = false)]
    conflicts: Option<Vec<Conflict>>,
    #[schema(nullable = false)]
    alternatives: Option<Vec<Alternative>>,
    /// The commit number at which it was true.
    #[schema(nullable = false)]
    seq: Option<u64>,
    /// Names that the chart does not have.
    #[schema(nullable = false)]
    unknown: Option<Vec<String>>,
    /// Lines that are cancelled already.
    #[schema(nullable = false)]
    units: Option<Vec<Unit>>,
    #[schema(nullable = false)]
    orphans: Option<Vec<Unit>>,
    #[schema(nullable = false)]
    budget: Option<String>,
    #[schema(nullable = false)]
    limit: Option<u64>,
    #[schema(nullable = false)]
    used: Option<u32>,
    #[schema(nullable = false)]
    booking: Option<String>,
    #[schema(nullable = false)]
    reason: Option<String>,
    #[schema(nullable = false)]
    fence: Option<u64>,
    #[schema(nullable = false, format = DateTime)]
    max_expires_at: Option<String>,
    #[schema(nullable = false, format = DateTime)]
    sale_opens_at: Option<String>,
    #[schema(nullable = false, format = DateTime)]
    cancel_until: Option<String>,
}

#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
enum Advice {
    RetryAfter,
    DoNotRetry,
    Reacquire,
    AskState,
}

/// A wanted seat or area that cannot be had.
#[derive(ToSchema)]
struct Conflict {
    #[schema(nullable = false)]
    seat: Option<String>,
    #[schema(nullable = false)]
    area: Option<String>,
    state: ConflictState,
    /// When a held seat may be free.
    #[schema(nullable = false)]
    retry_after_ms: Option<u64>,
    /// How many places of the area are free.
    #[schema(nullable = false)]
    free: Option<u32>,
}

#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
enum ConflictState {
    Held,
    Sold,
    Blocked,
    Yours,
    Full,
    Free,
}

/// Units that could be had instead.
#[derive(ToSchema)]
struct Alternative {
    units: Vec<Unit>,
    /// Whether they are neighbours.
    together: bool,
}
