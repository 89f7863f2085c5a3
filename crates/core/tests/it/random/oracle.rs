//! A naive second opinion: what is available and what a command that takes units must answer, from
//! the lists of holds and bookings alone, without any index.

use std::collections::BTreeSet;

use soldonce_core::{
    Adjacency, Answer, Applied, CategoryNo, Command, EventNo, EventState, Hold, HoldId, Holder,
    NewHold, Policy, Rejection, Selection, Timestamp, Together, UnitNo, UnitState, Wish,
};

use super::checks::is_sold;
use super::play::{Fault, Play};
use crate::brute::{longest_run, orphans};
use crate::world::held;

/// What must be answered.
#[derive(Debug, PartialEq)]
pub(super) enum Verdict {
    /// This command is not judged here.
    Any,
    Taken,
    Own(HoldId),
    Refused(&'static str),
}

/// The units of an event that a new owner may take, by looking at every hold and booking.
fn available(play: &Play, event: EventNo) -> BTreeSet<UnitNo> {
    let inventory = &play.world.inventory;
    let seating = inventory.seating(event).unwrap();
    let live = |hold: &&Hold| !hold.state.is_terminal() && play.clock < hold.expires_at;
    let held = inventory
        .holds()
        .filter(|hold| hold.event == event)
        .filter(live);
    let held: BTreeSet<UnitNo> = held
        .flat_map(|hold| &hold.units)
        .map(|held| held.unit)
        .collect();
    let sold = inventory
        .bookings()
        .filter(|booking| booking.event == event);
    let sold = sold.flat_map(|booking| booking.lines.iter().filter(|line| is_sold(line)));
    let sold: BTreeSet<UnitNo> = sold.map(|line| line.unit).collect();
    let blocked = |unit: &UnitNo| seating.unit(*unit).state == UnitState::Blocked;
    let units = (0..inventory.event(event).unwrap().chart.units()).map(UnitNo);
    units
        .filter(|unit| !held.contains(unit) && !sold.contains(unit) && !blocked(unit))
        .collect()
}

pub(super) fn verdict(play: &Play, command: &Command) -> Verdict {
    if let Command::Hold(new) = command {
        hold_verdict(play, new)
    } else if let Command::Sell {
        event,
        selection,
        holder,
        ..
    } = command
    {
        sell_verdict(play, *event, selection, holder)
    } else if let Command::Block {
        event, selection, ..
    } = command
        && selection.count() > 0
    {
        let has_units = has_units(play, *event, selection, &available(play, *event));
        if has_units {
            Verdict::Taken
        } else {
            Verdict::Refused("unit_unavailable")
        }
    } else {
        Verdict::Any
    }
}

fn hold_verdict(play: &Play, new: &NewHold) -> Verdict {
    let event = play.world.inventory.event(new.event).unwrap();
    let policy = &event.policy;
    let count = new.wish.count();
    let ttl_fits = new
        .ttl
        .is_none_or(|ttl| (1_000..=policy.hold_max.ms()).contains(&ttl.ms()));
    let free = available(play, new.event);
    if let Wish::Named(selection) = &new.wish
        && let Some(own) = own_hold(play, new, selection)
    {
        return Verdict::Own(own);
    }
    if !on_sale(&event.state, policy, play.clock) {
        return Verdict::Refused("not_on_sale");
    }
    if count == 0 {
        return Verdict::Refused("invalid_request");
    }
    if count > policy.units_per_hold_max {
        return Verdict::Refused("too_many_units");
    }
    if !ttl_fits {
        return Verdict::Refused("invalid_request");
    }
    let named = match &new.wish {
        Wish::Best {
            quantity,
            category,
            together,
        } => {
            let found = best_exists(play, new.event, &free, (*quantity, *category, *together));
            if !found {
                return Verdict::Refused("unit_unavailable");
            }
            None
        }
        Wish::Named(selection) => Some(selection),
    };
    if named.is_some_and(|selection| !has_units(play, new.event, selection, &free)) {
        return Verdict::Refused("unit_unavailable");
    }
    let held = held_by(play, new.event, &new.holder);
    if held + count > policy.units_per_holder_max
        || !may_buy(play, new.event, &new.holder, held + count)
    {
        return Verdict::Refused("budget_exceeded");
    }
    match named {
        Some(selection) if leaves_orphans(play, new.event, selection, &free) => {
            Verdict::Refused("adjacency_refused")
        }
        Some(_) | None => Verdict::Taken,
    }
}

fn sell_verdict(play: &Play, event: EventNo, selection: &Selection, holder: &Holder) -> Verdict {
    let found = play.world.inventory.event(event).unwrap();
    let free = available(play, event);
    if selection.count() == 0 {
        return Verdict::Refused("invalid_request");
    }
    if !on_sale(&found.state, &found.policy, play.clock) {
        return Verdict::Refused("not_on_sale");
    }
    if !has_units(play, event, selection, &free) {
        return Verdict::Refused("unit_unavailable");
    }
    let held = held_by(play, event, holder);
    if !may_buy(play, event, holder, held + selection.count()) {
        return Verdict::Refused("budget_exceeded");
    }
    if leaves_orphans(play, event, selection, &free) {
        return Verdict::Refused("adjacency_refused");
    }
    Verdict::Taken
}

fn on_sale(state: &EventState, policy: &Policy, now: Timestamp) -> bool {
    *state == EventState::Open
        && policy
            .sale_closes_at
            .of(None)
            .is_none_or(|closes| now < closes)
}

fn own_hold(play: &Play, new: &NewHold, selection: &Selection) -> Option<HoldId> {
    let live = |hold: &&Hold| !hold.state.is_terminal() && play.clock < hold.expires_at;
    let same = |hold: &&Hold| {
        hold.event == new.event
            && hold.holder == new.holder
            && selection.areas().is_empty()
            && hold
                .units
                .iter()
                .map(|held| held.unit)
                .eq(selection.seats().iter().copied())
    };
    play.world
        .inventory
        .holds()
        .filter(live)
        .find(same)
        .map(|hold| hold.id)
}

fn has_units(play: &Play, event: EventNo, selection: &Selection, free: &BTreeSet<UnitNo>) -> bool {
    let chart = &play.world.inventory.event(event).unwrap().chart;
    let enough = |(area, quantity): (&soldonce_core::AreaNo, &u32)| {
        let area = chart.area(*area).unwrap();
        free.iter().filter(|unit| area.contains(**unit)).count()
            >= usize::try_from(*quantity).unwrap()
    };
    selection.seats().iter().all(|seat| free.contains(seat)) && selection.areas().iter().all(enough)
}

fn held_by(play: &Play, event: EventNo, holder: &Holder) -> u32 {
    let live = |hold: &&Hold| !hold.state.is_terminal() && play.clock < hold.expires_at;
    let holds = play.world.inventory.holds().filter(live);
    let own = holds.filter(|hold| hold.event == event && hold.holder == *holder);
    u32::try_from(own.map(|hold| hold.units.len()).sum::<usize>()).unwrap()
}

fn may_buy(play: &Play, event: EventNo, holder: &Holder, more: u32) -> bool {
    let policy = &play.world.inventory.event(event).unwrap().policy;
    let bookings = play.world.inventory.bookings();
    let own = bookings.filter(|found| found.event == event && found.holder == *holder);
    let bought = own
        .flat_map(|booking| &booking.lines)
        .filter(|line| is_sold(line))
        .count();
    let bought = u32::try_from(bought).unwrap();
    policy
        .units_bought_per_holder_max
        .is_none_or(|limit| bought + more <= limit)
}

fn leaves_orphans(
    play: &Play,
    event: EventNo,
    selection: &Selection,
    free: &BTreeSet<UnitNo>,
) -> bool {
    let event = play.world.inventory.event(event).unwrap();
    event.policy.adjacency == Adjacency::NoOrphan
        && !orphans(&event.chart, free, selection.seats()).is_empty()
}

/// Whether there is anything for a wish that leaves the choice to the engine.
fn best_exists(
    play: &Play,
    event: EventNo,
    free: &BTreeSet<UnitNo>,
    (quantity, category, together): (u32, Option<CategoryNo>, Together),
) -> bool {
    let chart = &play.world.inventory.event(event).unwrap().chart;
    let fits = |unit: &UnitNo| {
        free.contains(unit) && category.is_none_or(|wanted| chart.category_of(*unit) == wanted)
    };
    let of_area = chart.areas().iter().any(|area| {
        let places = (area.first.0..area.end().0)
            .map(UnitNo)
            .filter(fits)
            .count();
        u32::try_from(places).unwrap() >= quantity
    });
    let seats: BTreeSet<UnitNo> = (0..chart.seats()).map(UnitNo).filter(fits).collect();
    let of_rows = match together {
        Together::Required => longest_run(chart, &seats) >= quantity,
        Together::Preferred => u32::try_from(seats.len()).unwrap() >= quantity,
    };
    of_area || of_rows
}

/// Compares what was answered, and what is available now, with what must be.
pub(super) fn check(
    play: &Play,
    command: &Command,
    expected: &Verdict,
    result: &Result<Applied, Rejection>,
) -> Result<(), Fault> {
    let found = match result {
        Err(rejection) => Verdict::Refused(rejection.code()),
        Ok(applied) if let Answer::OwnHold(own) = &applied.answer => Verdict::Own(own.id),
        Ok(_) => Verdict::Taken,
    };
    if *expected != Verdict::Any && *expected != found {
        let promise = match expected {
            Verdict::Refused("budget_exceeded") => "I9",
            Verdict::Refused("unit_unavailable") => "I2",
            Verdict::Refused(_) | Verdict::Any | Verdict::Taken | Verdict::Own(_) => "oracle",
        };
        let fault = format!("{promise} {found:?} for {expected:?}: {command:?}");
        return Err(fault);
    }
    if let (Command::Hold(new), Ok(applied)) = (command, result) {
        granted(play, new, held(applied))?;
    }
    for event in &play.events {
        let free = available(play, *event);
        let seating = play.world.inventory.seating(*event).unwrap();
        for unit in (0..seating.chart().units()).map(UnitNo) {
            if seating.is_available(unit, play.clock) != free.contains(&unit) {
                return Err(format!("I3 the availability of {unit:?}"));
            }
        }
    }
    Ok(())
}

/// I11: exactly what was wished.
fn granted(play: &Play, new: &NewHold, hold: &Hold) -> Result<(), Fault> {
    let units: Vec<UnitNo> = hold.units.iter().map(|held| held.unit).collect();
    let as_wished = match &new.wish {
        Wish::Named(selection) => selection.seats().iter().all(|seat| units.contains(seat)),
        Wish::Best { .. } => {
            let chart = &play.world.inventory.event(new.event).unwrap().chart;
            let is_area = units.iter().all(|unit| chart.area_of(*unit).is_some());
            let neighbours = is_area || units.windows(2).all(|pair| pair[0].0 + 1 == pair[1].0);
            hold.together
                .is_some_and(|together| !together || neighbours)
        }
    };
    if as_wished && u32::try_from(units.len()) == Ok(new.wish.count()) {
        return Ok(());
    }
    Err(format!("I11 {units:?} for {:?}", new.wish))
}
