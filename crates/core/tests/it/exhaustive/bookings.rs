//! Booking states x commands and provider's reports; late policies x the moment the money comes.

use soldonce_core::{
    Applied, Authority, BookingId, CallerId, Command, Deadline, EventState, LatePayment,
    LineChoice, OnHold, OnPaymentFailure, PaymentState, Policy, Rejection,
};

use super::{expect_table, outcome, table};
use crate::world::{World, booked, exchange_of, on, policy, rows_and_floor, text};

/// What ann's booking of, 1,000 each, is.
#[derive(Clone, Copy)]
enum State {
    Unknown,
    Foreign,
    Pending,
    PendingAtEnd,
    Confirmed,
    ConfirmedUnpaid,
    PartlyCancelled,
    Cancelled,
    Failed,
    Expired,
    NeedsRefund,
    Refunded,
}

const STATES: [(&str, State); 12] = [
    ("unknown", State::Unknown),
    ("foreign", State::Foreign),
    ("pending", State::Pending),
    ("pending, at its end", State::PendingAtEnd),
    ("confirmed", State::Confirmed),
    ("confirmed, unpaid", State::ConfirmedUnpaid),
    ("partly cancelled", State::PartlyCancelled),
    ("cancelled", State::Cancelled),
    ("failed", State::Failed),
    ("expired", State::Expired),
    ("needs refund", State::NeedsRefund),
    ("refunded", State::Refunded),
];

fn given(state: State, policy: Policy) -> (World, BookingId) {
    let mut world = World::new(rows_and_floor(&[6], 0), policy);
    let hold = world.hold("ann", "A-1 A-2");
    if matches!(state, State::ConfirmedUnpaid) {
        let booking = booked(&world.confirm(hold).unwrap()).id;
        return (world, booking);
    }
    let booking = booked(&world.checkout(hold).unwrap()).id;
    let pay = |world: &mut World, state| {
        world.pay(booking, state).unwrap();
    };
    let expire = |world: &mut World| {
        world.wait(60_000);
        world.sweep();
    };
    match state {
        State::Unknown => return (world, BookingId::from_bits(0)),
        State::Foreign | State::Pending | State::ConfirmedUnpaid => {}
        State::PendingAtEnd => world.wait(60_000),
        State::Confirmed => pay(&mut world, PaymentState::Authorised),
        State::PartlyCancelled => {
            pay(&mut world, PaymentState::Captured);
            cancel(&mut world, booking, Authority::Secret, "A-1").unwrap();
        }
        State::Cancelled => {
            pay(&mut world, PaymentState::Captured);
            cancel(&mut world, booking, Authority::Secret, "").unwrap();
        }
        State::Failed => drop(world.apply(Command::Release { on: on(hold) }).unwrap()),
        State::Expired => expire(&mut world),
        State::NeedsRefund | State::Refunded => {
            expire(&mut world);
            world.hold("bob", "A-2");
            pay(&mut world, PaymentState::Authorised);
            if matches!(state, State::Refunded) {
                pay(&mut world, PaymentState::Voided);
            }
        }
    }
    (world, booking)
}

fn cancel(
    world: &mut World,
    booking: BookingId,
    by: Authority,
    units: &str,
) -> Result<Applied, Rejection> {
    let lines = match units {
        "" => LineChoice::All,
        units => LineChoice::Some {
            units: world.select(units).seats().to_vec(),
            places: soldonce_core::Selection::default(),
        },
    };
    world.apply(Command::Cancel { booking, by, lines })
}

