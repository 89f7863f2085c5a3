//! What a refusal says besides its code. That each code has its advice, status and members is a table of the
//! server's tests.

use soldonce_core::{
    Advice, BookingId, Budget, Conflict, ConflictState, Invalid, Member, Rejection, Timestamp,
    Unavailable, UnitNo,
};

#[test]
fn a_refusal_carries_what_a_client_acts_on() {
    let over = Rejection::BudgetExceeded {
        budget: Budget::Bought,
        limit: 3,
        used: 2,
    };
    let (budget, limit) = (Member::Text("bought"), Member::Number(3));
    let expected = [
        ("budget", budget),
        ("limit", limit),
        ("used", Member::Number(2)),
    ];
    assert_eq!(over.members(), expected);
    let booking = BookingId::from_bits(1);
    let consumed = Rejection::HoldConsumed(booking);
    assert_eq!(consumed.members(), [("booking", Member::Booking(booking))]);
    let named = |refusal: Rejection| refusal.names_units();
    assert!(named(Rejection::AlreadyCancelled(vec![UnitNo(1)])));
    assert!(named(Rejection::UnitUnavailable(Box::default())));
    assert!(named(Rejection::UnknownUnit(vec!["Z-9".to_owned()])));
    assert!(!named(over) && !named(Rejection::HoldExpired));
}

#[test]
fn a_refusal_says_what_to_do_next() {
    let later = Some(Timestamp::ZERO);
    assert_eq!(
        Rejection::NotOnSale { opens_at: later }.advice(),
        Advice::RetryAfter
    );
    assert_eq!(
        Rejection::NotOnSale { opens_at: None }.advice(),
        Advice::DoNotRetry
    );
    let taken = |states: &[ConflictState]| {
        let seat = |state: &ConflictState| Conflict::Seat {
            unit: UnitNo(0),
            state: *state,
            retry_after: None,
        };
        let conflicts = states.iter().map(seat).collect();
        let refusal = Unavailable {
            conflicts,
            ..Unavailable::default()
        };
        Rejection::UnitUnavailable(Box::new(refusal)).advice()
    };
    let (held, sold) = (ConflictState::Held, ConflictState::Sold);
    assert_eq!(taken(&[held, ConflictState::Yours]), Advice::RetryAfter);
    assert_eq!(taken(&[held, sold]), Advice::DoNotRetry);
    assert_eq!(taken(&[ConflictState::Blocked]), Advice::DoNotRetry);
    assert_eq!(Rejection::HoldExpired.advice(), Advice::Reacquire);
    assert_eq!(Rejection::BookingNotConfirmed.advice(), Advice::AskState);
}

#[test]
fn a_refusal_of_a_field_names_it() {
    let invalid = Invalid::new("units", "name at least one unit".to_owned());
    assert_eq!(
        Rejection::Invalid(invalid).to_string(),
        "units: name at least one unit"
    );
    assert_eq!(Rejection::EventExists.to_string(), "event_exists");
}
