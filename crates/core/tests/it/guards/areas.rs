//! Areas, takeovers and changes: any open places, and old holds ended whole.

use soldonce_core::{
    Answer, Command, Conflict, Fence, HoldState, NewHold, Origin, Rejection, StateKind, TtlMax,
    Wish,
};

use super::{change, unknown, world};
use crate::world::{held, holder, on, text};

/// T4: a hold that takes one unit of another that is over ends the whole of it, also over areas.
#[test]
fn a_takeover_ends_the_whole_old_hold() {
    let mut world = world();
    let old = world.hold("ann", "A-1 A-2 floor*8");
    world.wait(60_000);
    assert_eq!(
        world.state("A-2"),
        StateKind::Held,
        "no sweep wrote it down yet"
    );
    let applied = world.try_hold("bob", "floor*3").unwrap();
    let new = held(&applied);
    assert_eq!(
        world.names(new.units.iter().map(|held| held.unit)),
        "floor.1 floor.2 floor.3"
    );
    assert_eq!(new.fence, Fence(2), "above the fence of the old hold");
    assert_eq!(applied.holds, [old, new.id]);
    assert_eq!(applied.commits.len(), 1, "both in one commit");
    assert_eq!(world.inventory.hold(old).unwrap().state, HoldState::Expired);
    for name in ["A-1", "A-2", "floor.4", "floor.8"] {
        assert_eq!(world.state(name), StateKind::Free, "{name}");
    }
}

#[test]
fn areas_give_any_places_that_are_open() {
    let mut world = world();
    let first = world.hold("ann", "floor*3");
    world.hold("bob", "floor*5");
    let Err(Rejection::UnitUnavailable(refusal)) = world.try_hold("cid", "floor*3 A-1") else {
        panic!("two places are free");
    };
    let area = soldonce_core::AreaNo(0);
    assert_eq!(refusal.conflicts, [Conflict::Area { area, free: 2 }]);
    assert_eq!(refusal.alternatives, [], "nothing is near a full area");
    assert_eq!(world.state("A-1"), StateKind::Free, "all or nothing");
    world.apply(Command::Release { on: on(first) }).unwrap();
    let third = world.hold("cid", "floor*5");
    let hold = world.inventory.hold(third).unwrap();
    let places = world.names(hold.units.iter().map(|held| held.unit));
    assert_eq!(places, "floor.1 floor.2 floor.3 floor.9 floor.10");
}

#[test]
fn a_change_takes_and_drops_places() {
    let mut world = world();
    let hold = world.hold("ann", "A-1 floor*2");
    let (units, fence) = change(&mut world, hold, "floor*2", "A-1").unwrap();
    assert_eq!(
        (units.as_str(), fence),
        ("floor.1 floor.2 floor.3 floor.4", Fence(2))
    );
    let (units, fence) = change(&mut world, hold, "A-1", "floor*3").unwrap();
    assert_eq!((units.as_str(), fence), ("A-1 floor.1", Fence(3)));
    let (units, _) = change(&mut world, hold, "A-1", "").unwrap();
    assert_eq!(units, "A-1 floor.1", "what it has already is no change");
    let refusals = [
        ("", "floor*2", "unknown_unit"),
        ("", "A-2", "unknown_unit"),
        ("A-1", "A-1", "invalid_request"),
        ("", "A-1 floor*1", "invalid_request"),
        ("floor*10", "", "too_many_units"),
    ];
    for (add, drop, code) in refusals {
        let refusal = change(&mut world, hold, add, drop).unwrap_err();
        assert_eq!(refusal.code(), code, "+ {add} - {drop}");
    }
}

#[test]
fn blocked_places_come_back() {
    let mut world = world();
    let (event, selection) = (world.event, world.select("A-2 floor*4"));
    let reason = text("camera");
    let block = Command::Block {
        event,
        selection: selection.clone(),
        reason: reason.clone(),
    };
    let applied = world.apply(block).unwrap();
    assert_eq!(applied.commits[0].reason, Some(reason.clone()));
    let more = Command::Unblock {
        event,
        selection: world.select("A-1 floor*5"),
        reason,
    };
    let Err(Rejection::UnitUnavailable(refusal)) = world.apply(more) else {
        panic!("four places are blocked");
    };
    assert_eq!(refusal.conflicts.len(), 2);
    let some = Command::Unblock {
        event,
        selection: world.select("floor*3"),
        reason: text("sold"),
    };
    let Answer::Units(_, units) = world.apply(some).unwrap().answer else {
        panic!("units were unblocked");
    };
    assert_eq!(world.names(units), "floor.1 floor.2 floor.3");
}

#[test]
fn a_request_names_what_the_chart_has() {
    let world = world();
    let chart = world.chart();
    let names = ["A-1", "Z-9", "A-1"];
    assert_eq!(
        chart.select(names, [("stalls", 1)]),
        Err(unknown(&["Z-9", "stalls"]))
    );
    let twice = chart
        .select(["A-2", "A-1", "A-2"], [("floor", 1), ("floor", 2)])
        .unwrap();
    assert_eq!(
        (twice.seats().len(), twice.count()),
        (2, 5),
        "doubles count once, places add up"
    );
    assert!(chart.select([], [("floor", 0)]).unwrap().is_empty());
}

/// A server that decides at the same moment takes other places, and no fewer.
#[test]
fn places_are_taken_from_an_open_one_on_and_around() {
    let mut world = world();
    world.hold("ann", "floor*2");
    let wish = Command::Hold(NewHold {
        event: world.event,
        hold: world.mint_hold(),
        holder: holder("bob"),
        wish: Wish::Named(world.select("floor*3")),
        ttl: None,
        ttl_max: TtlMax::HoldMax,
    });
    let mut taken = |from| {
        world.inventory.begin_trial(from);
        let origin = Origin::system("test");
        let applied = world.inventory.apply(world.now, &origin, wish.clone());
        world.inventory.roll_back();
        let hold = held(&applied.unwrap()).clone();
        world.names(hold.units.iter().map(|held| held.unit))
    };
    assert_eq!(taken(0), "floor.3 floor.4 floor.5");
    assert_eq!(taken(1), "floor.4 floor.5 floor.6");
    assert_eq!(taken(6), "floor.3 floor.9 floor.10");
    assert_eq!(taken(8), taken(0), "there are eight");
}
