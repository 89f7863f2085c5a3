//! What a holder may have, and what the box office may sell.

use std::collections::BTreeSet;

use soldonce_core::{
    Adjacency, Authority, Basis, Budget, Command, Deadline, Fence, LineChoice, Policy, Rejection,
    StateKind, Timestamp,
};

use super::{change, world, world_with};
use crate::world::{World, booked, held, holder, on, policy};

fn over_budget(budget: Budget, limit: u32, used: u32) -> Rejection {
    Rejection::BudgetExceeded {
        budget,
        limit,
        used,
    }
}

#[test]
fn a_holder_has_so_many_units_live_at_once() {
    let mut world = world_with(Policy {
        units_per_holder_max: 5,
        ..policy()
    });
    world.hold("ann", "A-1 A-2 A-3");
    let refusal = world.try_hold("ann", "B-1 B-2 B-3").unwrap_err();
    assert_eq!(refusal, over_budget(Budget::Held, 5, 3));
    world.hold("ann", "B-1 floor*1");
    assert!(world.try_best("ann", 1).is_err());
    world.hold("bob", "B-2 B-3 B-4 B-5 B-6");
    // Over, though no sweep wrote it down: it does not count.
    world.wait(60_000);
    world.hold("ann", "A-1 A-2 A-3 A-4 A-5");
    assert_eq!(
        world.try_hold("ann", "B-1").unwrap_err(),
        over_budget(Budget::Held, 5, 5)
    );
}

#[test]
fn a_changed_hold_counts_once_against_the_budget() {
    let mut world = world_with(Policy {
        units_per_holder_max: 5,
        ..policy()
    });
    let hold = world.hold("ann", "A-1 A-2 A-3");
    world.hold("ann", "B-1");
    assert_eq!(
        change(&mut world, hold, "A-4 A-5", ""),
        Err(over_budget(Budget::Held, 5, 1))
    );
    let (units, fence) = change(&mut world, hold, "A-4 A-5", "A-1").unwrap();
    assert_eq!((units.as_str(), fence), ("A-2 A-3 A-4 A-5", Fence(2)));
    assert_eq!(world.state("A-1"), StateKind::Free);
}

#[test]
fn what_is_held_counts_against_what_may_be_bought() {
    let mut world = world_with(Policy {
        units_bought_per_holder_max: Some(3),
        ..policy()
    });
    let bought = world.hold("ann", "A-1");
    let booking = booked(&world.confirm(bought).unwrap()).id;
    world.hold("ann", "A-2");
    let refusal = world.try_hold("ann", "B-1 B-2").unwrap_err();
    assert_eq!(refusal, over_budget(Budget::Bought, 3, 2));
    assert_eq!(
        sell(&mut world, "ann", "B-1 B-2"),
        Err(over_budget(Budget::Bought, 3, 2))
    );
    // What was given back may be bought again.
    let lines = LineChoice::All;
    world
        .apply(Command::Cancel {
            booking,
            by: Authority::Staff,
            lines,
        })
        .unwrap();
    assert_eq!(sell(&mut world, "ann", "B-1 B-2"), Ok("B-1 B-2".to_owned()));
}

fn sell(world: &mut World, name: &str, units: &str) -> Result<String, Rejection> {
    let (event, selection, booking) = (world.event, world.select(units), world.mint_booking());
    let holder = holder(name);
    let sell = Command::Sell {
        event,
        selection,
        holder,
        booking,
        reference: None,
    };
    let applied = world.apply(sell)?;
    Ok(world.names(booked(&applied).lines.iter().map(|line| line.unit)))
}

#[test]
fn the_box_office_keeps_the_rules_of_the_hall() {
    let mut world = world_with(Policy {
        adjacency: Adjacency::NoOrphan,
        sale_opens_at: Some(Timestamp::from_ms(1_000_500)),
        ..policy()
    });
    let opens_at = Some(Timestamp::from_ms(1_000_500));
    assert_eq!(
        sell(&mut world, "ann", "A-1"),
        Err(Rejection::NotOnSale { opens_at })
    );
    world.wait(500);
    let orphan = Rejection::AdjacencyRefused(vec![world.unit("A-1")]);
    assert_eq!(sell(&mut world, "ann", "A-2"), Err(orphan));
    // More units than a hold may have.
    let all = "A-1 A-2 A-3 A-4 A-5 A-6 A-7 A-8 B-1 B-2 B-3 B-4 floor*10";
    assert!(sell(&mut world, "ann", all).is_ok());
}

/// What the write of a ledger of several servers must compare.
#[test]
fn a_decision_says_what_it_rests_on() {
    let mut world = world_with(Policy {
        adjacency: Adjacency::NoOrphan,
        ..policy()
    });
    let applied = world.try_hold("ann", "A-3 A-4").unwrap();
    assert_eq!(applied.basis.holders, [holder("ann")]);
    let seats: BTreeSet<_> = applied.basis.units.iter().copied().collect();
    assert_eq!(world.names(seats), "A-1 A-2 A-3 A-4 A-5 A-6");
    let hold = held(&applied).id;
    let applied = world.apply(Command::Release { on: on(hold) }).unwrap();
    assert_eq!(applied.basis, Basis::default());
    let chosen = world.try_best("ann", 2).unwrap();
    assert!(chosen.basis.units.len() > 2, "{:?}", chosen.basis);
}

/// The holder comes closer to what is allowed now: that must not be refused.
#[test]
fn dropping_units_needs_no_budget() {
    let mut world = world();
    let hold = world.hold("ann", "A-1 A-2 A-3 A-4");
    let strict = Policy {
        units_per_hold_max: 2,
        units_per_holder_max: 2,
        sale_closes_at: Deadline::At(world.now),
        ..policy()
    };
    world.set(&strict);
    // Nor is the own hold refused to who asks for it again, as after a lost reply.
    assert_eq!(world.hold("ann", "A-1 A-2 A-3 A-4"), hold);
    assert!(world.try_hold("bob", "A-6").is_err());
    assert_eq!(
        change(&mut world, hold, "", "A-1").unwrap().0,
        "A-2 A-3 A-4"
    );
    assert!(change(&mut world, hold, "A-5", "A-2").is_err());
}
