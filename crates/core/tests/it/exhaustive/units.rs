//! Unit states x commands that want the unit.

use soldonce_core::{
    Applied, Change, Command, Conflict, ConflictState, HoldId, PaymentState, Rejection, Selection,
    Together, Wish,
};

use super::{expect_table, outcome, table};
use crate::world::{World, booked, holder, on, policy, rows_and_floor, text};

/// What A-1, the only seat, and the only place of the floor are. Bob wants them.
#[derive(Clone, Copy)]
enum State {
    Free,
    Held,
    HeldLastMs,
    HeldAtEnd,
    HeldAfterEnd,
    HeldByBob,
    HeldByBobAtEnd,
    Pinned,
    PinnedAtEnd,
    Sold,
    GivenBack,
    Blocked,
    Unblocked,
}

const STATES: [(&str, State); 13] = [
    ("free", State::Free),
    ("held", State::Held),
    ("held, last ms", State::HeldLastMs),
    ("held, at its end", State::HeldAtEnd),
    ("held, 1 ms after", State::HeldAfterEnd),
    ("held by bob", State::HeldByBob),
    ("bob's, at its end", State::HeldByBobAtEnd),
    ("pinned", State::Pinned),
    ("pinned, at its end", State::PinnedAtEnd),
    ("sold", State::Sold),
    ("given back", State::GivenBack),
    ("blocked", State::Blocked),
    ("unblocked", State::Unblocked),
];

const TTL: u64 = 60_000;

/// A hall with rows A and B of a seat each and a floor of one place; A-1 and the place are as the
/// state says. Bob's other hold, on B-1, is there for a change, and so is bob's unpaid booking of A-1.
fn given(state: State) -> (World, HoldId) {
    let mut world = World::new(rows_and_floor(&[1, 1], 1), policy());
    let late = world.hold("bob", "A-1 floor*1");
    let late = booked(&world.checkout(late).unwrap()).hold.unwrap();
    world.apply(Command::Release { on: on(late) }).unwrap();
    match state {
        State::Free => {}
        State::Held => drop(world.hold("ann", "A-1 floor*1")),
        State::HeldLastMs => held_for(&mut world, TTL - 1),
        State::HeldAtEnd => held_for(&mut world, TTL),
        State::HeldAfterEnd => held_for(&mut world, TTL + 1),
        State::HeldByBob => drop(world.hold("bob", "A-1 floor*1")),
        State::HeldByBobAtEnd => {
            world.hold("bob", "A-1 floor*1");
            world.wait(TTL);
        }
        State::Pinned | State::PinnedAtEnd => {
            let hold = world.hold("ann", "A-1 floor*1");
            world.checkout(hold).unwrap();
            world.wait(if matches!(state, State::PinnedAtEnd) {
                TTL
            } else {
                0
            });
        }
        State::Sold => {
            let hold = world.hold("ann", "A-1 floor*1");
            world.confirm(hold).unwrap();
        }
        State::GivenBack => {
            let hold = world.hold("ann", "A-1 floor*1");
            let booking = booked(&world.confirm(hold).unwrap()).id;
            let by = soldonce_core::Authority::Staff;
            let lines = soldonce_core::LineChoice::All;
            world.apply(Command::Cancel { booking, by, lines }).unwrap();
        }
        State::Blocked => drop(block(&mut world).unwrap()),
        State::Unblocked => {
            block(&mut world).unwrap();
            unblock(&mut world).unwrap();
        }
    }
    let other = world.hold("bob", "B-1");
    (world, other)
}

/// Ann held the units so long ago.
fn held_for(world: &mut World, ms: u64) {
    world.hold("ann", "A-1 floor*1");
    world.wait(ms);
}

fn block(world: &mut World) -> Result<Applied, Rejection> {
    let (event, selection) = (world.event, world.select("A-1 floor*1"));
    world.apply(Command::Block {
        event,
        selection,
        reason: text("kept"),
    })
}

fn unblock(world: &mut World) -> Result<Applied, Rejection> {
    let (event, selection) = (world.event, world.select("A-1 floor*1"));
    world.apply(Command::Unblock {
        event,
        selection,
        reason: text("sold"),
    })
}

type Act = fn(&mut World, HoldId) -> Result<Applied, Rejection>;

const COMMANDS: [(&str, Act); 8] = [
    ("hold", |world, _| world.try_hold("bob", "A-1 floor*1")),
    ("best seat", |world, _| best(world, "Seat")),
    ("best place", |world, _| best(world, "Standing")),
    ("add", |world, hold| {
        let change = Change {
            on: on(hold),
            add: world.select("A-1 floor*1"),
            drop: Vec::new(),
            drop_places: Selection::default(),
        };
        world.apply(Command::Change(Box::new(change)))
    }),
    ("sell", |world, _| {
        let (event, selection) = (world.event, world.select("A-1 floor*1"));
        let (booking, holder) = (world.mint_booking(), holder("bob"));
        world.apply(Command::Sell {
            event,
            selection,
            holder,
            booking,
            reference: None,
        })
    }),
    ("late money", |world, _| {
        let of_bob = |booking: &&soldonce_core::Booking| booking.holder == holder("bob");
        let booking = world.inventory.bookings().find(of_bob).unwrap().id;
        let state = PaymentState::Authorised;
        world.pay(booking, state)
    }),
    ("block", |world, _| block(world)),
    ("unblock", |world, _| unblock(world)),
];

