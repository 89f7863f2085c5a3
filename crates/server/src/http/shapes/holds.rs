//! Units, holds, bookings and histories.
#![expect(dead_code, reason = "only their shape is read")]

use utoipa::ToSchema;

use super::words::{HoldState, UnitState};

/// A unit: a seat, or a place of an area.
#[derive(ToSchema)]
pub(in crate::http) struct Unit {
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
pub(in crate::http) struct HeldUnit {
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
pub(in crate::http) struct Hold {
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
}

#[derive(ToSchema)]
pub(in crate::http) struct HoldList {
    holds: Vec<Hold>,
    next: Option<String>,
    /// Every commit up to this one is in the list; in lists of an event.
    #[schema(nullable = false)]
    seq: Option<u64>,
}

/// A unit of a booking.
#[derive(ToSchema)]
pub(in crate::http) struct Line {
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
pub(in crate::http) struct Payment {
    /// As the provider last said.
    state: String,
    /// What the buyer is to pay, in minor units.
    #[schema(nullable = false)]
    amount: Option<i64>,
    #[schema(nullable = false)]
    captured: Option<i64>,
    #[schema(nullable = false)]
    refunded: Option<i64>,
    /// What staff settled elsewhere of what was to be refunded.
    #[schema(nullable = false)]
    elsewhere: Option<i64>,
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
pub(in crate::http) struct ExchangedFor {
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
pub(in crate::http) struct Booking {
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
}

#[derive(ToSchema)]
pub(in crate::http) struct BookingList {
    bookings: Vec<Booking>,
    next: Option<String>,
    /// Every commit up to this one is in the list; in lists of an event.
    #[schema(nullable = false)]
    seq: Option<u64>,
}

#[derive(ToSchema)]
pub(in crate::http) struct BlockedUnits {
    blocked: Vec<Unit>,
    #[schema(nullable = false)]
    seq: Option<u64>,
}

#[derive(ToSchema)]
pub(in crate::http) struct UnblockedUnits {
    unblocked: Vec<Unit>,
    #[schema(nullable = false)]
    seq: Option<u64>,
}

#[derive(ToSchema)]
pub(in crate::http) struct Transition {
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
