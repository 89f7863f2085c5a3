//! Every refusal has one code and one advice; both are contract.

use std::collections::BTreeSet;

use soldonce_core::{BookingId, Budget, Fence, Invalid, REJECTION_CODES, Rejection, Timestamp};

use crate::world::text;

#[test]
fn codes_and_advice() {
    let (booking, at) = (BookingId::from_bits(1), Timestamp::ZERO);
    let all = [
        Rejection::Invalid(Invalid::new("units", "name at least one unit".to_owned())),
        Rejection::UnitUnavailable(Box::default()),
        Rejection::UnknownUnit(vec!["Z-9".to_owned()]),
        Rejection::EventNotFound,
        Rejection::EventExists,
        Rejection::NotOnSale { opens_at: None },
        Rejection::NotOnSale { opens_at: Some(at) },
        Rejection::BudgetExceeded {
            budget: Budget::Held,
            limit: 1,
            used: 1,
        },
        Rejection::AdjacencyRefused(Vec::new()),
        Rejection::TooManyUnits { limit: 1 },
        Rejection::HoldNotFound,
        Rejection::HoldExpired,
        Rejection::HoldReleased,
        Rejection::HoldConsumed(booking),
        Rejection::HoldRevoked(text("fraud")),
        Rejection::CapReached(at),
        Rejection::StaleFence(Fence(2)),
        Rejection::PaymentInProgress(booking),
        Rejection::PaymentRequired,
        Rejection::PaymentMismatch(booking),
        Rejection::BookingNotFound,
        Rejection::AlreadyCancelled(Vec::new()),
        Rejection::BookingNotConfirmed,
        Rejection::CancelClosed(at),
        Rejection::IdempotencyKeyMissing,
        Rejection::IdempotencyKeyReused,
        Rejection::Overloaded,
        Rejection::ReadOnly,
        Rejection::OutcomeUnknown,
        Rejection::MemoryMismatch,
        Rejection::ShuttingDown,
    ];
    let found: Vec<String> = all
        .iter()
        .map(|refusal| format!("{} {}", refusal.code(), refusal.advice().as_str()))
        .collect();
    assert_eq!(found.join("\n"), EXPECTED.trim());
    let codes: BTreeSet<&str> = all.iter().map(Rejection::code).collect();
    assert_eq!(codes, REJECTION_CODES.iter().copied().collect());
    assert_eq!(all[0].to_string(), "units: name at least one unit");
    assert_eq!(all[4].to_string(), "event_exists");
}

const EXPECTED: &str = "
invalid_request do_not_retry
unit_unavailable retry_after
unknown_unit do_not_retry
event_not_found do_not_retry
event_exists do_not_retry
not_on_sale do_not_retry
not_on_sale retry_after
budget_exceeded do_not_retry
adjacency_refused do_not_retry
too_many_units do_not_retry
hold_not_found do_not_retry
hold_expired reacquire
hold_released reacquire
hold_consumed ask_state
hold_revoked reacquire
cap_reached do_not_retry
stale_fence ask_state
payment_in_progress ask_state
payment_required do_not_retry
payment_mismatch do_not_retry
booking_not_found do_not_retry
already_cancelled ask_state
booking_not_confirmed ask_state
cancel_closed do_not_retry
idempotency_key_missing do_not_retry
idempotency_key_reused do_not_retry
overloaded retry_after
read_only retry_after
outcome_unknown retry_after
memory_mismatch retry_after
shutting_down retry_after
";
