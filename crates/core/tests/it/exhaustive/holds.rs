//! Hold states x commands on holds.

use soldonce_core::{
    Answer, Applied, Authority, CallerId, Change, Command, Conflict, Fence, HoldId, LineChoice,
    OnHold, PaymentState, Rejection, Selection, TtlMax,
};

use super::{expect_table, outcome, table};
use crate::world::{World, booked, exchange_of, held, on, policy, rows_and_floor, text};

/// What a hold of ann on is, and who acts on it how.
#[derive(Clone, Copy)]
enum State {
    Unknown,
    Foreign,
    Active,
    StaleFence,
    LastMs,
    AtEnd,
    AfterEnd,
    AtCap,
    Pinned,
    PinnedLastMs,
    PinnedAtEnd,
    Unpinned,
    Consumed,
    Released,
    Expired,
    Revoked,
    ExpiredStaleFence,
}

const STATES: [(&str, State); 17] = [
    ("unknown", State::Unknown),
    ("foreign", State::Foreign),
    ("active", State::Active),
    ("active, stale fence", State::StaleFence),
    ("active, last ms", State::LastMs),
    ("active, at its end", State::AtEnd),
    ("active, 1 ms after", State::AfterEnd),
    ("active, at its cap", State::AtCap),
    ("pinned", State::Pinned),
    ("pinned, last ms", State::PinnedLastMs),
    ("pinned, at its end", State::PinnedAtEnd),
    ("unpinned", State::Unpinned),
    ("consumed", State::Consumed),
    ("released", State::Released),
    ("expired", State::Expired),
    ("revoked", State::Revoked),
    ("over, stale fence", State::ExpiredStaleFence),
];

const TTL: u64 = 60_000;
const PAYMENT_WINDOW: u64 = 30_000;

/// A hall in which ann's hold is in a state, and how a command reaches it.
fn given(state: State) -> (World, OnHold) {
    let mut world = World::new(rows_and_floor(&[6], 4), policy());
    let hold = world.hold("ann", "A-1 A-2");
    let mut on = on(hold);
    match state {
        State::Unknown => on.hold = HoldId::from_bits(u128::MAX),
        State::Foreign => on.by = Authority::Caller(CallerId::from_bits(8)),
        State::Active => {}
        State::StaleFence => on.fence = Some(Fence(99)),
        State::LastMs => world.wait(TTL - 1),
        State::AtEnd => world.wait(TTL),
        State::AfterEnd => world.wait(TTL + 1),
        State::AtCap => to_cap(&mut world, on),
        State::Pinned => drop(world.checkout(hold).unwrap()),
        State::PinnedLastMs | State::PinnedAtEnd => {
            world.wait(TTL - 1);
            world.checkout(hold).unwrap();
            let at_end = matches!(state, State::PinnedAtEnd);
            world.wait(PAYMENT_WINDOW - u64::from(!at_end));
        }
        State::Unpinned => {
            world.checkout(hold).unwrap();
            world.apply(Command::Abandon { on, booking: None }).unwrap();
        }
        State::Consumed => drop(world.confirm(hold).unwrap()),
        State::Released => drop(world.apply(Command::Release { on }).unwrap()),
        State::Expired => {
            world.wait(TTL);
            world.sweep();
        }
        State::Revoked => drop(world.apply(revoke(hold)).unwrap()),
        State::ExpiredStaleFence => {
            world.wait(TTL);
            on.fence = Some(Fence(99));
        }
    }
    (world, on)
}

fn to_cap(world: &mut World, on: OnHold) {
    for _ in 0..3 {
        world.wait(TTL - 1_000);
        let extend = Command::Extend {
            on,
            ttl: None,
            ttl_max: TtlMax::HoldMax,
        };
        world.apply(extend).unwrap();
    }
}

fn revoke(hold: HoldId) -> Command {
    Command::Revoke {
        hold,
        reason: text("fraud"),
    }
}

type Act = fn(&mut World, OnHold) -> Result<Applied, Rejection>;

