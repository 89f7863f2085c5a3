//! How long a hold lives: bounds, caps, pins, and a clock that never goes back.

use soldonce_core::{
    Answer, Command, Effect, EventNo, HoldState, Invalid, NewHold, OnPaymentFailure, PaymentState,
    Policy, Rejection, Span, StateKind, Timestamp, Together, TtlMax, Wish,
};

use super::{world, world_with};
use crate::world::{World, booked, held, holder, on, policy, rows_and_floor};

#[test]
fn a_hold_is_never_extended_beyond_its_cap_nor_made_shorter() {
    let mut world = world();
    let hold = world.hold("ann", "A-1");
    let extend = |world: &mut World, ms: u64| {
        let ttl = Some(Span::from_ms(ms));
        let applied = world.apply(Command::Extend {
            on: on(hold),
            ttl,
            ttl_max: TtlMax::HoldMax,
        })?;
        Ok(held(&applied).expires_at.ms() - 1_000_000)
    };
    assert_eq!(extend(&mut world, 1_000), Ok(60_000), "never earlier");
    assert_eq!(extend(&mut world, 70_000), Ok(70_000));
    world.wait(69_999);
    assert_eq!(extend(&mut world, 170_000), Ok(180_000), "cut at the cap");
    let cap = Timestamp::from_ms(1_180_000);
    assert_eq!(extend(&mut world, 170_000), Err(Rejection::CapReached(cap)));
    for ms in [999, 180_001] {
        let refusal = extend(&mut world, ms);
        assert!(matches!(
            refusal,
            Err(Rejection::Invalid(_) | Rejection::CapReached(_))
        ));
    }
}

#[test]
fn the_time_asked_for_has_bounds() {
    let mut world = world();
    let mut ask = |ttl: u64, ttl_max: TtlMax| {
        let new = NewHold {
            event: world.event,
            hold: world.mint_hold(),
            holder: holder("ann"),
            wish: Wish::Best {
                quantity: 1,
                category: None,
                together: Together::Preferred,
            },
            ttl: Some(Span::from_ms(ttl)),
            ttl_max,
        };
        world
            .apply(Command::Hold(new))
            .map(|applied| held(&applied).expires_at.ms() - 1_000_000)
    };
    assert_eq!(ask(1_000, TtlMax::HoldMax), Ok(1_000));
    assert_eq!(ask(180_000, TtlMax::HoldMax), Ok(180_000));
    assert_eq!(
        ask(60_000, TtlMax::HoldTtl),
        Ok(60_000),
        "a session's bound"
    );
    for (ttl, ttl_max, bounds) in [
        (999, TtlMax::HoldMax, "999 is outside 1000 ..= 180000"),
        (
            180_001,
            TtlMax::HoldMax,
            "180001 is outside 1000 ..= 180000",
        ),
        (60_001, TtlMax::HoldTtl, "60001 is outside 1000 ..= 60000"),
    ] {
        assert_eq!(
            ask(ttl, ttl_max),
            Err(Invalid::new("ttl_ms", bounds.to_owned()).into())
        );
    }
}

/// `min(now + window, cap + window)`, and never earlier than it was.
#[test]
fn a_pin_gives_the_payment_window() {
    let mut world = world();
    let hold = world.hold("ann", "A-1");
    let ends = |world: &World| world.inventory.hold(hold).unwrap().expires_at.ms() - 1_000_000;
    world.checkout(hold).unwrap();
    assert_eq!(ends(&world), 60_000, "never earlier");
    world.abandon(hold);
    assert_eq!(ends(&world), 20_000, "the retry window");
    world.wait(19_999);
    world.checkout(hold).unwrap();
    assert_eq!(ends(&world), 49_999);
    world.abandon(hold);
    world.wait(10_000);
    let ttl = Some(Span::from_ms(180_000));
    world
        .apply(Command::Extend {
            on: on(hold),
            ttl,
            ttl_max: TtlMax::HoldMax,
        })
        .unwrap();
    assert_eq!(ends(&world), 180_000, "the cap");
    world.wait(150_000);
    world.checkout(hold).unwrap();
    assert_eq!(
        ends(&world),
        209_999,
        "beyond the cap, by less than a window"
    );
    world.wait(29_999);
    world.abandon(hold);
    assert_eq!(
        ends(&world),
        210_000,
        "the cap and one window, not a retry window more"
    );
    let refusal = world
        .apply(Command::Extend {
            on: on(hold),
            ttl,
            ttl_max: TtlMax::HoldMax,
        })
        .unwrap_err();
    assert_eq!(refusal.code(), "cap_reached");
}

