//! What must be true after every step of every kind.

use std::collections::BTreeMap;

use soldonce_core::{
    Amount, Applied, Booking, BookingId, BookingState, Command, EventNo, EventState, Hold, HoldId,
    HoldState, Line, LineState, Policy, Rejection, Seq, Unit, UnitNo, UnitState,
};

use super::play::{Fault, Play, had_no_effect};

/// Everything that a refused command must leave alone.
#[derive(Debug, PartialEq)]
struct Everything {
    events: Vec<(Seq, Policy, EventState, Vec<Unit>)>,
    holds: BTreeMap<HoldId, Hold>,
    bookings: BTreeMap<BookingId, Booking>,
}

impl Everything {
    fn of(play: &Play) -> Self {
        let inventory = &play.world.inventory;
        let event = |event: &std::sync::Arc<soldonce_core::Event>| {
            let units = inventory.seating(event.no).unwrap().units().to_vec();
            (
                inventory.seq(event.no),
                event.policy.clone(),
                event.state.clone(),
                units,
            )
        };
        Self {
            events: inventory.events().map(event).collect(),
            holds: inventory
                .holds()
                .map(|hold| (hold.id, hold.clone()))
                .collect(),
            bookings: inventory
                .bookings()
                .map(|found| (found.id, found.clone()))
                .collect(),
        }
    }
}

/// The state before a command.
pub(super) struct Before {
    everything: Everything,
    command: String,
}

impl Before {
    pub(super) fn of(play: &Play, command: &Command) -> Self {
        Self {
            everything: Everything::of(play),
            command: format!("{command:?}"),
        }
    }

    /// A refused command, and one that says it had no effect, changed nothing; one that was taken
    /// tells everything that it changed.
    pub(super) fn check(
        &self,
        play: &mut Play,
        result: &Result<Applied, Rejection>,
    ) -> Result<(), Fault> {
        let after = Everything::of(play);
        if had_no_effect(result) {
            if self.everything != after {
                return Err(format!(
                    "I5 refused, but something changed: {}",
                    self.command
                ));
            }
            return Ok(());
        }
        let Ok(applied) = result else { return Ok(()) };
        self.told(&after, applied)?;
        replay(play, applied)
    }

    fn told(&self, after: &Everything, applied: &Applied) -> Result<(), Fault> {
        for (id, hold) in &after.holds {
            if self.everything.holds.get(id) != Some(hold) && !applied.holds.contains(id) {
                return Err(format!("I20 {id} changed unsaid by {}", self.command));
            }
        }
        for (id, hold) in &self.everything.holds {
            if hold.state.is_terminal() && after.holds.get(id) != Some(hold) {
                return Err(format!("I7 {id} was over and changed by {}", self.command));
            }
        }
        for (id, booking) in &after.bookings {
            let before = self.everything.bookings.get(id);
            if before != Some(booking) && !applied.bookings.contains(id) {
                return Err(format!("I20 {id} changed unsaid by {}", self.command));
            }
            let moved = before.is_some_and(|before| before.total() != booking.total());
            if moved && !self.command.starts_with("Exchange") {
                return Err(format!("I17 the price of {id} moved by {}", self.command));
            }
        }
        Ok(())
    }
}

/// I20: the transitions lead from the old units to the new ones.
fn replay(play: &mut Play, applied: &Applied) -> Result<(), Fault> {
    for commit in &applied.commits {
        for step in &commit.transitions {
            let known = play.replayed.entry((commit.event, step.unit)).or_default();
            if known.state != step.from || known.version.next() != step.version {
                return Err(format!("I20 {step:?} does not follow {known:?}"));
            }
            if step.fence < known.fence {
                return Err(format!("I6 {step:?} after {known:?}"));
            }
            *known = Unit {
                state: step.to,
                fence: step.fence,
                version: step.version,
            };
        }
    }
    for (event, number, unit) in units(play) {
        let replayed = play
            .replayed
            .get(&(event, number))
            .copied()
            .unwrap_or_default();
        if replayed != unit {
            return Err(format!(
                "I20 {number:?} is {unit:?}, the history says {replayed:?}"
            ));
        }
    }
    Ok(())
}

fn units(play: &Play) -> Vec<(EventNo, UnitNo, Unit)> {
    let of_event = |event: &EventNo| {
        let units = play
            .world
            .inventory
            .seating(*event)
            .unwrap()
            .units()
            .to_vec();
        let event = *event;
        (0..)
            .map(UnitNo)
            .zip(units)
            .map(move |(number, unit)| (event, number, unit))
    };
    play.events.iter().flat_map(of_event).collect()
}