const COMMANDS: [(&str, Act); 12] = [
    ("extend", |world, on| {
        world.apply(Command::Extend {
            on,
            ttl: None,
            ttl_max: TtlMax::HoldMax,
        })
    }),
    ("add", |world, on| change(world, on, "A-3", "")),
    ("drop", |world, on| change(world, on, "", "A-2")),
    ("checkout", |world, on| {
        let booking = world.mint_booking();
        world.apply(Command::Checkout {
            on,
            booking,
            reference: None,
            exchange: None,
        })
    }),
    ("abandon", |world, on| {
        world.apply(Command::Abandon { on, booking: None })
    }),
    ("release", |world, on| world.apply(Command::Release { on })),
    ("revoke", |world, on| world.apply(revoke(on.hold))),
    ("confirm", |world, on| {
        let booking = world.mint_booking();
        world.apply(Command::Confirm {
            on,
            booking,
            reference: None,
        })
    }),
    ("exchange in", exchange_in),
    ("paid", |world, on| {
        report(world, on, PaymentState::Authorised)
    }),
    ("declined", |world, on| {
        report(world, on, PaymentState::Declined)
    }),
    ("failed", |world, on| {
        report(world, on, PaymentState::Failed)
    }),
];

fn change(world: &mut World, on: OnHold, add: &str, drop: &str) -> Result<Applied, Rejection> {
    let change = Change {
        on,
        add: world.select(add),
        drop: world.select(drop).seats().to_vec(),
        drop_places: Selection::default(),
    };
    world.apply(Command::Change(Box::new(change)))
}

/// Ann has a booking of two dear places already and gives them for the hold.
fn exchange_in(world: &mut World, on: OnHold) -> Result<Applied, Rejection> {
    let now = world.now;
    let other = world.hold("ann", "floor*2");
    let booking = booked(&world.confirm(other).unwrap()).clone();
    assert_eq!(world.now, now, "the time of the row stays");
    let give = booking.lines.iter().map(|line| line.unit).collect();
    world.apply(exchange_of(booking.id, give, on))
}

/// The provider's word on the booking that the hold is or was pinned for.
fn report(world: &mut World, on: OnHold, state: PaymentState) -> Result<Applied, Rejection> {
    let bookings = world.inventory.bookings();
    let of_hold = bookings
        .filter(|booking| booking.hold == Some(on.hold))
        .map(|found| found.id);
    let booking = of_hold
        .last()
        .unwrap_or(soldonce_core::BookingId::from_bits(0));
    world.pay(booking, state)
}

/// The hold after a command that was taken, and its first unit.
fn cell(world: &World, hold: HoldId, applied: &Applied) -> String {
    let same = if applied.has_effect() { "" } else { "same " };
    let state = world
        .inventory
        .hold(hold)
        .unwrap()
        .state_at(world.now)
        .as_str();
    let ends_in = world
        .now
        .until(world.inventory.hold(hold).unwrap().expires_at)
        .ms();
    let live = matches!(state, "active" | "pinned");
    let ends_in = if live {
        format!(" {}s", ends_in.div_ceil(1_000))
    } else {
        String::new()
    };
    let unit = world.state("A-1").as_str();
    format!("{same}{state}{ends_in}, {unit}")
}

#[test]
fn hold_states_and_commands() {
    let answer = |state: State, act: Act| {
        let (mut world, on) = given(state);
        let hold = on.hold;
        let result = act(&mut world, on);
        outcome(&result, |applied| cell(&world, hold, applied))
    };
    expect_table(&table(&STATES, &COMMANDS, answer), EXPECTED);
}

const EXPECTED: &str = "
                    | extend                | add                 | drop                | checkout                    | abandon                  | release                | revoke                | confirm             | exchange in         | paid                    | declined              | failed
