//! Which problems an operation answers: those that follow from its route, and its own. Tests compare every refusal
//! that they get with them, and provoke each of the own ones.

use std::collections::BTreeMap;

use super::kinds::{self, Kind};
use super::operation::{Keyed, Operation};
use super::route::{Admission, BodySize, Verb};

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

/// How a hold has ended.
pub(super) const ENDED: &[&Kind] = &[
    &kinds::HOLD_EXPIRED,
    &kinds::HOLD_RELEASED,
    &kinds::HOLD_CONSUMED,
    &kinds::HOLD_REVOKED,
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

/// Why lines of a booking cannot be given back.
pub(super) const NO_RETURN: &[&Kind] = &[
    &kinds::BOOKING_NOT_FOUND,
    &kinds::BOOKING_NOT_CONFIRMED,
    &kinds::ALREADY_CANCELLED,
    &kinds::CANCEL_CLOSED,
    &kinds::UNKNOWN_UNIT,
];

/// Why the provider opens no payment.
pub(super) const NO_PAYMENT: &[&Kind] = &[&kinds::PAYMENT_REFUSED, &kinds::PAYMENT_UNAVAILABLE];

/// Why the ledger cannot be read.
const LEDGER: &[&Kind] = &[
    &kinds::INTERNAL_ERROR,
    &kinds::OVERLOADED,
    &kinds::READ_ONLY,
];

/// Why the ledger takes no command.
pub(super) const COMMANDS: &[&Kind] = &[
    &kinds::INTERNAL_ERROR,
    &kinds::OVERLOADED,
    &kinds::READ_ONLY,
    &kinds::OUTCOME_UNKNOWN,
    &kinds::MEMORY_MISMATCH,
    &kinds::SHUTTING_DOWN,
];

/// Lists the codes of an operation's refusals by status; `all` are the operations of the API.
pub(super) fn of(operation: &Operation, all: &[Operation]) -> BTreeMap<u16, Vec<&'static str>> {
    let route = operation.route;
    let mut kinds: Vec<&Kind> = Vec::new();
    if route.admission != Admission::Anyone {
        kinds.extend([&kinds::UNAUTHENTICATED, &kinds::INVALID_REQUEST]);
        kinds.extend(LEDGER);
        if route.verb != Verb::Get {
            kinds.extend(COMMANDS);
        }
    }
    // Every caller that is known may look.
    if !matches!(route.admission, Admission::Anyone | Admission::Look) {
        kinds.push(&kinds::FORBIDDEN);
    }
    if route.is_counted() {
        kinds.push(&kinds::RATE_LIMITED);
    }
    if route.is_for_operators() {
        kinds.push(at_the_public_address(operation, all));
    }
    if operation.body.is_some() {
        kinds.push(&kinds::UNSUPPORTED_MEDIA_TYPE);
    }
    if operation.body.is_some() || route.body != BodySize::Usual {
        kinds.extend([&kinds::INVALID_REQUEST, &kinds::BODY_TOO_LARGE]);
        kinds.push(&kinds::REQUEST_TIMEOUT);
    }
    kinds.extend(route.path.split('/').flat_map(named));
    match operation.keyed {
        Keyed::No => {}
        Keyed::Optional | Keyed::Naming => kinds.push(&kinds::IDEMPOTENCY_KEY_REUSED),
        Keyed::Required => {
            kinds.push(&kinds::IDEMPOTENCY_KEY_REUSED);
            kinds.push(&kinds::IDEMPOTENCY_KEY_MISSING);
        }
    }
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

/// Returns the public address's answer to an operator's request where operators have their own.
fn at_the_public_address(operation: &Operation, all: &[Operation]) -> &'static Kind {
    let is_there = |other: &Operation| {
        other.route.path == operation.route.path && !other.route.is_for_operators()
    };
    if all.iter().any(is_there) {
        &kinds::METHOD_NOT_ALLOWED
    } else {
        &kinds::NOT_FOUND
    }
}

/// Lists the problems of a path whose segment names nothing.
fn named(segment: &str) -> &'static [&'static Kind] {
    match segment {
        "{event}" => &[&kinds::EVENT_NOT_FOUND, &kinds::EVENT_DROPPED],
        "{hold}" => &[&kinds::HOLD_NOT_FOUND],
        "{booking}" => &[&kinds::BOOKING_NOT_FOUND],
        "{unit}" => &[&kinds::UNKNOWN_UNIT],
        // What is no name is no request.
        "{name}" => &[],
        _ if segment.starts_with('{') => &[&kinds::NOT_FOUND],
        _ => &[],
    }
}