/// I3: every unit is what the holds and bookings make of it, and the indexes agree.
pub(super) fn state(play: &Play) -> Result<(), Fault> {
    let inventory = &play.world.inventory;
    if inventory.clock() != play.clock {
        return Err(format!("I21 {:?} for {:?}", inventory.clock(), play.clock));
    }
    let mut derived: BTreeMap<(EventNo, UnitNo), UnitState> = BTreeMap::new();
    for hold in inventory.holds().filter(|hold| !hold.state.is_terminal()) {
        one_hold(play, hold)?;
        for held in &hold.units {
            let state = UnitState::Held {
                hold: hold.id,
                until: hold.expires_at,
            };
            if derived.insert((hold.event, held.unit), state).is_some() {
                return Err(format!("I2 {:?} is held twice", held.unit));
            }
        }
    }
    for booking in inventory.bookings() {
        one_booking(play, booking)?;
        for line in booking.lines.iter().filter(|line| is_sold(line)) {
            let state = UnitState::Sold(booking.id);
            if derived.insert((booking.event, line.unit), state).is_some() {
                return Err(format!("I1 {:?} is sold twice", line.unit));
            }
        }
    }
    for (event, number, unit) in units(play) {
        let state = derived.get(&(event, number)).copied().unwrap_or_default();
        let is_same =
            unit.state == state || (unit.state == UnitState::Blocked && state == UnitState::Free);
        if !is_same {
            return Err(format!(
                "I3 {number:?} is {:?}, but {state:?} follows",
                unit.state
            ));
        }
    }
    indexes(play)
}

fn one_hold(play: &Play, hold: &Hold) -> Result<(), Fault> {
    let seating = play.world.inventory.seating(hold.event).unwrap();
    let sorted = hold
        .units
        .windows(2)
        .all(|pair| pair[0].unit < pair[1].unit);
    if hold.units.is_empty() || !sorted {
        return Err(format!("I5 the units of {hold:?}"));
    }
    for held in &hold.units {
        let unit = seating.unit(held.unit);
        if unit.fence != hold.fence || unit.version != held.version {
            return Err(format!("I6 {held:?} of {hold:?} is {unit:?}"));
        }
    }
    if let HoldState::Pinned(booking) = &hold.state {
        let booking = play.world.inventory.booking(*booking).unwrap();
        let waits = booking.state == BookingState::PendingPayment;
        if !waits || booking.hold != Some(hold.id) {
            return Err(format!("I3 {hold:?} waits for {booking:?}"));
        }
    }
    Ok(())
}

fn one_booking(play: &Play, booking: &Booking) -> Result<(), Fault> {
    let seating = play.world.inventory.seating(booking.event).unwrap();
    let sold = booking.lines.iter().filter(|line| is_sold(line)).count();
    if (sold > 0) != booking.state.owns_units() {
        return Err(format!("I3 {booking:?}"));
    }
    for line in booking.lines.iter().filter(|line| is_sold(line)) {
        if seating.unit(line.unit).version != line.version {
            return Err(format!("I20 {line:?} of {booking:?}"));
        }
    }
    if !booking.lines.is_sorted_by_key(|line| line.unit) {
        return Err(format!("I28 the lines of {booking:?}"));
    }
    carried(play, booking)
}

/// Money that bookings have with another one is there, each part of it once.
fn carried(play: &Play, booking: &Booking) -> Result<(), Fault> {
    let payments = play.world.inventory.bookings();
    let payments = payments.filter_map(|other| other.payment.as_deref());
    let with_it = payments.filter(|payment| {
        let exchange = payment.exchange.as_ref();
        exchange.is_some_and(|given| given.booking == booking.id)
    });
    let credits = Amount::sum(with_it.map(|payment| payment.credit));
    let carried = booking.payment.as_ref().map(|payment| payment.carried);
    if credits != carried.unwrap_or_default() {
        return Err(format!("I17 {credits:?} of {booking:?} is with others"));
    }
    Ok(())
}

fn indexes(play: &Play) -> Result<(), Fault> {
    let miscounted = play.world.miscounted();
    if !miscounted.is_empty() {
        return Err(format!("I10 {miscounted:?}"));
    }
    let inventory = &play.world.inventory;
    let ends = inventory.holds().filter(|hold| !hold.state.is_terminal());
    let next = ends.map(|hold| hold.expires_at).min();
    if next != inventory.next_expiry() {
        return Err(format!(
            "L1 next expiry {:?} for {next:?}",
            inventory.next_expiry()
        ));
    }
    Ok(())
}

pub(super) fn is_sold(line: &Line) -> bool {
    line.state == LineState::Sold
}
