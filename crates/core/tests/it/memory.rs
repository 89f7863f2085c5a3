//! What a ledger puts back into an inventory, asks of it, and takes out of it again.

use soldonce_core::limits::PRICE_MAX;
use soldonce_core::{
    Amount, Command, Deadline, Event, EventId, EventNo, HoldId, Inventory, Origin, Policy,
    Rejection, Selection, Seq, Span, Timestamp, Unit, UnitNo, UnitState,
};

use crate::world::{World, booked, held, holder, on, policy, rows_and_floor, text};

fn world() -> World {
    World::new(rows_and_floor(&[5], 4), policy())
}

#[test]
fn an_inventory_begins_with_the_number_it_is_told() {
    let mut inventory = Inventory::starting_at(EventNo(7));
    let world = world();
    let event = Event::clone(world.inventory.events().next().unwrap());
    let event = Event {
        no: EventNo(7),
        ..event
    };
    inventory.restore_event(event, Seq(3));
    assert_eq!(inventory.event(EventNo(7)).unwrap().no, EventNo(7));
    assert!(inventory.event(EventNo(0)).is_none());
    let id = EventId::parse("gone").unwrap();
    inventory.restore_dropped(id.clone());
    assert_eq!(inventory.find_event(&id), Some(EventNo(8)));
    assert!(inventory.event(EventNo(8)).is_none());
    let dropped: Vec<_> = inventory.dropped().collect();
    assert_eq!(dropped, [(&id, EventNo(8))]);
}

#[test]
fn a_dropped_event_takes_its_own_with_it_and_nothing_else() {
    let mut world = world();
    let first = world.event;
    let stays = world.hold("ann", "A-1");
    let paid = booked(&{
        let hold = world.hold("bob", "A-2");
        world.confirm(hold).unwrap()
    })
    .id;
    let second = world.add_event("second", rows_and_floor(&[5], 0), policy());
    world.event = second;
    world.wait(1_000);
    let goes = world.hold("ann", "A-1");
    assert_eq!(world.inventory.live_holds(first), 1);
    assert_eq!(world.inventory.live_holds(second), 1);
    world.inventory.drop_event(second);
    assert!(world.inventory.hold(goes).is_none() && world.inventory.hold(stays).is_some());
    assert!(world.inventory.booking(paid).is_some());
    assert_eq!(world.inventory.live_holds(second), 0);
    assert_eq!(
        world.inventory.next_expiry(),
        world.inventory.hold(stays).map(|hold| hold.expires_at)
    );
    world.forgive();
}

#[test]
fn a_unit_that_is_not_there_is_given_back() {
    let mut world = world();
    let blocked = Unit {
        state: UnitState::Blocked,
        ..Unit::default()
    };
    let event = world.event;
    let restore =
        |world: &mut World, event, no| world.inventory.restore_unit(event, UnitNo(no), blocked);
    assert_eq!(restore(&mut world, event, 8), Ok(()));
    assert_eq!(restore(&mut world, event, 9), Err(UnitNo(9)));
    assert_eq!(restore(&mut world, EventNo(5), 0), Err(UnitNo(0)));
    world.forgive();
}

#[test]
fn a_holders_account_is_there_while_it_says_something() {
    let mut world = world();
    let (event, ann) = (world.event, holder("ann"));
    let asked = |world: &World| {
        let inventory = &world.inventory;
        (
            inventory.has_account(event, &ann),
            inventory.holds_of(event, &ann),
            inventory.last_end_past(event, &ann, world.now),
        )
    };
    assert_eq!(asked(&world), (false, vec![], None));
    let first = world.hold("ann", "A-1");
    world.wait(1_000);
    let second = world.hold("ann", "A-2");
    assert_eq!(asked(&world), (true, vec![first, second], None));
    let end = |world: &World, id| world.inventory.hold(id).unwrap().expires_at;
    world.now = end(&world, first);
    let past = Some(world.now);
    assert_eq!(asked(&world), (true, vec![first, second], past));
    world.now = end(&world, second);
    let past = Some(world.now);
    assert_eq!(asked(&world), (true, vec![first, second], past));
    world.sweep();
    assert_eq!(asked(&world), (false, vec![], None), "no entry is left");
    world.inventory.restore_bought(event, &ann, 2);
    assert_eq!(asked(&world), (true, vec![], None));
    world.inventory.replace_bought(event, &ann, 0);
    assert_eq!(asked(&world), (false, vec![], None));
}

#[test]
fn a_hold_that_is_taken_out_counts_no_more() {
    let mut world = world();
    let (event, ann) = (world.event, holder("ann"));
    let live = world.hold("ann", "A-1");
    let over = world.hold("ann", "A-2");
    world.apply(Command::Release { on: on(over) }).unwrap();
    world.inventory.drop_hold(over);
    assert_eq!(world.inventory.holds_of(event, &ann), [live]);
    world.inventory.drop_hold(live);
    assert!(!world.inventory.has_account(event, &ann));
    assert_eq!(world.inventory.live_holds(event), 0);
    assert_eq!(world.inventory.next_expiry(), None);
    world.forgive();
}

