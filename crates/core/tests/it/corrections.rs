//! A clock that is set back by its operator: every hold keeps the time it has left, and the auditor takes
//! nothing less.

use soldonce_core::{
    Answer, Auditor, Cause, Command, History, Invariant, Rejection, Span, Text, Timestamp, TtlMax,
    UnitState,
};

use crate::world::{World, booked, held, on, policy, rows_and_floor};

const HOUR_MS: u64 = 3_600_000;

/// Ann has two seats, half of their time over, and bob pays for one; an event is sold out, one is empty. The
/// correction is the last commit of each but the first.
fn corrected() -> World {
    let mut world = World::new(rows_and_floor(&[6], 0), policy());
    let first = world.event;
    world.hold("ann", "A-1 A-2");
    let paid = world.hold("bob", "A-3");
    world.checkout(paid).unwrap();
    let sold_out = world.add_event("sold-out", rows_and_floor(&[1], 0), policy());
    world.event = sold_out;
    let hold = world.hold("eve", "A-1");
    world.confirm(hold).unwrap();
    world.add_event("empty", rows_and_floor(&[2], 0), policy());
    world.event = first;
    world.wait(30_000);
    let applied = world.correct_clock(HOUR_MS);
    assert_eq!(applied.commits.len(), 3, "every event says so");
    assert!(matches!(applied.answer, Answer::ClockCorrected(2)));
    world
}

fn found(history: &History) -> Vec<Invariant> {
    let violations = Auditor::check(history);
    violations.iter().map(|found| found.invariant).collect()
}

#[test]
fn holds_keep_the_time_they_have_left() {
    let mut world = corrected();
    let extend = |world: &mut World, n: u128| {
        let command = Command::Extend {
            on: on(soldonce_core::HoldId::from_bits(n)),
            ttl: Some(Span::from_ms(170_000)),
            ttl_max: TtlMax::HoldMax,
        };
        world
            .apply(command)
            .map(|applied| held(&applied).expires_at)
    };
    world.wait(29_999);
    let refused = world.try_hold("gus", "A-1");
    assert!(matches!(refused, Err(Rejection::UnitUnavailable(_))));
    // Its cap is three minutes after it was made, half a minute of which was before the correction.
    let until = extend(&mut world, 1).unwrap();
    assert_eq!(
        until,
        world.now.plus(Span::from_ms(180_000 - 30_000 - 29_999))
    );
    world.wait(180_000);
    world.hold("gus", "A-1");
    assert_eq!(found(&world.history(world.event)), []);
}

#[test]
fn a_sale_that_was_marked_is_cancelled_as_before() {
    let mut world = corrected();
    let booking = world
        .inventory
        .bookings()
        .find(|one| one.confirmed_at.is_some());
    let booking = booking.unwrap().id;
    let (by, lines) = (
        soldonce_core::Authority::Staff,
        soldonce_core::LineChoice::All,
    );
    let cancelled = world.apply(Command::Cancel { booking, by, lines }).unwrap();
    assert_eq!(booked(&cancelled).id, booking);
}

#[test]
fn the_auditor_takes_no_correction_that_is_none() {
    let world = corrected();
    let good = world.history(world.event);
    let spoil = |what: &dyn Fn(&mut History)| {
        let mut history = good.clone();
        what(&mut history);
        found(&history)
    };
    assert_eq!(spoil(&|_| {}), []);
    let ends = |history: &mut History, which: usize, by: i64| {
        let last = history.commits.last_mut().unwrap();
        if let UnitState::Held { until, .. } = &mut last.transitions[which].to {
            *until = Timestamp::from_ms(until.ms() + by);
        }
    };
    // A millisecond shorter, a millisecond longer: both units of ann, and bob's.
    for by in [-1, 1] {
        let both = spoil(&|history| {
            ends(history, 0, by);
            ends(history, 1, by);
        });
        assert!(both.contains(&Invariant::I3BrokenState), "{both:?}");
        let one = spoil(&|history| ends(history, 2, by));
        assert!(one.contains(&Invariant::I3BrokenState), "{one:?}");
    }
    let forgotten = spoil(&|history| {
        history.commits.last_mut().unwrap().transitions.truncate(2);
    });
    assert!(
        forgotten.contains(&Invariant::I21TimeWentBack),
        "{forgotten:?}"
    );
    let silent = spoil(&|history| history.commits.last_mut().unwrap().reason = None);
    assert!(silent.contains(&Invariant::I21TimeWentBack), "{silent:?}");
    let less = spoil(&|history| {
        let reason = Text::parse("the clock is set back by 1000 ms").unwrap();
        history.commits.last_mut().unwrap().reason = Some(reason);
    });
    assert!(less.contains(&Invariant::I21TimeWentBack), "{less:?}");
    let mixed = spoil(&|history| {
        history.commits.last_mut().unwrap().transitions[2].cause = Cause::Extended;
    });
    assert!(mixed.contains(&Invariant::I21TimeWentBack), "{mixed:?}");
}

