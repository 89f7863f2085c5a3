//! The reasons for which a command is refused, and what to do next (model.md 9). Knows no
//! transport: each one has its own exhaustive mapping.

use std::fmt;

use self::Member::{Booking, Names, Number, Time, Units};
use crate::words::words;
use crate::{AreaNo, BookingId, Fence, Seq, Span, Text, Timestamp, UnitNo};

/// A setting or field with an illegal value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid {
    /// Its name, as the caller wrote it.
    pub field: &'static str,
    /// What is wrong and what would be right.
    pub reason: String,
}

impl Invalid {
    pub fn new(field: &'static str, reason: String) -> Self {
        Self { field, reason }
    }
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.reason)
    }
}

impl std::error::Error for Invalid {}

/// The reason why one wanted seat or area cannot be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Conflict {
    Seat {
        unit: UnitNo,
        state: ConflictState,
        /// The time until it may be free, for held ones.
        retry_after: Option<Span>,
    },
    /// An area with too few free places.
    Area { area: AreaNo, free: u32 },
}

words! {
    /// The state of a conflicting seat.
    pub ConflictState:
    Held = "held",
    Sold = "sold",
    Blocked = "blocked",
    /// In another hold of the same holder.
    Yours = "yours",
    /// Free, where something else was expected: it cannot be unblocked.
    Free = "free",
}

/// Units that could be had instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alternative {
    pub units: Vec<UnitNo>,
    pub together: bool,
}

/// Every conflict, and what could be had instead, at one version of the event.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Unavailable {
    /// Every wanted seat and area that cannot be had.
    pub conflicts: Vec<Conflict>,
    /// Alternatives: as many free units, near the wanted ones.
    pub alternatives: Vec<Alternative>,
    /// The commit number of the event at which this was true.
    pub seq: Seq,
}

impl Unavailable {
    /// Tells whether every conflict is one that time may end: a hold, not a sale.
    pub fn may_end(&self) -> bool {
        self.conflicts.iter().all(|conflict| match conflict {
            Conflict::Seat { state, .. } => match state {
                ConflictState::Held | ConflictState::Yours => true,
                ConflictState::Sold | ConflictState::Blocked | ConflictState::Free => false,
            },
            // Some of its places may be held.
            Conflict::Area { .. } => true,
        })
    }
}

words! {
    /// A budget that is used up: of units held live, or bought, by a holder.
    pub Budget:
    Held = "held",
    Bought = "bought",
}

words! {
    /// What a client should do after a refusal.
    pub Advice:
    /// The same request may pass later.
    RetryAfter = "retry_after",
    /// The same request will never pass.
    DoNotRetry = "do_not_retry",
    /// The hold is gone; ask for a new one.
    Reacquire = "reacquire",
    /// The object has changed; read it first.
    AskState = "ask_state",
}

/// The reason why a command had no effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// A field has an illegal value.
    Invalid(Invalid),
    /// A wanted unit cannot be had.
    UnitUnavailable(Box<Unavailable>),
    /// The chart has no unit or area of these names.
    UnknownUnit(Vec<String>),
    EventNotFound,
    /// An event of this name exists, from another request.
    EventExists,
    /// The event was over and was dropped: nothing but its name is left.
    EventDropped,
    /// The event cannot be dropped before this time; `None` if it has no end.
    EventNotOver(Option<Timestamp>),
    /// The event has live holds, or payments, effects or messages that are not done.
    EventInUse,
    /// The event does not sell now.
    NotOnSale {
        opens_at: Option<Timestamp>,
    },
    /// The holder has, or would have, too many units.
    BudgetExceeded {
        budget: Budget,
        limit: u32,
        /// How many count against it already.
        used: u32,
    },
    /// The choice would leave these single seats free where it need not.
    AdjacencyRefused(Vec<UnitNo>),
    /// More units than one hold may have.
    TooManyUnits {
        limit: u32,
    },
    /// No hold of this name, or not the caller's.
    HoldNotFound,
    /// The hold has expired.
    HoldExpired,
    HoldReleased,
    /// The hold became this booking.
    HoldConsumed(BookingId),
    HoldRevoked(Text),
    /// The hold cannot be extended beyond this time.
    CapReached(Timestamp),
    /// The offered fence is not the hold's, which is this.
    StaleFence(Fence),
    /// The payment of this booking is in progress and forbids it.
    PaymentInProgress(BookingId),
    /// It costs more than was paid; the difference must be paid first.
    PaymentRequired,
    /// What a provider reports is not the payment of this booking: another intent, amount or currency.
    PaymentMismatch(BookingId),
    /// No booking of this name, or not the caller's.
    BookingNotFound,
    /// These lines are cancelled already.
    AlreadyCancelled(Vec<UnitNo>),
    /// The booking is not in a state that has units to give back.
    BookingNotConfirmed,
    /// Its owner could cancel until this point of time.
    CancelClosed(Timestamp),
    /// The route needs an idempotency key.
    IdempotencyKeyMissing,
    /// The key was used for another request.
    IdempotencyKeyReused,
    /// Too many requests wait already.
    Overloaded,
    /// The ledger cannot store: nothing was done.
    ReadOnly,
    /// It is not known whether the command took effect.
    OutcomeUnknown,
    /// The server's memory is not what its ledger has: nothing was done.
    MemoryMismatch,
    /// The ledger is closed or closing: nothing was done.
    ShuttingDown,
}