#[test]
fn an_event_is_replaced_by_what_was_stored_of_it() {
    let mut world = world();
    let event = Event::clone(world.inventory.event(world.event).unwrap());
    let policy = Policy {
        sale_closes_at: Deadline::At(world.now),
        ..event.policy.clone()
    };
    world.inventory.replace_event(Event { policy, ..event });
    let refused = world.try_hold("ann", "A-1");
    assert_eq!(
        refused.unwrap_err(),
        Rejection::NotOnSale { opens_at: None }
    );
}

#[test]
fn a_hold_tells_what_it_ended_for() {
    let mut world = world();
    let state = |world: &World, id| world.inventory.hold(id).unwrap().state.clone();
    let paid = world.hold("ann", "A-1");
    assert_eq!(state(&world, paid).booking(), None);
    let booking = booked(&world.confirm(paid).unwrap()).id;
    assert_eq!(state(&world, paid).booking(), Some(booking));
    assert_eq!(state(&world, paid).reason(), None);
    let revoked = world.hold("bob", "A-2");
    let revoke = Command::Revoke {
        hold: revoked,
        reason: text("a mistake"),
    };
    world.apply(revoke).unwrap();
    assert_eq!(state(&world, revoked).reason(), Some(&text("a mistake")));
}

/// What is kept is not taken back by the next trial's end.
#[test]
fn a_trial_that_is_kept_stays() {
    let mut world = world();
    let origin = Origin::system("test");
    let release = |hold: HoldId| Command::Release { on: on(hold) };
    let hold = world.hold("ann", "A-1");
    let now = world.now;
    world.inventory.begin_trial(0);
    let kept = world.inventory.apply(now, &origin, release(hold));
    kept.unwrap();
    world.inventory.keep();
    world.inventory.begin_trial(0);
    world.inventory.roll_back();
    assert!(world.inventory.hold(hold).unwrap().state.is_terminal());
    world.forgive();
}

#[test]
fn the_same_event_again_is_no_other_one() {
    let mut world = world();
    let event = Event::clone(world.inventory.event(world.event).unwrap());
    let new = |fingerprint| soldonce_core::NewEvent {
        id: event.id.clone(),
        name: event.name.clone(),
        starts_at: None,
        currency: event.currency,
        chart: world.chart(),
        prices: [("Seat", 1_000), ("Standing", 2_000)]
            .map(|(name, price)| (name.to_owned(), Amount::price(price).unwrap()))
            .into(),
        policy: policy(),
        fingerprint,
    };
    let (same, other) = (new([0; 32]), new([1; 32]));
    let dear = soldonce_core::NewEvent {
        id: EventId::parse("dear").unwrap(),
        prices: ["Seat", "Standing"]
            .map(|name| (name.to_owned(), Amount::from_minor(PRICE_MAX + 1)))
            .into(),
        ..new([2; 32])
    };
    let unnamed = ["", " \u{a0}"].map(|name| soldonce_core::NewEvent {
        id: EventId::parse("unnamed").unwrap(),
        name: soldonce_core::Text::parse(name).unwrap(),
        ..new([3; 32])
    });
    let create = |new| Command::CreateEvent(Box::new(new));
    assert!(world.apply(create(same)).is_ok());
    for wrong in unnamed.into_iter().chain([dear]) {
        assert!(matches!(
            world.apply(create(wrong)),
            Err(Rejection::Invalid(_))
        ));
    }
    assert_eq!(
        world.apply(create(other)).unwrap_err(),
        Rejection::EventExists
    );
}

#[test]
fn staff_name_so_many_units_at_once_and_no_more() {
    let most = u32::try_from(soldonce_core::limits::UNITS_PER_STAFF_COMMAND_MAX).unwrap();
    let mut world = World::new(rows_and_floor(&[1], most + 1), policy());
    let event = world.event;
    let block = |world: &World, places: u32| Command::Block {
        event,
        selection: world.select(&format!("floor*{places}")),
        reason: text("closed"),
    };
    let more = block(&world, most + 1);
    assert_eq!(
        world.apply(more).unwrap_err(),
        Rejection::TooManyUnits { limit: most }
    );
    let all = block(&world, most);
    world.apply(all).unwrap();
    let none = Command::Block {
        event,
        selection: Selection::default(),
        reason: text("closed"),
    };
    assert!(matches!(world.apply(none), Err(Rejection::Invalid(_))));
}

/// A hold that is extended for as long as it may be ends at its cap, which is no violation.
#[test]
fn a_hold_may_end_at_its_cap() {
    let mut world = world();
    let hold = world.hold("ann", "A-1");
    world.wait(20_000);
    let extend = Command::Extend {
        on: on(hold),
        ttl: Some(Span::from_ms(170_000)),
        ttl_max: soldonce_core::TtlMax::HoldMax,
    };
    let extended = world.apply(extend).unwrap();
    let hold = held(&extended);
    assert_eq!(hold.expires_at, hold.max_expires_at);
    assert!(hold.expires_at > Timestamp::MIN);
}
