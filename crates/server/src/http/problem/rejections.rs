//! What each rejection of `core` is to the caller.

use soldonce_core::Rejection;

use crate::http::kinds::{self, Kind};

/// The status and the words of each rejection: the table of api.md 2.
pub(super) fn kind_of(rejection: &Rejection) -> &'static Kind {
    match rejection {
        Rejection::Invalid(_) => &kinds::INVALID_REQUEST,
        Rejection::UnitUnavailable(_) => &kinds::UNIT_UNAVAILABLE,
        Rejection::UnknownUnit(_) => &kinds::UNKNOWN_UNIT,
        Rejection::EventNotFound => &kinds::EVENT_NOT_FOUND,
        Rejection::EventExists => &kinds::EVENT_EXISTS,
        Rejection::NotOnSale { .. } => &kinds::NOT_ON_SALE,
        Rejection::BudgetExceeded { .. } => &kinds::BUDGET_EXCEEDED,
        Rejection::AdjacencyRefused(_) => &kinds::ADJACENCY_REFUSED,
        Rejection::TooManyUnits { .. } => &kinds::TOO_MANY_UNITS,
        Rejection::HoldNotFound => &kinds::HOLD_NOT_FOUND,
        Rejection::HoldExpired => &kinds::HOLD_EXPIRED,
        Rejection::HoldReleased => &kinds::HOLD_RELEASED,
        Rejection::HoldConsumed(_) => &kinds::HOLD_CONSUMED,
        Rejection::HoldRevoked(_) => &kinds::HOLD_REVOKED,
        Rejection::CapReached(_) => &kinds::CAP_REACHED,
        Rejection::StaleFence(_) => &kinds::STALE_FENCE,
        Rejection::PaymentInProgress(_) => &kinds::PAYMENT_IN_PROGRESS,
        Rejection::PaymentRequired => &kinds::PAYMENT_REQUIRED,
        Rejection::PaymentMismatch(_) => &kinds::PAYMENT_MISMATCH,
        Rejection::BookingNotFound => &kinds::BOOKING_NOT_FOUND,
        Rejection::AlreadyCancelled(_) => &kinds::ALREADY_CANCELLED,
        Rejection::BookingNotConfirmed => &kinds::BOOKING_NOT_CONFIRMED,
        Rejection::CancelClosed(_) => &kinds::CANCEL_CLOSED,
        Rejection::IdempotencyKeyMissing => &kinds::IDEMPOTENCY_KEY_MISSING,
        Rejection::IdempotencyKeyReused => &kinds::IDEMPOTENCY_KEY_REUSED,
        Rejection::Overloaded => &kinds::OVERLOADED,
        Rejection::ReadOnly => &kinds::READ_ONLY,
        Rejection::OutcomeUnknown => &kinds::OUTCOME_UNKNOWN,
        Rejection::MemoryMismatch => &kinds::MEMORY_MISMATCH,
        Rejection::ShuttingDown => &kinds::SHUTTING_DOWN,
    }
}

/// What is wrong with this request, where the table's words do not say it.
pub(super) fn detail_of(rejection: &Rejection) -> Option<String> {
    if let Rejection::Invalid(invalid) = rejection {
        return Some(invalid.to_string());
    }
    if let Rejection::TooManyUnits { limit } = rejection {
        return Some(format!("one hold may have at most {limit} units"));
    }
    None
}