unknown             | hold_not_found        | hold_not_found      | hold_not_found      | hold_not_found              | hold_not_found           | hold_not_found         | hold_not_found        | hold_not_found      | hold_not_found      | booking_not_found       | booking_not_found     | booking_not_found
foreign             | hold_not_found        | hold_not_found      | hold_not_found      | hold_not_found              | hold_not_found           | hold_not_found         | revoked, free         | hold_not_found      | booking_not_found   | booking_not_found       | booking_not_found     | booking_not_found
active              | same active 60s, held | active 60s, held    | active 60s, held    | pinned 60s, held +authorise | same active 60s, held    | released, free         | revoked, free         | consumed, sold      | consumed, sold      | booking_not_found       | booking_not_found     | booking_not_found
active, stale fence | stale_fence           | stale_fence         | stale_fence         | stale_fence                 | stale_fence              | stale_fence            | revoked, free         | stale_fence         | stale_fence         | booking_not_found       | booking_not_found     | booking_not_found
active, last ms     | active 60s, held      | active 1s, held     | active 1s, held     | pinned 30s, held +authorise | same active 1s, held     | released, free         | revoked, free         | consumed, sold      | consumed, sold      | booking_not_found       | booking_not_found     | booking_not_found
active, at its end  | hold_expired          | hold_expired        | hold_expired        | hold_expired                | hold_expired             | hold_expired           | hold_expired          | hold_expired        | hold_expired        | booking_not_found       | booking_not_found     | booking_not_found
active, 1 ms after  | hold_expired          | hold_expired        | hold_expired        | hold_expired                | hold_expired             | hold_expired           | hold_expired          | hold_expired        | hold_expired        | booking_not_found       | booking_not_found     | booking_not_found
active, at its cap  | cap_reached           | active 3s, held     | active 3s, held     | pinned 30s, held +authorise | same active 3s, held     | released, free         | revoked, free         | consumed, sold      | consumed, sold      | booking_not_found       | booking_not_found     | booking_not_found
pinned              | payment_in_progress   | payment_in_progress | payment_in_progress | payment_in_progress         | active 20s, held +cancel | released, free +cancel | revoked, free +cancel | payment_in_progress | payment_in_progress | consumed, sold +capture | pinned 60s, held      | active 20s, held
pinned, last ms     | payment_in_progress   | payment_in_progress | payment_in_progress | payment_in_progress         | active 20s, held +cancel | released, free +cancel | revoked, free +cancel | payment_in_progress | payment_in_progress | consumed, sold +capture | pinned 1s, held       | active 20s, held
pinned, at its end  | hold_expired          | hold_expired        | hold_expired        | hold_expired                | hold_expired             | hold_expired           | hold_expired          | hold_expired        | hold_expired        | expired, sold +capture  | expired, held         | expired, free +cancel
unpinned            | active 60s, held      | active 20s, held    | active 20s, held    | pinned 30s, held +authorise | same active 20s, held    | released, free         | revoked, free         | consumed, sold      | consumed, sold      | active 20s, held +void  | active 20s, held      | active 20s, held
consumed            | hold_consumed         | hold_consumed       | hold_consumed       | hold_consumed               | hold_consumed            | hold_consumed          | hold_consumed         | hold_consumed       | hold_consumed       | booking_not_confirmed   | booking_not_confirmed | booking_not_confirmed
released            | hold_released         | hold_released       | hold_released       | hold_released               | hold_released            | same released, free    | hold_released         | hold_released       | hold_released       | booking_not_found       | booking_not_found     | booking_not_found
expired             | hold_expired          | hold_expired        | hold_expired        | hold_expired                | hold_expired             | hold_expired           | hold_expired          | hold_expired        | hold_expired        | booking_not_found       | booking_not_found     | booking_not_found
revoked             | hold_revoked          | hold_revoked        | hold_revoked        | hold_revoked                | hold_revoked             | hold_revoked           | same revoked, free    | hold_revoked        | hold_revoked        | booking_not_found       | booking_not_found     | booking_not_found
over, stale fence   | hold_expired          | hold_expired        | hold_expired        | hold_expired                | hold_expired             | hold_expired           | hold_expired          | hold_expired        | hold_expired        | booking_not_found       | booking_not_found     | booking_not_found
";