fn best(world: &mut World, category: &str) -> Result<Applied, Rejection> {
    let category = world.chart().category(category);
    world.try_wish(
        "bob",
        Wish::Best {
            quantity: 1,
            category,
            together: Together::Required,
        },
    )
}

/// The seat and the place after a command that was taken, or why they could not be had.
fn cell(world: &World, result: &Result<Applied, Rejection>) -> String {
    if let Err(Rejection::UnitUnavailable(refusal)) = result {
        let conflict = |conflict: &Conflict| match conflict {
            Conflict::Seat {
                state,
                retry_after: None,
                ..
            } => state.as_str().to_owned(),
            Conflict::Seat {
                state,
                retry_after: Some(span),
                ..
            } => {
                assert!(matches!(state, ConflictState::Held | ConflictState::Yours));
                format!("{} {}ms", state.as_str(), span.ms())
            }
            Conflict::Area { free, .. } => format!("{free} free"),
        };
        let conflicts: Vec<String> = refusal.conflicts.iter().map(conflict).collect();
        return format!("no: {}", conflicts.join(", "));
    }
    outcome(result, |applied| {
        // The hold that had the units before must be wholly over, and said so.
        let ended = applied.holds.iter().filter(|id| {
            world.inventory.hold(**id).unwrap().state == soldonce_core::HoldState::Expired
        });
        let ended = if ended.count() > 0 {
            " (old ended)"
        } else {
            ""
        };
        let (seat, place) = (world.state("A-1"), world.state("floor.1"));
        format!("{} {}{ended}", seat.as_str(), place.as_str())
    })
}

#[test]
fn unit_states_and_commands() {
    let answer = |state: State, act: Act| {
        let (mut world, other) = given(state);
        let before = world
            .inventory
            .seating(world.event)
            .unwrap()
            .units()
            .to_vec();
        let result = act(&mut world, other);
        if result.is_err() {
            let after = world.inventory.seating(world.event).unwrap().units();
            assert_eq!(before, after, "a refusal changed a unit");
        }
        cell(&world, &result)
    };
    expect_table(&table(&STATES, &COMMANDS, answer), EXPECTED);
}

const EXPECTED: &str = "
                   | hold                          | best seat                     | best place                    | add                           | sell                          | late money                             | block                               | unblock
free               | held held                     | held free                     | free held                     | held held                     | sold sold                     | sold sold +capture                     | blocked blocked                     | no: free, 1 free
held               | no: held 60000ms, 0 free      | no:                           | no:                           | no: held 60000ms, 0 free      | no: held 60000ms, 0 free      | held held +void                        | no: held 60000ms, 0 free            | no: held, 0 free
held, last ms      | no: held 1ms, 0 free          | no:                           | no:                           | no: held 1ms, 0 free          | no: held 1ms, 0 free          | held held +void                        | no: held 1ms, 0 free                | no: held, 0 free
held, at its end   | held held (old ended)         | held free (old ended)         | free held (old ended)         | held held (old ended)         | sold sold (old ended)         | sold sold (old ended) +capture         | blocked blocked (old ended)         | no: free, 1 free
held, 1 ms after   | held held (old ended)         | held free (old ended)         | free held (old ended)         | held held (old ended)         | sold sold (old ended)         | sold sold (old ended) +capture         | blocked blocked (old ended)         | no: free, 1 free
held by bob        | no: yours 60000ms, 0 free     | no:                           | no:                           | no: yours 60000ms, 0 free     | no: yours 60000ms, 0 free     | held held +void                        | no: held 60000ms, 0 free            | no: held, 0 free
bob's, at its end  | held held (old ended)         | held free (old ended)         | free held (old ended)         | held held (old ended)         | sold sold (old ended)         | sold sold (old ended) +capture         | blocked blocked (old ended)         | no: free, 1 free
pinned             | no: held 60000ms, 0 free      | no:                           | no:                           | no: held 60000ms, 0 free      | no: held 60000ms, 0 free      | held held +void                        | no: held 60000ms, 0 free            | no: held, 0 free
pinned, at its end | held held (old ended) +cancel | held free (old ended) +cancel | free held (old ended) +cancel | held held (old ended) +cancel | sold sold (old ended) +cancel | sold sold (old ended) +cancel +capture | blocked blocked (old ended) +cancel | no: free, 1 free
sold               | no: sold, 0 free              | no:                           | no:                           | no: sold, 0 free              | no: sold, 0 free              | sold sold +void                        | no: sold, 0 free                    | no: sold, 0 free
given back         | held held                     | held free                     | free held                     | held held                     | sold sold                     | sold sold +capture                     | blocked blocked                     | no: free, 1 free
blocked            | no: blocked, 0 free           | no:                           | no:                           | no: blocked, 0 free           | no: blocked, 0 free           | blocked blocked +void                  | no: blocked, 0 free                 | free free
unblocked          | held held                     | held free                     | free held                     | held held                     | sold sold                     | sold sold +capture                     | blocked blocked                     | no: free, 1 free
";
