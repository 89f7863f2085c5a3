//! What an inventory keeps: nothing that waits is forgotten, nothing is made twice.

use soldonce_core::limits::ENDED_UNITS_MAX;
use soldonce_core::{
    Answer, Command, Effect, EventChange, EventNo, HoldState, NewHold, PaymentState, Policy,
    PolicyChange, Rejection, Span, StateKind, Timestamp, TtlMax, Wish,
};

use super::{change, world};
use crate::world::{World, booked, held, holder, on, policy, rows_and_floor, text};

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
    let update = |event| Command::UpdateEvent {
        event,
        change: Box::new(PolicyChange::from(&*policy).into()),
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

/// A title that was mistyped, a show that moves: what ends at the start moves with it.
#[test]
fn an_event_gets_another_name_and_start() {
    let mut world = world();
    let event = world.event;
    let update = |world: &mut World, change: EventChange| {
        let change = Box::new(change);
        world.apply(Command::UpdateEvent { event, change })
    };
    let moved = |name: &str, starts_at| EventChange {
        name: Some(text(name)),
        starts_at: Some(starts_at),
        ..EventChange::default()
    };
    let (now, later) = (world.now, world.now.plus(Span::from_ms(1)));
    update(&mut world, moved("Othello", now)).unwrap();
    let over = world.try_hold("ann", "A-1").unwrap_err();
    assert_eq!(over, Rejection::NotOnSale { opens_at: None });
    update(&mut world, moved("Othello", later)).unwrap();
    world.hold("ann", "A-1");
    let opens_late = Policy {
        sale_opens_at: Some(later),
        ..policy()
    };
    let opens_late = EventChange {
        starts_at: Some(later),
        ..PolicyChange::from(&opens_late).into()
    };
    for wrong in [moved(" ", later), opens_late] {
        let refused = update(&mut world, wrong).unwrap_err();
        assert_eq!(refused.code(), "invalid_request");
    }
    let found = world.inventory.event(event).unwrap();
    assert_eq!(
        (&found.name, found.starts_at),
        (&text("Othello"), Some(later))
    );
    assert_eq!(found.policy, policy());
}

/// One commit ends so many holds and not more; for all others the event is over at once, too.
#[test]
fn a_large_event_is_called_off_in_parts() {
    let rules = Policy {
        units_per_hold_max: 64,
        units_per_holder_max: 64,
        ..policy()
    };
    let mut world = World::new(rows_and_floor(&[4], 65 * 64), rules);
    let paying = world.hold("ann", "A-1");
    let booking = booked(&world.checkout(paying).unwrap()).id;
    let left = world.hold("bob", "A-2");
    world.wait(1);
    for n in 0..=ENDED_UNITS_MAX / 64 {
        world.hold(&format!("buyer-{n}"), "floor*64");
    }
    let (event, reason) = (world.event, text("fire"));
    let call_off = Command::CancelEvent {
        event,
        reason: reason.clone(),
    };
    let applied = world.apply(call_off).unwrap();
    assert_eq!(applied.holds.len(), ENDED_UNITS_MAX / 64);
    assert_eq!(world.inventory.live_holds(event), 3);
    assert_eq!(world.inventory.next_expiry(), Some(Timestamp::MIN));
    let revoked = HoldState::Revoked(reason.clone());
    let shown = |world: &World, hold| {
        let event = world.inventory.event(world.event).unwrap();
        let found = world.inventory.hold(hold).unwrap();
        found.state_in(event, world.now)
    };
    assert_eq!(shown(&world, left), revoked);
    let gone = Rejection::HoldRevoked(reason.clone());
    assert_eq!(world.confirm(left).unwrap_err(), gone);
    assert_eq!(world.checkout(left).unwrap_err(), gone);
    assert_eq!(change(&mut world, left, "A-3", "").unwrap_err(), gone);
    for command in [
        Command::Extend {
            on: on(left),
            ttl: None,
            ttl_max: TtlMax::HoldMax,
        },
        Command::Abandon {
            on: on(left),
            booking: None,
        },
        Command::Release { on: on(left) },
    ] {
        assert_eq!(world.apply(command).unwrap_err(), gone);
    }
    let again = world.try_hold("bob", "A-2").unwrap_err();
    assert_eq!(again, Rejection::NotOnSale { opens_at: None });
    let paid = world.pay(booking, PaymentState::Authorised).unwrap();
    assert_eq!(paid.effects, [Effect::Void(booking)]);
    assert_eq!(world.inventory.hold(paying).unwrap().state, revoked);
    let swept = world.apply(Command::Sweep { limit: 1 }).unwrap();
    assert!(matches!(swept.answer, Answer::Swept(64)));
    assert_eq!(swept.commits[0].reason, Some(reason));
    let (hold, reason) = (left, text("again"));
    let staff = world.apply(Command::Revoke { hold, reason }).unwrap();
    assert_eq!(held(&staff).state, revoked);
    assert_eq!(world.state("A-2"), StateKind::Free);
    assert_eq!(world.inventory.next_expiry(), None);
}

/// What is left of an event that was called off may take many commits.
#[test]
fn what_the_clock_ended_does_not_wait_for_an_event_that_was_called_off() {
    let rules = Policy {
        units_per_hold_max: 64,
        units_per_holder_max: 64,
        ..policy()
    };
    let mut world = World::new(rows_and_floor(&[4], 65 * 64), rules);
    let called_off = world.event;
    world.event = world.add_event("open", rows_and_floor(&[4], 0), policy());
    let over = [world.hold("ann", "A-1"), world.hold("bob", "A-2")];
    world.event = called_off;
    world.wait(1);
    for n in 0..=ENDED_UNITS_MAX / 64 {
        world.hold(&format!("buyer-{n}"), "floor*64");
    }
    let (event, reason) = (called_off, text("fire"));
    let call_off = Command::CancelEvent {
        event,
        reason: reason.clone(),
    };
    world.apply(call_off).unwrap();
    world.wait(policy().hold_ttl.ms() - 1);
    let first = world.apply(Command::Sweep { limit: 1 }).unwrap();
    assert!(matches!(first.answer, Answer::Swept(1)));
    assert_eq!(first.holds, [over[0]]);
    let both = world.apply(Command::Sweep { limit: 65 }).unwrap();
    assert!(matches!(both.answer, Answer::Swept(65)));
    assert_eq!(both.holds.first(), Some(&over[1]));
    let reasons: Vec<_> = both.commits.iter().map(|commit| &commit.reason).collect();
    assert_eq!(reasons, [&None, &Some(reason)]);
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
