//! Why a command is refused, exactly, and what to do next (model.md 9). Knows no transport: each one
//! has its own exhaustive mapping.

use std::fmt;

use crate::{AreaNo, BookingId, Fence, Seq, Span, StateKind, Text, Timestamp, UnitNo};

/// A setting or field with a value that cannot be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid {
    /// Which one, as the caller wrote it.
    pub field: &'static str,
    /// What is wrong and what would be right.
    pub reason: String,
}

impl Invalid {
    /// `field` is wrong because of `reason`.
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

/// What stands in the way of one wanted seat or area.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Conflict {
    /// A seat that somebody has.
    Seat {
        /// Which seat.
        unit: UnitNo,
        /// What it is.
        state: ConflictState,
        /// When it may be free, for held ones.
        retry_after: Option<Span>,
    },
    /// An area with too few free places.
    Area {
        /// Which area.
        area: AreaNo,
        /// How many places are free.
        free: u32,
    },
}

/// What a conflicting seat is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConflictState {
    /// In somebody's hold.
    Held,
    /// Sold.
    Sold,
    /// Not for sale.
    Blocked,
    /// In another hold of the same holder.
    Yours,
    /// Free, where something else was expected: it cannot be unblocked.
    Free,
}

impl ConflictState {
    /// The word of api.md, in lower case.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Held => StateKind::Held.as_str(),
            Self::Sold => StateKind::Sold.as_str(),
            Self::Blocked => StateKind::Blocked.as_str(),
            Self::Yours => "yours",
            Self::Free => StateKind::Free.as_str(),
        }
    }
}

/// Units that could be had instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alternative {
    /// Which units.
    pub units: Vec<UnitNo>,
    /// Whether they are neighbours.
    pub together: bool,
}

/// Every conflict, and what could be had instead, at one version of the event.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Unavailable {
    /// Every wanted seat and area that cannot be had.
    pub conflicts: Vec<Conflict>,
    /// As many free units, near the wanted ones.
    pub alternatives: Vec<Alternative>,
    /// The commit number of the event at which this was true.
    pub seq: Seq,
}

/// Which budget is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Budget {
    /// Units held live at once by the holder.
    Held,
    /// Units bought by the holder.
    Bought,
}

/// What a client should do after a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// The same request may pass later.
    RetryAfter,
    /// The same request will never pass.
    DoNotRetry,
    /// The claim is gone; ask for a new hold.
    Reacquire,
    /// Something moved on; read the object first.
    AskState,
}

impl Advice {
    /// The word of model.md.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::RetryAfter => "retry_after",
            Self::DoNotRetry => "do_not_retry",
            Self::Reacquire => "reacquire",
            Self::AskState => "ask_state",
        }
    }
}

/// Why a command had no effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// A field cannot be.
    Invalid(Invalid),
    /// Somebody has a wanted unit.
    UnitUnavailable(Box<Unavailable>),
    /// The chart has no unit or area of these names.
    UnknownUnit(Vec<String>),
    /// No event of this name.
    EventNotFound,
    /// An event of this name exists and is another one.
    EventExists,
    /// The event does not sell now.
    NotOnSale {
        /// When it will, if it will.
        opens_at: Option<Timestamp>,
    },
    /// The holder has, or would have, too many units.
    BudgetExceeded {
        /// Which budget.
        budget: Budget,
        /// The most it allows.
        limit: u32,
        /// How many count against it already.
        used: u32,
    },
    /// The choice would leave these single seats free where it need not.
    AdjacencyRefused(Vec<UnitNo>),
    /// More units than one hold may have.
    TooManyUnits {
        /// The most it may have.
        limit: u32,
    },
    /// No hold of this name, or not the caller's.
    HoldNotFound,
    /// Its time was over.
    HoldExpired,
    /// Its holder gave it up.
    HoldReleased,
    /// It became this booking.
    HoldConsumed(BookingId),
    /// Staff ended it.
    HoldRevoked(Text),
    /// It cannot be extended any further than this.
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
    /// Too much waits already.
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

/// Declares the code of each rejection, and the list of all codes.
macro_rules! codes {
    ($($rejection:pat => $code:literal,)+) => {
        /// Every code of a rejection, each once.
        pub const REJECTION_CODES: &[&str] = &[$($code),+];

        impl Rejection {
            /// Returns its code, the same in every transport.
            pub const fn code(&self) -> &'static str {
                match self { $($rejection => $code,)+ }
            }
        }
    };
}