#[derive(Clone, Copy)]
enum Act {
    Cancel(&'static str),
    /// Another seat for A-1, at the same price.
    Exchange,
    Pay(PaymentState),
}

fn act(
    world: &mut World,
    booking: BookingId,
    by: Authority,
    act: Act,
) -> Result<Applied, Rejection> {
    match act {
        Act::Cancel(units) => cancel(world, booking, by, units),
        Act::Exchange => {
            let on = OnHold {
                by,
                ..on(world.hold("ann", "A-5"))
            };
            let give = vec![world.unit("A-1")];
            world.apply(exchange_of(booking, give, on))
        }
        Act::Pay(state) => world.pay(booking, state),
    }
}

fn by(state: State) -> Authority {
    if matches!(state, State::Foreign) {
        Authority::Caller(CallerId::from_bits(8))
    } else {
        Authority::Secret
    }
}

/// The booking and its payment after a command that was taken.
fn cell(world: &World, booking: BookingId, result: &Result<Applied, Rejection>) -> String {
    outcome(result, |applied| {
        let same = if applied.has_effect() { "" } else { "same " };
        let booking = world.inventory.booking(booking).unwrap();
        let owned = |name: &str| world.state(name) == soldonce_core::StateKind::Sold;
        let sold = ["A-1", "A-2", "A-5"]
            .into_iter()
            .filter(|name| owned(name))
            .count();
        assert_eq!(
            sold > 0,
            booking.state.owns_units(),
            "lines and units agree"
        );
        format!("{same}{}", booking.state.as_str())
    })
}

#[test]
fn booking_states_and_commands() {
    let commands = [
        ("cancel all", Act::Cancel("")),
        ("cancel A-1", Act::Cancel("A-1")),
        ("cancel A-1, A-2", Act::Cancel("A-1 A-2")),
        ("cancel A-3", Act::Cancel("A-3")),
        ("exchange A-1", Act::Exchange),
    ];
    let answer = |state: State, command: Act| {
        let (mut world, booking) = given(state, policy());
        let result = act(&mut world, booking, by(state), command);
        cell(&world, booking, &result)
    };
    expect_table(&table(&STATES, &commands, answer), EXPECTED);
}

const EXPECTED: &str = "
                    | cancel all             | cancel A-1                    | cancel A-1, A-2        | cancel A-3            | exchange A-1
unknown             | booking_not_found      | booking_not_found             | booking_not_found      | booking_not_found     | booking_not_found
foreign             | booking_not_found      | booking_not_found             | booking_not_found      | booking_not_found     | booking_not_found
pending             | booking_not_confirmed  | booking_not_confirmed         | booking_not_confirmed  | booking_not_confirmed | booking_not_confirmed
pending, at its end | booking_not_confirmed  | booking_not_confirmed         | booking_not_confirmed  | booking_not_confirmed | booking_not_confirmed
confirmed           | cancelled +refund 2000 | partly_cancelled +refund 1000 | cancelled +refund 2000 | unknown_unit          | confirmed
confirmed, unpaid   | cancelled              | partly_cancelled              | cancelled              | unknown_unit          | confirmed
partly cancelled    | cancelled +refund 1000 | already_cancelled             | already_cancelled      | unknown_unit          | already_cancelled
cancelled           | already_cancelled      | already_cancelled             | already_cancelled      | already_cancelled     | already_cancelled
failed              | booking_not_confirmed  | booking_not_confirmed         | booking_not_confirmed  | booking_not_confirmed | booking_not_confirmed
expired             | booking_not_confirmed  | booking_not_confirmed         | booking_not_confirmed  | booking_not_confirmed | booking_not_confirmed
needs refund        | booking_not_confirmed  | booking_not_confirmed         | booking_not_confirmed  | booking_not_confirmed | booking_not_confirmed
refunded            | booking_not_confirmed  | booking_not_confirmed         | booking_not_confirmed  | booking_not_confirmed | booking_not_confirmed
";

#[test]
fn booking_states_and_reports_of_the_provider() {
    let reports = PaymentState::ALL.map(|state| (state.as_str(), Act::Pay(state)));
    let answer = |state: State, command: Act| {
        let (mut world, booking) = given(state, policy());
        let result = act(&mut world, booking, by(state), command);
        cell(&world, booking, &result)
    };
    let states: Vec<(&str, State)> = STATES
        .into_iter()
        .filter(|(_, state)| !matches!(state, State::Foreign))
        .collect();
    expect_table(&table(&states, &reports, answer), EXPECTED_REPORTS);
}

const EXPECTED_REPORTS: &str = "
                    | created               | action_required       | processing            | authorised            | captured                  | partly_refunded           | refunded              | failed                | voided                | lapsed                | declined
unknown             | booking_not_found     | booking_not_found     | booking_not_found     | booking_not_found     | booking_not_found         | booking_not_found         | booking_not_found     | booking_not_found     | booking_not_found     | booking_not_found     | booking_not_found
pending             | same pending_payment  | pending_payment       | pending_payment       | confirmed +capture    | confirmed                 | confirmed                 | failed                | failed                | failed                | failed                | pending_payment
pending, at its end | same pending_payment  | pending_payment       | pending_payment       | confirmed +capture    | confirmed                 | confirmed                 | expired +cancel       | expired +cancel       | expired +cancel       | expired +cancel       | pending_payment
confirmed           | same confirmed        | same confirmed        | same confirmed        | same confirmed        | confirmed                 | confirmed                 | confirmed             | same confirmed        | cancelled             | cancelled             | same confirmed
confirmed, unpaid   | booking_not_confirmed | booking_not_confirmed | booking_not_confirmed | booking_not_confirmed | booking_not_confirmed     | booking_not_confirmed     | booking_not_confirmed | booking_not_confirmed | booking_not_confirmed | booking_not_confirmed | booking_not_confirmed
partly cancelled    | same partly_cancelled | same partly_cancelled | same partly_cancelled | same partly_cancelled | same partly_cancelled     | partly_cancelled          | partly_cancelled      | same partly_cancelled | same partly_cancelled | same partly_cancelled | same partly_cancelled
cancelled           | same cancelled        | same cancelled        | same cancelled        | same cancelled        | same cancelled            | cancelled                 | cancelled             | same cancelled        | same cancelled        | same cancelled        | same cancelled
failed              | same failed           | failed                | failed                | confirmed +capture    | confirmed                 | confirmed                 | failed                | failed                | failed                | failed                | failed
expired             | same expired          | expired               | expired               | confirmed +capture    | confirmed                 | confirmed                 | expired               | expired               | expired               | expired               | expired
needs refund        | same needs_refund     | same needs_refund     | same needs_refund     | same needs_refund     | needs_refund +refund 2000 | needs_refund +refund 1000 | refunded              | same needs_refund     | refunded              | refunded              | same needs_refund
refunded            | same refunded         | same refunded         | same refunded         | same refunded         | refunded                  | refunded                  | refunded              | same refunded         | same refunded         | same refunded         | same refunded
";

/// A payment only moves forward: along the arrows of model.md 6, or further along them, since
/// reports get lost and reordered.
#[test]
fn payment_states_and_what_may_be_reported_next() {
    let states = PaymentState::ALL.map(|state| (state.as_str(), state));
    let answer = |from: PaymentState, to: PaymentState| {
        if from.may_become(to) { "x" } else { "" }.to_owned()
    };
    expect_table(&table(&states, &states, answer), EXPECTED_PAYMENT);
}

const EXPECTED_PAYMENT: &str = "
                | created | action_required | processing | authorised | captured | partly_refunded | refunded | failed | voided | lapsed | declined
created         |         | x               | x          | x          | x        | x               | x        | x      | x      | x      | x
action_required |         |                 | x          | x          | x        | x               | x        | x      | x      | x      | x
processing      |         | x               |            | x          | x        | x               | x        | x      | x      | x      | x
authorised      |         |                 |            |            | x        | x               | x        |        | x      | x      |
captured        |         |                 |            |            |          | x               | x        |        |        |        |
partly_refunded |         |                 |            |            |          |                 | x        |        |        |        |
refunded        |         |                 |            |            |          |                 |          |        |        |        |
failed          |         |                 |            | x          | x        | x               | x        |        | x      |        |
voided          |         |                 |            |            |          |                 |          |        |        |        |
lapsed          |         |                 |            |            |          |                 |          |        |        |        |
declined        |         | x               | x          | x          | x        | x               | x        | x      | x      | x      |
";

/// What became of the units since the hold of the booking ended.
#[derive(Clone, Copy)]
enum Since {
    Nothing,
    LastMs,
    AtEnd,
    OneTaken,
    OneTakenAndExpired,
    OneSold,
    SaleClosed,
    EventCancelled,
    Released,
    Revoked,
    Unpinned,
    BoughtTooMuch,
}

const SINCE: [(&str, Since); 12] = [
    ("in time", Since::Nothing),
    ("in the last ms", Since::LastMs),
    ("at its end", Since::AtEnd),
    ("one unit held", Since::OneTaken),
    ("one held, over", Since::OneTakenAndExpired),
    ("one unit sold", Since::OneSold),
    ("sale closed", Since::SaleClosed),
    ("event cancelled", Since::EventCancelled),
    ("hold released", Since::Released),
    ("hold revoked", Since::Revoked),
    ("payment abandoned", Since::Unpinned),
    ("bought his fill", Since::BoughtTooMuch),
];

fn late(since: Since, late_payment: LatePayment) -> (World, BookingId) {
    let bought_max = matches!(since, Since::BoughtTooMuch).then_some(2);
    let mut world = World::new(
        rows_and_floor(&[6], 0),
        Policy {
            late_payment,
            on_payment_failure: OnPaymentFailure::Keep,
            sale_closes_at: Deadline::At(
                crate::world::START.plus(soldonce_core::Span::from_ms(90_000)),
            ),
            units_bought_per_holder_max: bought_max,
            ..policy()
        },
    );
    let hold = world.hold("ann", "A-1 A-2");
    let booking = booked(&world.checkout(hold).unwrap()).id;
    let event = world.event;
    match since {
        Since::Nothing => {}
        Since::LastMs => world.wait(59_999),
        Since::AtEnd => world.wait(60_000),
        Since::OneTaken | Since::OneTakenAndExpired | Since::OneSold => {
            world.wait(60_000);
            let other = world.hold("bob", "A-2 A-3");
            if matches!(since, Since::OneSold) {
                world.confirm(other).unwrap();
            } else if matches!(since, Since::OneTakenAndExpired) {
                world.wait(60_000);
                open_again(&mut world);
            }
        }
        Since::SaleClosed => world.wait(90_000),
        Since::EventCancelled => {
            world
                .apply(Command::CancelEvent {
                    event,
                    reason: text("fire"),
                })
                .unwrap();
            let state = &world.inventory.event(event).unwrap().state;
            assert!(matches!(state, EventState::Cancelled(_)));
        }
        Since::Released => drop(world.apply(Command::Release { on: on(hold) }).unwrap()),
        Since::Revoked => {
            let reason = text("a bot");
            world.apply(Command::Revoke { hold, reason }).unwrap();
        }
        Since::Unpinned => world.abandon(hold),
        Since::BoughtTooMuch => {
            world.wait(60_000);
            let other = world.hold("ann", "A-4");
            world.confirm(other).unwrap();
        }
    }
    (world, booking)
}

/// The sale goes on after all.
fn open_again(world: &mut World) {
    let policy = world.inventory.event(world.event).unwrap().policy.clone();
    world.set(&Policy {
        sale_closes_at: Deadline::Never,
        ..policy
    });
}

#[test]
fn late_money_meets_the_late_policy() {
    let pays = [
        (
            "if free, authorised",
            (LatePayment::IfStillFree, PaymentState::Authorised),
        ),
        (
            "if free, captured",
            (LatePayment::IfStillFree, PaymentState::Captured),
        ),
        (
            "refund, authorised",
            (LatePayment::Refund, PaymentState::Authorised),
        ),
        (
            "refund, captured",
            (LatePayment::Refund, PaymentState::Captured),
        ),
        (
            "refuse, authorised",
            (LatePayment::Refuse, PaymentState::Authorised),
        ),
        (
            "refuse, captured",
            (LatePayment::Refuse, PaymentState::Captured),
        ),
    ];
    let answer = |since: Since, (policy, state): (LatePayment, PaymentState)| {
        let (mut world, booking) = late(since, policy);
        let result = world.pay(booking, state);
        outcome(&result, |_| {
            world
                .inventory
                .booking(booking)
                .unwrap()
                .state
                .as_str()
                .to_owned()
        })
    };
    expect_table(&table(&SINCE, &pays, answer), EXPECTED_LATE);
}

const EXPECTED_LATE: &str = "
                  | if free, authorised | if free, captured         | refund, authorised | refund, captured          | refuse, authorised | refuse, captured
in time           | confirmed +capture  | confirmed                 | confirmed +capture | confirmed                 | confirmed +capture | confirmed
in the last ms    | confirmed +capture  | confirmed                 | confirmed +capture | confirmed                 | confirmed +capture | confirmed
at its end        | confirmed +capture  | confirmed                 | needs_refund +void | needs_refund +refund 2000 | expired +void      | expired +refund 2000
one unit held     | needs_refund +void  | needs_refund +refund 2000 | needs_refund +void | needs_refund +refund 2000 | expired +void      | expired +refund 2000
one held, over    | confirmed +capture  | confirmed                 | needs_refund +void | needs_refund +refund 2000 | expired +void      | expired +refund 2000
one unit sold     | needs_refund +void  | needs_refund +refund 2000 | needs_refund +void | needs_refund +refund 2000 | expired +void      | expired +refund 2000
sale closed       | needs_refund +void  | needs_refund +refund 2000 | needs_refund +void | needs_refund +refund 2000 | expired +void      | expired +refund 2000
event cancelled   | needs_refund +void  | needs_refund +refund 2000 | needs_refund +void | needs_refund +refund 2000 | failed +void       | failed +refund 2000
hold released     | confirmed +capture  | confirmed                 | needs_refund +void | needs_refund +refund 2000 | failed +void       | failed +refund 2000
hold revoked      | needs_refund +void  | needs_refund +refund 2000 | needs_refund +void | needs_refund +refund 2000 | failed +void       | failed +refund 2000
payment abandoned | needs_refund +void  | needs_refund +refund 2000 | needs_refund +void | needs_refund +refund 2000 | failed +void       | failed +refund 2000
bought his fill   | needs_refund +void  | needs_refund +refund 2000 | needs_refund +void | needs_refund +refund 2000 | expired +void      | expired +refund 2000
";
