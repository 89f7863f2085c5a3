//! What an inventory keeps: nothing that waits is forgotten, nothing is made twice.

use soldonce_core::{
    Command, EventNo, HoldState, NewHold, Policy, PolicyChange, Rejection, TtlMax, Wish,
};

use super::world;
use crate::world::{booked, holder, policy, text};

/// The end of a hold moves its pending booking without naming it: that one cannot be forgotten.
#[test]
fn what_waits_is_not_forgotten() {
    let mut world = world();
    let hold = world.hold("ann", "A-1");
    let booking = booked(&world.checkout(hold).unwrap()).id;
    world.inventory.forget_booking(booking);
    world.inventory.forget_hold(hold);
    world.wait(60_000);
    world.sweep();
    assert_eq!(
        world.inventory.booking(booking).unwrap().state.as_str(),
        "expired"
    );
    world.inventory.forget_booking(booking);
    world.inventory.forget_hold(hold);
    assert!(world.inventory.booking(booking).is_none() && world.inventory.hold(hold).is_none());
}

#[test]
fn events_are_made_once_and_called_off_once() {
    let mut world = world();
    let event = world.event;
    let unknown = EventNo(9);
    let policy = Box::new(Policy {
        units_per_hold_max: 65,
        ..policy()
    });
    let update = |event| Command::UpdatePolicy {
        event,
        change: Box::new(PolicyChange::from(&*policy)),
    };
    assert_eq!(
        world.apply(update(unknown)).unwrap_err(),
        Rejection::EventNotFound
    );
    assert_eq!(
        world.apply(update(event)).unwrap_err().code(),
        "invalid_request"
    );
    let live = world.hold("ann", "A-1");
    let call_off = || Command::CancelEvent {
        event,
        reason: text("fire"),
    };
    let applied = world.apply(call_off()).unwrap();
    assert_eq!(applied.holds, [live]);
    assert_eq!(
        world.inventory.hold(live).unwrap().state,
        HoldState::Revoked(text("fire"))
    );
    assert!(!world.apply(call_off()).unwrap().has_effect());
    assert_eq!(
        world.try_best("ann", 1).unwrap_err(),
        Rejection::NotOnSale { opens_at: None }
    );
}

#[test]
#[should_panic(expected = "the id of a new hold is another's already")]
fn an_id_that_exists_stops_the_writer() {
    let mut world = world();
    let hold = world.hold("ann", "A-1");
    let wish = Wish::Named(world.select("A-2"));
    let (event, holder) = (world.event, holder("bob"));
    let new = NewHold {
        event,
        hold,
        holder,
        wish,
        ttl: None,
        ttl_max: TtlMax::HoldMax,
    };
    drop(world.apply(Command::Hold(new)));
}
