//! Mistakes that were made elsewhere, or in drafts of this design: the model sees each of them.

use stateright::{Checker, HasDiscoveries, Model};

use super::{Bounds, Bug, Leases, bounds, failures, say};

/// Fails unless the bug breaks this property in a world of these bounds.
fn breaks(bug: Bug, (restores, bounds): (bool, Bounds), property: &str) {
    let model = Leases {
        bug: Some(bug),
        bounds,
        restores,
    };
    let checker = model.checker().finish_when(HasDiscoveries::AnyFailures);
    // Deep first: a broken world is many steps away, and broken worlds are many.
    let explored = checker.spawn_dfs().join();
    let states = explored.unique_state_count();
    say(&format!("{bug:?}: seen among {states} states"));
    assert_eq!(failures(&explored), [property]);
}

const RISE: &str = "tokens of grants rise";
const STALE: &str = "no lower token writes after a higher one";
const ONE: &str = "one live owner on each server";

#[test]
fn catches_a_count_without_an_epoch() {
    breaks(Bug::BareCount, (false, bounds(2, 1, 0)), RISE);
}

#[test]
fn catches_an_epoch_used_again() {
    breaks(Bug::EpochReused, (false, bounds(2, 1, 0)), RISE);
}

#[test]
fn catches_an_epoch_that_was_overtaken_on_its_way() {
    breaks(Bug::AskIgnored, (false, bounds(2, 1, 0)), RISE);
}

#[test]
fn catches_a_promoted_server_that_goes_on_in_the_old_epoch() {
    breaks(Bug::RunIgnored, (false, bounds(2, 1, 0)), RISE);
}

#[test]
fn catches_a_target_without_a_gate() {
    breaks(Bug::NoGate, (false, bounds(2, 0, 0)), STALE);
}

#[test]
fn catches_a_renewal_that_creates() {
    breaks(Bug::RenewCreates, (false, bounds(2, 0, 0)), ONE);
}

#[test]
fn catches_a_release_that_compares_nothing() {
    breaks(Bug::BlindDelete, (false, bounds(3, 0, 0)), ONE);
}

#[test]
fn catches_a_floor_that_is_not_looked_at() {
    let world = (true, bounds(3, 1, 0));
    breaks(Bug::FloorIgnored, world, "a grant is above its floor");
}
