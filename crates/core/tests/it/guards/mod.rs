//! Rules that one state and one command do not show.

mod areas;
mod budgets;
mod exchange;
mod owners;
mod records;
mod times;

use soldonce_core::{Change, Command, Fence, HoldId, Policy, Rejection};

use crate::world::{World, held, on, policy, rows_and_floor};

fn world() -> World {
    World::new(rows_and_floor(&[8, 8], 10), policy())
}

fn world_with(rules: Policy) -> World {
    World::new(rows_and_floor(&[8, 8], 10), rules)
}

fn change(world: &mut World, hold: HoldId, add: &str, drop: &str) -> Result<Selected, Rejection> {
    let drop = world.select(drop);
    let places = drop.clone().without_seats();
    let change = Change {
        on: on(hold),
        add: world.select(add),
        drop: drop.seats().to_vec(),
        drop_places: places,
    };
    let applied = world.apply(Command::Change(Box::new(change)))?;
    let hold = held(&applied);
    let units = world.names(hold.units.iter().map(|held| held.unit));
    Ok((units, hold.fence))
}

type Selected = (String, Fence);

fn unknown(names: &[&str]) -> Rejection {
    Rejection::UnknownUnit(names.iter().map(|name| (*name).to_owned()).collect())
}