/// Data that a refusal carries besides its code, for clients to act on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Member<'a> {
    Number(u64),
    Text(&'a str),
    Time(Timestamp),
    Booking(BookingId),
    Names(&'a [String]),
    /// Units, whose names only the event's chart knows.
    Units(&'a [UnitNo]),
    /// Several members: what the chart names, and the event's commit number.
    Unavailable(&'a Unavailable),
}

/// Declares of each refusal: its code, what a client should do next, and its members by name. Transports,
/// metrics and the API's description take all of it from here.
macro_rules! refusals {
    ($($refusal:pat $(if $guard:expr)? => $code:literal, $advice:ident, [$($name:literal: $member:expr),*];)+) => {
        /// Every code, in the order of the table. One whose advice depends on its data is there twice.
        pub const REJECTION_CODES: &[&str] = &[$($code),+];

        #[expect(unused_variables, reason = "each function looks at its own column")]
        impl Rejection {
            /// Returns its code, the same in every transport.
            pub fn code(&self) -> &'static str {
                match self { $($refusal $(if $guard)? => $code,)+ }
            }

            /// Returns what the client should do next.
            pub fn advice(&self) -> Advice {
                match self { $($refusal $(if $guard)? => Advice::$advice,)+ }
            }

            /// Returns its data, by name.
            pub fn members(&self) -> Vec<(&'static str, Member<'_>)> {
                match self { $($refusal $(if $guard)? => vec![$(($name, $member)),*],)+ }
            }
        }
    };
}

refusals! {
    Self::Invalid(_) => "invalid_request", DoNotRetry, [];
    Self::UnitUnavailable(refusal) if refusal.may_end() => "unit_unavailable", RetryAfter,
        ["conflicts": Member::Unavailable(refusal)];
    Self::UnitUnavailable(refusal) => "unit_unavailable", DoNotRetry,
        ["conflicts": Member::Unavailable(refusal)];
    Self::UnknownUnit(names) => "unknown_unit", DoNotRetry, ["unknown": Names(names)];
    Self::EventNotFound => "event_not_found", DoNotRetry, [];
    Self::EventExists => "event_exists", DoNotRetry, [];
    Self::EventDropped => "event_dropped", DoNotRetry, [];
    Self::EventNotOver(Some(at)) => "event_not_over", RetryAfter, ["droppable_at": Time(*at)];
    Self::EventNotOver(None) => "event_not_over", DoNotRetry, [];
    Self::EventInUse => "event_in_use", RetryAfter, [];
    Self::NotOnSale { opens_at: Some(at) } => "not_on_sale", RetryAfter, ["sale_opens_at": Time(*at)];
    Self::NotOnSale { opens_at: None } => "not_on_sale", DoNotRetry, [];
    Self::BudgetExceeded { budget, limit, used } => "budget_exceeded", DoNotRetry, [
        "budget": Member::Text(budget.as_str()),
        "limit": Number(u64::from(*limit)),
        "used": Number(u64::from(*used))
    ];
    Self::AdjacencyRefused(units) => "adjacency_refused", DoNotRetry, ["orphans": Units(units)];
    Self::TooManyUnits { limit } => "too_many_units", DoNotRetry, ["limit": Number(u64::from(*limit))];
    Self::HoldNotFound => "hold_not_found", DoNotRetry, [];
    Self::HoldExpired => "hold_expired", Reacquire, [];
    Self::HoldReleased => "hold_released", Reacquire, [];
    Self::HoldConsumed(booking) => "hold_consumed", AskState, ["booking": Booking(*booking)];
    Self::HoldRevoked(reason) => "hold_revoked", Reacquire, ["reason": Member::Text(reason.as_str())];
    Self::CapReached(at) => "cap_reached", DoNotRetry, ["max_expires_at": Time(*at)];
    Self::StaleFence(fence) => "stale_fence", AskState, ["fence": Number(fence.0)];
    Self::PaymentInProgress(booking) => "payment_in_progress", AskState, ["booking": Booking(*booking)];
    Self::PaymentRequired => "payment_required", DoNotRetry, [];
    Self::PaymentMismatch(booking) => "payment_mismatch", DoNotRetry, ["booking": Booking(*booking)];
    Self::BookingNotFound => "booking_not_found", DoNotRetry, [];
    Self::AlreadyCancelled(units) => "already_cancelled", AskState, ["units": Units(units)];
    Self::BookingNotConfirmed => "booking_not_confirmed", AskState, [];
    Self::CancelClosed(at) => "cancel_closed", DoNotRetry, ["cancel_until": Time(*at)];
    Self::IdempotencyKeyMissing => "idempotency_key_missing", DoNotRetry, [];
    Self::IdempotencyKeyReused => "idempotency_key_reused", DoNotRetry, [];
    Self::Overloaded => "overloaded", RetryAfter, [];
    Self::ReadOnly => "read_only", RetryAfter, [];
    Self::OutcomeUnknown => "outcome_unknown", RetryAfter, [];
    Self::MemoryMismatch => "memory_mismatch", RetryAfter, [];
    Self::ShuttingDown => "shutting_down", RetryAfter, [];
}

impl Rejection {
    /// Tells whether it is about units or areas, whose public names only the event's chart knows.
    pub fn names_units(&self) -> bool {
        let names = |member| matches!(member, Names(_) | Units(_) | Member::Unavailable(_));
        self.members().into_iter().any(|(_, member)| names(member))
    }
}

impl From<Invalid> for Rejection {
    fn from(invalid: Invalid) -> Self {
        Self::Invalid(invalid)
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Self::Invalid(invalid) = self {
            return invalid.fmt(f);
        }
        f.write_str(self.code())
    }
}

impl std::error::Error for Rejection {}
