//! Worlds with too many states to see all of them: random ways, each from the beginning to its end.

use std::collections::BTreeSet;

use soldonce_lease::{Entropy, SeededEntropy};
use stateright::{Expectation, Model};

use super::world::World;
use super::{Bounds, Leases, bounds, say};

/// Longest way. Renewals and replication could go on for ever.
const STEPS: usize = 60;

/// Goes `ways` ways and returns what was seen on them.
fn walk(model: &Leases, ways: u64) -> BTreeSet<&'static str> {
    let mut seen = BTreeSet::new();
    for seed in 0..ways {
        let dice = SeededEntropy::new(seed);
        let mut world = model.init_states().remove(0);
        for _ in 0..STEPS {
            let Some(next) = step(model, &world, &dice) else {
                break;
            };
            world = next;
            seen.extend(look(model, &world, seed));
        }
    }
    seen
}

fn step(model: &Leases, world: &World, dice: &SeededEntropy) -> Option<World> {
    let mut actions = Vec::new();
    model.actions(world, &mut actions);
    let mut bits = [0; 8];
    dice.fill(&mut bits);
    let count = u64::try_from(actions.len()).ok()?;
    let at = u64::from_le_bytes(bits).checked_rem(count)?;
    let action = actions.swap_remove(usize::try_from(at).ok()?);
    // An action that changes nothing is a step too.
    Some(
        model
            .next_state(world, action)
            .unwrap_or_else(|| world.clone()),
    )
}

fn look(model: &Leases, world: &World, seed: u64) -> Vec<&'static str> {
    let mut found = Vec::new();
    for property in model.properties() {
        let holds = (property.condition)(model, world);
        match property.expectation {
            Expectation::Always => assert!(holds, "way {seed}: {}: {world:#?}", property.name),
            _ if holds => found.push(property.name),
            _ => {}
        }
    }
    found
}

fn seen_within((restores, bounds): (bool, Bounds)) -> BTreeSet<&'static str> {
    let ways = 4_000;
    let model = Leases {
        bug: None,
        bounds,
        restores,
    };
    let seen = walk(&model, ways);
    say(&format!("{ways} random ways: {bounds:?}"));
    seen
}

#[test]
fn two_faults_and_lost_messages() {
    assert_eq!(seen_within((false, bounds(4, 2, 2))).len(), 4);
}

#[test]
fn an_epoch_source_that_went_back() {
    assert_eq!(seen_within((true, bounds(4, 2, 1))).len(), 4);
}

#[test]
#[should_panic(expected = "tokens of grants rise")]
fn random_ways_catch_a_bug_too() {
    let model = Leases {
        bug: Some(super::Bug::AskIgnored),
        bounds: bounds(4, 2, 2),
        restores: false,
    };
    walk(&model, 4_000);
}