/// The same holder asks again for exactly the same units, for some of them, and another asks for one.
#[test]
fn hold_states_and_repeated_holds() {
    let asks: [(&str, (&str, &str)); 4] = [
        ("the same again", ("ann", "A-1 A-2")),
        ("one of them", ("ann", "A-1")),
        ("one more", ("ann", "A-1 A-2 A-3")),
        ("another holder", ("bob", "A-2 A-3")),
    ];
    let answer = |state: State, (holder, units): (&str, &str)| {
        let (mut world, on) = given(state);
        match world.try_hold(holder, units) {
            Ok(applied) if applied.has_effect() => format!("held {:?}", held(&applied).fence),
            Ok(applied) => {
                assert_eq!(held(&applied).id, on.hold);
                assert!(matches!(applied.answer, Answer::OwnHold(_)));
                "own hold".to_owned()
            }
            Err(Rejection::UnitUnavailable(refusal)) => {
                let state = |conflict: &Conflict| match conflict {
                    Conflict::Seat { unit, state, .. } => {
                        format!("{} {}", world.names([*unit]), state.as_str())
                    }
                    Conflict::Area { free, .. } => format!("{free} free"),
                };
                let states: Vec<String> = refusal.conflicts.iter().map(state).collect();
                states.join(", ")
            }
            Err(other) => other.code().to_owned(),
        }
    };
    let states: Vec<(&str, State)> = STATES
        .into_iter()
        .filter(|(_, state)| !matches!(state, State::Unknown | State::Foreign | State::StaleFence))
        .collect();
    expect_table(&table(&states, &asks, answer), EXPECTED_AGAIN);
}

const EXPECTED_AGAIN: &str = "
                   | the same again     | one of them   | one more             | another holder
active             | own hold           | A-1 yours     | A-1 yours, A-2 yours | A-2 held
active, last ms    | own hold           | A-1 yours     | A-1 yours, A-2 yours | A-2 held
active, at its end | held Fence(2)      | held Fence(2) | held Fence(2)        | held Fence(2)
active, 1 ms after | held Fence(2)      | held Fence(2) | held Fence(2)        | held Fence(2)
active, at its cap | own hold           | A-1 yours     | A-1 yours, A-2 yours | A-2 held
pinned             | own hold           | A-1 yours     | A-1 yours, A-2 yours | A-2 held
pinned, last ms    | own hold           | A-1 yours     | A-1 yours, A-2 yours | A-2 held
pinned, at its end | held Fence(2)      | held Fence(2) | held Fence(2)        | held Fence(2)
unpinned           | own hold           | A-1 yours     | A-1 yours, A-2 yours | A-2 held
consumed           | A-1 sold, A-2 sold | A-1 sold      | A-1 sold, A-2 sold   | A-2 sold
released           | held Fence(2)      | held Fence(2) | held Fence(2)        | held Fence(2)
expired            | held Fence(2)      | held Fence(2) | held Fence(2)        | held Fence(2)
revoked            | held Fence(2)      | held Fence(2) | held Fence(2)        | held Fence(2)
over, stale fence  | held Fence(2)      | held Fence(2) | held Fence(2)        | held Fence(2)
";

/// Cancelling everything of a consumed hold's booking does not bring the hold back.
#[test]
fn a_consumed_hold_stays_consumed() {
    let (mut world, on) = given(State::Consumed);
    let booking = world.inventory.bookings().last().unwrap().id;
    let cancel = Command::Cancel {
        booking,
        by: Authority::Secret,
        lines: LineChoice::All,
    };
    world.apply(cancel).unwrap();
    let extend = Command::Extend {
        on,
        ttl: None,
        ttl_max: TtlMax::HoldMax,
    };
    assert_eq!(
        world.apply(extend).unwrap_err(),
        Rejection::HoldConsumed(booking)
    );
}
