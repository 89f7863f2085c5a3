//! The shapes of holds, bookings, histories and refusals.
#![expect(dead_code, reason = "only their shape is read")]

use utoipa::ToSchema;

use super::schemas::UnitState;

/// A unit: a seat, or a place of an area.
#[derive(ToSchema)]
pub(super) struct Unit {
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
pub(super) struct HeldUnit {
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
pub(super) struct Hold {
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
    /// No extension goes beyond it. While a payment is under way `expires_at` may, by the event's
    /// `payment_window_ms`.
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
    /// Left out in messages.
    #[schema(format = DateTime, nullable = false)]
    server_time: Option<String>,
}

#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
pub(super) enum HoldState {
    Active,
    Pinned,
    Consumed,
    Released,
    Expired,
    Revoked,
}

#[derive(ToSchema)]
pub(super) struct HoldList {
    holds: Vec<Hold>,
    next: Option<String>,
    /// Every commit up to this one is in the list; in lists of an event.
    #[schema(nullable = false)]
    seq: Option<u64>,
    #[schema(format = DateTime)]
    server_time: String,
}

/// A unit of a booking.
#[derive(ToSchema)]
pub(super) struct Line {
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

/// What the provider did.
#[derive(ToSchema)]
pub(super) struct Payment {
    /// As the provider last said.
    state: String,
    /// What the buyer is to pay, in minor units.
    #[schema(nullable = false)]
    amount: Option<i64>,
    #[schema(nullable = false)]
    captured: Option<i64>,
    #[schema(nullable = false)]
    refunded: Option<i64>,
    /// What is paid for the booking and was not sent back; after an exchange also of money that
    /// another booking has taken.
    #[schema(nullable = false)]
    paid: Option<i64>,
    /// What of it is the credit of bookings that its lines were given back for.
    #[schema(nullable = false)]
    carried: Option<i64>,
    provider: Option<String>,
    /// The provider's name for it.
    intent: Option<String>,
    /// For the buyer's browser, in the answer to checkout alone.
    #[schema(nullable = false)]
    client_secret: Option<String>,
}

/// What was given back for a booking, or is to be when it is paid.
#[derive(ToSchema)]
pub(super) struct ExchangedFor {
    /// Whose lines.
    booking: String,
    release: Vec<Unit>,
    /// What its own payment is about, in minor units.
    difference: i64,
    /// What of the other booking's money is its, and goes back with its own.
    credit: i64,
}

/// A sale.
#[derive(ToSchema)]
pub(super) struct Booking {
    id: String,
    event: String,
    holder: String,
    /// None for sales of the box office.
    hold: Option<String>,
    state: String,
    fence: u64,
    lines: Vec<Line>,
    /// What was bought, in minor units. It stays when lines are cancelled: what is kept is the sum of the
    /// prices of lines whose state is `sold`, what went back is `payment.refunded`.
    total: i64,
    currency: String,
    reference: Option<String>,
    /// Where it took the place of lines of another booking and cost more.
    #[schema(nullable = false)]
    exchange: Option<ExchangedFor>,
    /// None without a provider.
    payment: Option<Payment>,
    #[schema(format = DateTime)]
    created_at: String,
    #[schema(format = DateTime)]
    confirmed_at: Option<String>,
    /// The commit number of the command.
    #[schema(nullable = false)]
    seq: Option<u64>,
    /// Opens the booking for as long as it is kept, as the header `Booking-Secret`. Left out in lists.
    #[schema(nullable = false)]
    secret: Option<String>,
    /// Left out in messages.
    #[schema(format = DateTime, nullable = false)]
    server_time: Option<String>,
}

/// How bookings are paid here.
#[derive(ToSchema)]
pub(super) struct Payments {
    /// The payment provider. Without one holds are confirmed; with one what costs something goes through
    /// checkout.
    provider: Option<String>,
    /// Whether a session may confirm what costs something. Without a provider, and when this is false, it
    /// confirms only what costs nothing, and the shop sells the rest with its key.
    free_sales: bool,
    /// What the page of a demo pays with; a shop has none.
    demo_cards: Vec<DemoCard>,
    #[schema(format = DateTime)]
    server_time: String,
}

/// A test card of a demo.
#[derive(ToSchema)]
pub(super) struct DemoCard {
    card: String,
    name: String,
    about: String,
}

#[derive(ToSchema)]
pub(super) struct BookingList {
    bookings: Vec<Booking>,
    next: Option<String>,
    /// Every commit up to this one is in the list; in lists of an event.
    #[schema(nullable = false)]
    seq: Option<u64>,
    #[schema(format = DateTime)]
    server_time: String,
}

#[derive(ToSchema)]
pub(super) struct BlockedUnits {
    blocked: Vec<Unit>,
    #[schema(nullable = false)]
    seq: Option<u64>,
    #[schema(format = DateTime)]
    server_time: String,
}

#[derive(ToSchema)]
pub(super) struct UnblockedUnits {
    unblocked: Vec<Unit>,
    #[schema(nullable = false)]
    seq: Option<u64>,
    #[schema(format = DateTime)]
    server_time: String,
}

/// What happened to a unit.
#[derive(ToSchema)]
pub(super) struct History {
    unit: String,
    transitions: Vec<Transition>,
    #[schema(format = DateTime)]
    server_time: String,
}

#[derive(ToSchema)]
pub(super) struct Transition {
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

/// A refusal (RFC 9457). Which of the last members it has, its code tells.
#[derive(ToSchema)]
pub(super) struct Problem {
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
    /// When to ask again, milliseconds.
    #[schema(nullable = false)]
    retry_after_ms: Option<u64>,
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
pub(super) enum Advice {
    RetryAfter,
    DoNotRetry,
    Reacquire,
    AskState,
}

/// A wanted seat or area that cannot be had.
#[derive(ToSchema)]
pub(super) struct Conflict {
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
pub(super) enum ConflictState {
    Held,
    Sold,
    Blocked,
    Yours,
    Full,
    Free,
}

/// Units that could be had instead.
#[derive(ToSchema)]
pub(super) struct Alternative {
    units: Vec<Unit>,
    /// Whether they are neighbours.
    together: bool,
}
