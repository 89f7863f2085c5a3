//! Whose a unit is: fences, and who may give back or swap it until when.

use soldonce_core::{
    Authority, CallerId, Change, Command, Deadline, Fence, LineChoice, OnHold, PaymentState,
    Policy, Rejection, Selection, StateKind, Timestamp,
};

use super::{unknown, world, world_with};
use crate::world::{World, booked, exchange_of, holder, on, on_fence, policy};

#[test]
fn fences_rise_with_every_owner() {
    let mut world = world();
    let first = world.hold("ann", "A-1 A-2");
    world.apply(Command::Release { on: on(first) }).unwrap();
    let second = world.hold("bob", "A-2 A-3");
    assert_eq!(
        world.inventory.hold(second).unwrap().fence,
        Fence(2),
        "1 + the newest of its units"
    );
    let booking = booked(&world.confirm(second).unwrap()).id;
    let lines = LineChoice::Some {
        units: vec![world.unit("A-3")],
        places: Selection::default(),
    };
    world
        .apply(Command::Cancel {
            booking,
            by: Authority::Secret,
            lines,
        })
        .unwrap();
    let third = world.hold("cid", "A-3 A-4");
    assert_eq!(
        world.inventory.hold(third).unwrap().fence,
        Fence(4),
        "giving back raises it too"
    );
    let stale = on_fence(third, Fence(3));
    assert_eq!(
        world.apply(Command::Release { on: stale }).unwrap_err(),
        Rejection::StaleFence(Fence(4))
    );
    world
        .apply(Command::Release {
            on: on_fence(third, Fence(4)),
        })
        .unwrap();
}

/// Units that were never held have low fences; a hold that swaps all of its own for such units keeps
/// a fence above every one it had. Otherwise a command that was sent under an old fence would one
/// day pass again.
#[test]
fn the_fence_of_a_hold_rises_though_all_its_units_are_swapped() {
    let mut world = world();
    for _ in 0..3 {
        let before = world.hold("bob", "A-1");
        world.apply(Command::Release { on: on(before) }).unwrap();
    }
    let hold = world.hold("ann", "A-1");
    let swap = |world: &World, drop: &str, add: &str| {
        Command::Change(Box::new(Change {
            on: on(hold),
            add: world.select(add),
            drop: world.select(drop).seats().to_vec(),
            drop_places: Selection::default(),
        }))
    };
    assert_eq!(world.inventory.hold(hold).unwrap().fence, Fence(4));
    for (drop, add, fence) in [("A-1", "B-2", 5), ("B-2", "B-3 B-4", 6), ("B-3", "", 7)] {
        world.apply(swap(&world, drop, add)).unwrap();
        assert_eq!(
            world.inventory.hold(hold).unwrap().fence,
            Fence(fence),
            "{drop} for {add}"
        );
    }
    let stale = on_fence(hold, Fence(4));
    assert_eq!(
        world.apply(Command::Release { on: stale }).unwrap_err(),
        Rejection::StaleFence(Fence(7))
    );
}

/// A secret proves one hold. With that alone no caller reaches another owner's booking.
#[test]
fn a_secret_opens_no_foreign_booking() {
    let mut world = world();
    let of_bob = world.hold("bob", "A-1");
    let booking = booked(&world.confirm(of_bob).unwrap()).id;
    let of_ann = world.hold("ann", "B-1");
    let give = vec![world.unit("A-1")];
    let exchange = |on: OnHold| exchange_of(booking, give.clone(), on);
    let refusal = world.apply(exchange(on(of_ann))).unwrap_err();
    assert_eq!(refusal, Rejection::BookingNotFound);
    let stranger = OnHold {
        by: Authority::Caller(CallerId::from_bits(8)),
        ..on(of_ann)
    };
    assert_eq!(
        world.apply(exchange(stranger)).unwrap_err(),
        Rejection::BookingNotFound
    );
    let staff = OnHold {
        by: Authority::Staff,
        ..on(of_ann)
    };
    let applied = world.apply(exchange(staff)).unwrap();
    assert_eq!(booked(&applied).holder, holder("bob"));
    assert_eq!(
        (world.state("A-1"), world.state("B-1")),
        (StateKind::Free, StateKind::Sold)
    );
}