#[test]
fn no_correction_gives_a_sold_unit_to_another_booking() {
    let world = corrected();
    let sold_out = world.inventory.events().nth(1).unwrap().no;
    let mut history = world.history(sold_out);
    assert_eq!(found(&history), []);
    let last = history.commits.last_mut().unwrap();
    last.transitions[0].to = UnitState::Sold(soldonce_core::BookingId::from_bits(99));
    assert_eq!(found(&history), [Invariant::I1SoldTwice]);
}

#[test]
fn a_cap_moves_with_the_clock_and_no_further() {
    let world = corrected();
    let mut history = world.history(world.event);
    assert_eq!(found(&history), [], "its hold was made under a later cap");
    for hold in &mut history.holds {
        hold.max_expires_at = Timestamp::from_ms(hold.max_expires_at.ms() - 180_000);
    }
    let beyond = found(&history);
    assert!(beyond.contains(&Invariant::I8BeyondCap), "{beyond:?}");
}

/// Every event shows the correction at one unit: one that is not sold, else the first, whose booking must be here.
#[test]
fn a_sold_out_event_shows_the_correction_at_a_booking() {
    let mut world = World::new(rows_and_floor(&[2], 0), policy());
    let event = world.event;
    let marked = |world: &World| world.inventory.marked_booking(event);
    assert_eq!(marked(&world), None, "nothing is sold");
    let hold = world.hold("ann", "A-1");
    let first = booked(&world.confirm(hold).unwrap()).id;
    assert_eq!(marked(&world), None, "A-2 is free");
    let hold = world.hold("bob", "A-2");
    assert_eq!(marked(&world), None, "a hold shows it");
    world.confirm(hold).unwrap();
    assert_eq!(marked(&world), Some(first));
    let version = |world: &World| {
        let booking = world.inventory.booking(first).unwrap();
        booking.line(world.unit("A-1")).unwrap().version
    };
    let before = version(&world);
    world.correct_clock(HOUR_MS);
    assert!(version(&world) > before, "its line follows");
    world.inventory.forget_booking(first);
    let by = Span::from_ms(HOUR_MS);
    let (now, origin) = (world.now.minus(by), soldonce_core::Origin::system("test"));
    let refused = world.inventory.correct_clock(now, by, &origin);
    assert_eq!(refused.unwrap_err(), Rejection::BookingNotFound);
}

/// A booking whose unit was given back and bought again has two lines of it: the sold one follows.
#[test]
fn only_the_sold_line_follows_the_correction() {
    use soldonce_core::{Authority, LineChoice, LineState};
    let mut world = World::new(rows_and_floor(&[3], 0), policy());
    let hold = world.hold("ann", "A-1 A-2 A-3");
    let booking = booked(&world.confirm(hold).unwrap()).id;
    let (by, units) = (Authority::Staff, vec![world.unit("A-1")]);
    let lines = LineChoice::Some {
        units,
        places: soldonce_core::Selection::default(),
    };
    world.apply(Command::Cancel { booking, by, lines }).unwrap();
    let hold = world.hold("bob", "A-1");
    let other = booked(&world.confirm(hold).unwrap()).id;
    let versions = |world: &World| {
        let lines = &world.inventory.booking(booking).unwrap().lines;
        lines
            .iter()
            .map(|line| (line.state, line.version))
            .collect::<Vec<_>>()
    };
    let before = versions(&world);
    assert_eq!(before[0].0, LineState::Cancelled);
    assert_eq!(world.inventory.marked_booking(world.event), Some(other));
    world.correct_clock(HOUR_MS);
    assert_eq!(versions(&world), before, "they are not marked");
}
