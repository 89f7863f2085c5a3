//! Which problems an operation answers: those of its way in, of what its path names and of what it takes;
//! and its own, which the table of operations lists. A test compares every refusal that tests see.

use std::collections::BTreeMap;

use super::super::kinds::{self, Kind};
use super::super::route::{Admission, Verb, is_counted};
use super::operations::{Keyed, Operation};

/// Why units that are named or chosen cannot be had.
pub(super) const NO_CHOICE: &[&Kind] = &[
    &kinds::UNIT_UNAVAILABLE,
    &kinds::UNKNOWN_UNIT,
    &kinds::TOO_MANY_UNITS,
];

/// Why the event does not sell them so.
pub(super) const NO_SALE: &[&Kind] = &[
    &kinds::NOT_ON_SALE,
    &kinds::ADJACENCY_REFUSED,
    &kinds::BUDGET_EXCEEDED,
];

/// Why a hold is not as the caller thinks.
pub(super) const NO_HOLD: &[&Kind] = &[
    &kinds::HOLD_NOT_FOUND,
    &kinds::HOLD_EXPIRED,
    &kinds::HOLD_RELEASED,
    &kinds::HOLD_CONSUMED,
    &kinds::HOLD_REVOKED,
    &kinds::STALE_FENCE,
    &kinds::PAYMENT_IN_PROGRESS,
];

/// Why a booking gives nothing back.
pub(super) const NO_RETURN: &[&Kind] = &[
    &kinds::BOOKING_NOT_FOUND,
    &kinds::BOOKING_NOT_CONFIRMED,
    &kinds::ALREADY_CANCELLED,
    &kinds::CANCEL_CLOSED,
    &kinds::UNKNOWN_UNIT,
    &kinds::PAYMENT_IN_PROGRESS,
];

/// Why the provider opens no payment.
pub(super) const NO_PAYMENT: &[&Kind] = &[
    &kinds::PAYMENT_REFUSED,
    &kinds::PAYMENT_UNAVAILABLE,
    &kinds::PAYMENT_MISMATCH,
];

/// Why the ledger says nothing.
pub(super) const LEDGER: &[&Kind] = &[
    &kinds::INTERNAL_ERROR,
    &kinds::OVERLOADED,
    &kinds::READ_ONLY,
    &kinds::MEMORY_MISMATCH,
    &kinds::SHUTTING_DOWN,
];

const CALLERS: &[&Kind] = &[&kinds::UNAUTHENTICATED, &kinds::FORBIDDEN];
/// Where staff has an address of its own, its routes are not at the public one.
const ELSEWHERE: &[&Kind] = &[&kinds::NOT_FOUND, &kinds::METHOD_NOT_ALLOWED];
const BODIES: &[&Kind] = &[
    &kinds::INVALID_REQUEST,
    &kinds::BODY_TOO_LARGE,
    &kinds::UNSUPPORTED_MEDIA_TYPE,
    &kinds::REQUEST_TIMEOUT,
    &kinds::OUTCOME_UNKNOWN,
];
const KEYS: &[&Kind] = &[
    &kinds::IDEMPOTENCY_KEY_REUSED,
    &kinds::IDEMPOTENCY_KEY_MISSING,
];

/// The codes of an operation's refusals by status.
pub(super) fn of(operation: &Operation) -> BTreeMap<u16, Vec<&'static str>> {
    let mut kinds: Vec<&Kind> = Vec::new();
    if operation.route.admission != Admission::Anyone {
        kinds.extend(CALLERS);
        kinds.push(&kinds::INVALID_REQUEST);
        kinds.extend(LEDGER);
    }
    if is_counted(operation.route.admission, operation.route.path) {
        kinds.push(&kinds::RATE_LIMITED);
    }
    if operation.route.is_for_operators() {
        kinds.extend(ELSEWHERE);
    }
    if operation.route.verb != Verb::Get {
        kinds.extend(BODIES);
    }
    kinds.extend(operation.route.path.split('/').filter_map(named));
    let keys = match operation.keyed {
        Keyed::No => 0,
        Keyed::Optional => 1,
        Keyed::Required => KEYS.len(),
    };
    kinds.extend(KEYS.iter().take(keys));
    kinds.extend(operation.refusals.iter().copied().flatten());
    let mut codes = BTreeMap::<u16, Vec<&'static str>>::new();
    for kind in kinds {
        let codes = codes.entry(kind.status.as_u16()).or_default();
        if !codes.contains(&kind.code) {
            codes.push(kind.code);
        }
    }
    codes
}

/// What it is when a segment of a path names nothing.
fn named(segment: &str) -> Option<&'static Kind> {
    match segment {
        "{event}" => Some(&kinds::EVENT_NOT_FOUND),
        "{hold}" => Some(&kinds::HOLD_NOT_FOUND),
        "{booking}" => Some(&kinds::BOOKING_NOT_FOUND),
        "{unit}" => Some(&kinds::UNKNOWN_UNIT),
        _ => segment.starts_with('{').then_some(&kinds::NOT_FOUND),
    }
}