#[test]
fn an_exchange_swaps_and_refunds_the_difference() {
    let mut world = world();
    let hold = world.hold("ann", "floor*1 A-1");
    let booking = booked(&world.checkout(hold).unwrap()).id;
    let state = PaymentState::Captured;
    world.pay(booking, state).unwrap();
    let cheaper = world.hold("ann", "B-1");
    let give = vec![world.unit("floor.1")];
    let applied = world
        .apply(exchange_of(booking, give.clone(), on(cheaper)))
        .unwrap();
    let lines = booked(&applied).lines.iter().map(|line| line.unit);
    assert_eq!(world.names(lines), "A-1 B-1");
    assert_eq!(
        (booked(&applied).total().minor(), applied.effects.len()),
        (2_000, 1)
    );
    let dearer = world.hold("ann", "floor*1");
    let refusal = world
        .apply(exchange_of(booking, vec![world.unit("A-1")], on(dearer)))
        .unwrap_err();
    assert_eq!(refusal, Rejection::PaymentRequired);
    let refusal = world
        .apply(exchange_of(booking, give, on(dearer)))
        .unwrap_err();
    assert_eq!(
        refusal.code(),
        "unknown_unit",
        "what was swapped away is no line any more"
    );
}

/// What was cancelled before stays in the record, also when the same unit comes and goes again.
#[test]
fn an_exchange_keeps_cancelled_lines() {
    let mut world = world();
    let hold = world.hold("ann", "A-1 A-2");
    let booking = booked(&world.confirm(hold).unwrap()).id;
    let by = Authority::Secret;
    let lines = LineChoice::Some {
        units: vec![world.unit("A-1")],
        places: Selection::default(),
    };
    world.apply(Command::Cancel { booking, by, lines }).unwrap();
    for (give, take) in [("A-2", "A-1"), ("A-1", "A-5")] {
        let on = on(world.hold("ann", take));
        let give = vec![world.unit(give)];
        world.apply(exchange_of(booking, give, on)).unwrap();
    }
    let booking = world.inventory.booking(booking).unwrap();
    let lines = booking
        .lines
        .iter()
        .map(|line| format!("{} {}", world.names([line.unit]), line.state.as_str()));
    assert_eq!(lines.collect::<Vec<_>>(), ["A-1 cancelled", "A-5 sold"]);
    assert_eq!(booking.state.as_str(), "partly_cancelled");
}

#[test]
fn owners_give_back_until_the_deadline_and_staff_always() {
    let until = Timestamp::from_ms(1_050_000);
    let mut world = world_with(Policy {
        cancel_until: Deadline::At(until),
        ..policy()
    });
    let hold = world.hold("ann", "A-1 A-2");
    let booking = booked(&world.confirm(hold).unwrap()).id;
    world.wait(49_999);
    let cancel = |world: &World, by, unit| {
        let lines = LineChoice::Some {
            units: vec![world.unit(unit)],
            places: Selection::default(),
        };
        Command::Cancel { booking, by, lines }
    };
    let in_time = cancel(&world, Authority::Secret, "A-1");
    world.apply(in_time).unwrap();
    world.wait(1);
    let late = cancel(&world, Authority::Secret, "A-2");
    assert_eq!(
        world.apply(late).unwrap_err(),
        Rejection::CancelClosed(until)
    );
    let other = on(world.hold("ann", "A-5"));
    let give = vec![world.unit("A-2")];
    let exchange = exchange_of(booking, give, other);
    assert_eq!(
        world.apply(exchange).unwrap_err(),
        Rejection::CancelClosed(until)
    );
    let by_staff = cancel(&world, Authority::Staff, "A-2");
    world.apply(by_staff).unwrap();
}

#[test]
fn lines_are_chosen_by_unit_and_by_area() {
    let mut world = world();
    let hold = world.hold("ann", "A-1 A-2 floor*4");
    let booking = booked(&world.confirm(hold).unwrap()).id;
    let mut cancel = |names: &str, also: &str| {
        let selection = world.select(names);
        let mut units = selection.seats().to_vec();
        units.extend((!also.is_empty()).then(|| world.unit(also)));
        let lines = LineChoice::Some {
            units,
            places: selection.without_seats(),
        };
        let applied = world.apply(Command::Cancel {
            booking,
            by: Authority::Secret,
            lines,
        })?;
        let sold = |line: &&soldonce_core::Line| line.state.as_str() == "sold";
        let sold = booked(&applied)
            .lines
            .iter()
            .filter(sold)
            .map(|line| line.unit);
        Ok(world.names(sold))
    };
    assert_eq!(
        cancel("A-1 floor*1", "floor.1"),
        Ok("A-2 floor.3 floor.4".to_owned())
    );
    assert_eq!(
        cancel("floor*3", ""),
        Err(Rejection::UnknownUnit(vec!["floor".to_owned()]))
    );
    assert_eq!(cancel("A-5 B-1", ""), Err(unknown(&["A-5", "B-1"])));
    assert_eq!(
        cancel("", "").map_err(|refusal| refusal.code()),
        Err("invalid_request")
    );
    assert_eq!(cancel("A-2 floor*2", ""), Ok(String::new()));
}