codes! {
    Rejection::Invalid(_) => "invalid_request",
    Rejection::UnitUnavailable(_) => "unit_unavailable",
    Rejection::UnknownUnit(_) => "unknown_unit",
    Rejection::EventNotFound => "event_not_found",
    Rejection::EventExists => "event_exists",
    Rejection::NotOnSale { .. } => "not_on_sale",
    Rejection::BudgetExceeded { .. } => "budget_exceeded",
    Rejection::AdjacencyRefused(_) => "adjacency_refused",
    Rejection::TooManyUnits { .. } => "too_many_units",
    Rejection::HoldNotFound => "hold_not_found",
    Rejection::HoldExpired => "hold_expired",
    Rejection::HoldReleased => "hold_released",
    Rejection::HoldConsumed(_) => "hold_consumed",
    Rejection::HoldRevoked(_) => "hold_revoked",
    Rejection::CapReached(_) => "cap_reached",
    Rejection::StaleFence(_) => "stale_fence",
    Rejection::PaymentInProgress(_) => "payment_in_progress",
    Rejection::PaymentRequired => "payment_required",
    Rejection::PaymentMismatch(_) => "payment_mismatch",
    Rejection::BookingNotFound => "booking_not_found",
    Rejection::AlreadyCancelled(_) => "already_cancelled",
    Rejection::BookingNotConfirmed => "booking_not_confirmed",
    Rejection::CancelClosed(_) => "cancel_closed",
    Rejection::IdempotencyKeyMissing => "idempotency_key_missing",
    Rejection::IdempotencyKeyReused => "idempotency_key_reused",
    Rejection::Overloaded => "overloaded",
    Rejection::ReadOnly => "read_only",
    Rejection::OutcomeUnknown => "outcome_unknown",
    Rejection::MemoryMismatch => "memory_mismatch",
    Rejection::ShuttingDown => "shutting_down",
}

impl Rejection {
    /// What the client should do next.
    pub const fn advice(&self) -> Advice {
        match self {
            Self::UnitUnavailable(_)
            | Self::NotOnSale { opens_at: Some(_) }
            | Self::Overloaded
            | Self::ReadOnly
            | Self::OutcomeUnknown
            | Self::MemoryMismatch
            | Self::ShuttingDown => Advice::RetryAfter,
            Self::HoldExpired | Self::HoldReleased | Self::HoldRevoked(_) => Advice::Reacquire,
            Self::StaleFence(_)
            | Self::PaymentInProgress(_)
            | Self::AlreadyCancelled(_)
            | Self::BookingNotConfirmed
            | Self::HoldConsumed(_) => Advice::AskState,
            Self::Invalid(_)
            | Self::UnknownUnit(_)
            | Self::EventNotFound
            | Self::EventExists
            | Self::NotOnSale { opens_at: None }
            | Self::BudgetExceeded { .. }
            | Self::AdjacencyRefused(_)
            | Self::TooManyUnits { .. }
            | Self::HoldNotFound
            | Self::CapReached(_)
            | Self::PaymentRequired
            | Self::PaymentMismatch(_)
            | Self::BookingNotFound
            | Self::CancelClosed(_)
            | Self::IdempotencyKeyMissing
            | Self::IdempotencyKeyReused => Advice::DoNotRetry,
        }
    }

    /// Whether it names units or areas, whose public names only the event's chart knows.
    pub const fn names_units(&self) -> bool {
        match self {
            Self::UnitUnavailable(_)
            | Self::UnknownUnit(_)
            | Self::AdjacencyRefused(_)
            | Self::AlreadyCancelled(_) => true,
            Self::Invalid(_)
            | Self::EventNotFound
            | Self::EventExists
            | Self::NotOnSale { .. }
            | Self::BudgetExceeded { .. }
            | Self::TooManyUnits { .. }
            | Self::HoldNotFound
            | Self::HoldExpired
            | Self::HoldReleased
            | Self::HoldConsumed(_)
            | Self::HoldRevoked(_)
            | Self::CapReached(_)
            | Self::StaleFence(_)
            | Self::PaymentInProgress(_)
            | Self::PaymentRequired
            | Self::PaymentMismatch(_)
            | Self::BookingNotFound
            | Self::BookingNotConfirmed
            | Self::CancelClosed(_)
            | Self::IdempotencyKeyMissing
            | Self::IdempotencyKeyReused
            | Self::Overloaded
            | Self::ReadOnly
            | Self::OutcomeUnknown
            | Self::MemoryMismatch
            | Self::ShuttingDown => false,
        }
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