#[test]
fn a_declined_card_may_free_the_units_at_once() {
    let mut world = world_with(Policy {
        on_payment_failure: OnPaymentFailure::Release,
        ..policy()
    });
    let hold = world.hold("ann", "A-1 A-2");
    let booking = booked(&world.checkout(hold).unwrap()).id;
    let applied = world.pay(booking, PaymentState::Declined).unwrap();
    assert_eq!(booked(&applied).state.as_str(), "failed");
    assert_eq!(
        applied.effects,
        [Effect::CancelIntent(booking)],
        "another card could still pay it"
    );
    assert_eq!(
        world.inventory.hold(hold).unwrap().state,
        HoldState::Released
    );
    assert_eq!(world.state("A-1"), StateKind::Free);
}

#[test]
fn the_sweeper_takes_the_oldest_first_and_stops_at_its_limit() {
    let mut world = world();
    let other = world.add_event("matinee", rows_and_floor(&[4], 0), policy());
    let first = world.hold("ann", "A-1");
    world.wait(1);
    world.event = other;
    let second = world.hold("ann", "A-1");
    world.event = EventNo(0);
    world.wait(1);
    world.hold("ann", "A-3");
    assert_eq!(
        world.inventory.next_expiry(),
        Some(Timestamp::from_ms(1_060_000))
    );
    world.wait(60_000 - 1);
    let applied = world.apply(Command::Sweep { limit: 1 }).unwrap();
    assert!(matches!(applied.answer, Answer::Swept(1)));
    assert_eq!(applied.holds, [first]);
    assert_eq!(
        world.inventory.next_expiry(),
        Some(Timestamp::from_ms(1_060_001))
    );
    let applied = world.apply(Command::Sweep { limit: 9 }).unwrap();
    assert_eq!(applied.holds, [second], "the third is live");
    assert_eq!(
        world.inventory.next_expiry(),
        Some(Timestamp::from_ms(1_060_002))
    );
}

#[test]
fn the_ledgers_time_never_goes_back() {
    let mut world = world();
    let hold = world.hold("ann", "A-1");
    world.wait(60_000);
    world.hold("bob", "B-1");
    world.now = Timestamp::from_ms(0);
    assert_eq!(
        world.confirm(hold).unwrap_err(),
        Rejection::HoldExpired,
        "no jump back revives it"
    );
    assert_eq!(world.inventory.clock(), Timestamp::from_ms(1_060_000));
}

/// A payment window that became shorter meanwhile may end a hold the moment its payment fails. Its
/// units are open to others at once, also to those who look for any.
#[test]
fn a_hold_that_ends_at_once_is_open_at_once() {
    let mut world = world();
    let hold = world.hold("ann", "floor*10");
    world.wait(59_999);
    let ttl = Some(Span::from_ms(180_000));
    let extend = Command::Extend {
        on: on(hold),
        ttl,
        ttl_max: TtlMax::HoldMax,
    };
    world.apply(extend).unwrap();
    world.wait(120_000);
    world.checkout(hold).unwrap();
    world.set(&Policy {
        payment_window: Span::from_ms(1_000),
        ..policy()
    });
    world.wait(1_001);
    assert!(world.try_hold("bob", "floor*1").is_err());
    world.abandon(hold);
    assert_eq!(world.inventory.hold(hold).unwrap().expires_at, world.now);
    world.hold("bob", "floor*1");
}

/// A request that comes late gives up the payment that it names, and no later one.
#[test]
fn a_payment_is_given_up_by_its_name() {
    let mut world = world();
    let hold = world.hold("ann", "A-1");
    let give_up = |world: &mut World, booking| {
        let on = on(hold);
        world.apply(Command::Abandon { on, booking }).unwrap();
        world.inventory.hold(hold).unwrap().state.clone()
    };
    let first = booked(&world.checkout(hold).unwrap()).id;
    assert_eq!(give_up(&mut world, Some(first)), HoldState::Active);
    let second = booked(&world.checkout(hold).unwrap()).id;
    assert_eq!(give_up(&mut world, Some(first)), HoldState::Pinned(second));
    assert_eq!(give_up(&mut world, Some(second)), HoldState::Active);
    let third = booked(&world.checkout(hold).unwrap()).id;
    assert_ne!(third, second);
    assert_eq!(give_up(&mut world, None), HoldState::Active);
}
