//! Rules that one state and one command do not show: budgets, caps, takeovers, areas, owners.

use soldonce_core::{
    Adjacency, Answer, Authority, Budget, CallerId, Change, Command, Conflict, EventNo, Fence,
    HoldId, HoldState, Invalid, LineChoice, NewHold, OnHold, OnPaymentFailure, PaymentReport,
    PaymentState, Policy, Rejection, Selection, Span, StateKind, Timestamp, Together, Wish,
};

use crate::world::{World, booked, held, holder, on, on_fence, policy, rows_and_floor, text};

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

fn over_budget(budget: Budget, limit: u32, used: u32) -> Rejection {
    Rejection::BudgetExceeded {
        budget,
        limit,
        used,
    }
}

#[test]
fn a_holder_has_so_many_units_live_at_once() {
    let mut world = world_with(Policy {
        units_per_holder_max: 5,
        ..policy()
    });
    world.hold("ann", "A-1 A-2 A-3");
    let refusal = world.try_hold("ann", "B-1 B-2 B-3").unwrap_err();
    assert_eq!(refusal, over_budget(Budget::Held, 5, 3));
    world.hold("ann", "B-1 floor*1");
    assert!(world.try_best("ann", 1).is_err());
    world.hold("bob", "B-2 B-3 B-4 B-5 B-6");
    // Over, though nobody wrote it down: it does not count.
    world.wait(60_000);
    world.hold("ann", "A-1 A-2 A-3 A-4 A-5");
    assert_eq!(
        world.try_hold("ann", "B-1").unwrap_err(),
        over_budget(Budget::Held, 5, 5)
    );
}

#[test]
fn a_changed_hold_counts_once_against_the_budget() {
    let mut world = world_with(Policy {
        units_per_holder_max: 5,
        ..policy()
    });
    let hold = world.hold("ann", "A-1 A-2 A-3");
    world.hold("ann", "B-1");
    assert_eq!(
        change(&mut world, hold, "A-4 A-5", ""),
        Err(over_budget(Budget::Held, 5, 1))
    );
    let (units, fence) = change(&mut world, hold, "A-4 A-5", "A-1").unwrap();
    assert_eq!((units.as_str(), fence), ("A-2 A-3 A-4 A-5", Fence(2)));
    assert_eq!(world.state("A-1"), StateKind::Free);
}

#[test]
fn what_is_held_counts_against_what_may_be_bought() {
    let mut world = world_with(Policy {
        units_bought_per_holder_max: Some(3),
        ..policy()
    });
    let bought = world.hold("ann", "A-1");
    let booking = booked(&world.confirm(bought).unwrap()).id;
    world.hold("ann", "A-2");
    let refusal = world.try_hold("ann", "B-1 B-2").unwrap_err();
    assert_eq!(refusal, over_budget(Budget::Bought, 3, 2));
    assert_eq!(
        sell(&mut world, "ann", "B-1 B-2"),
        Err(over_budget(Budget::Bought, 3, 2))
    );
    // What was given back may be bought again.
    let lines = LineChoice::All;
    world
        .apply(Command::Cancel {
            booking,
            by: Authority::Staff,
            lines,
        })
        .unwrap();
    assert_eq!(sell(&mut world, "ann", "B-1 B-2"), Ok("B-1 B-2".to_owned()));
}

fn sell(world: &mut World, name: &str, units: &str) -> Result<String, Rejection> {
    let (event, selection, booking) = (world.event, world.select(units), world.mint_booking());
    let holder = holder(name);
    let sell = Command::Sell {
        event,
        selection,
        holder,
        booking,
        reference: None,
    };
    let applied = world.apply(sell)?;
    Ok(world.names(booked(&applied).lines.iter().map(|line| line.unit)))
}

#[test]
fn the_box_office_keeps_the_rules_of_the_hall() {
    let mut world = world_with(Policy {
        adjacency: Adjacency::NoOrphan,
        sale_opens_at: Some(Timestamp::from_ms(1_000_500)),
        ..policy()
    });
    let opens_at = Some(Timestamp::from_ms(1_000_500));
    assert_eq!(
        sell(&mut world, "ann", "A-1"),
        Err(Rejection::NotOnSale { opens_at })
    );
    world.wait(500);
    let orphan = Rejection::AdjacencyRefused(vec![world.unit("A-1")]);
    assert_eq!(sell(&mut world, "ann", "A-2"), Err(orphan));
    // More units than a hold may have.
    let all = "A-1 A-2 A-3 A-4 A-5 A-6 A-7 A-8 B-1 B-2 B-3 B-4 floor*10";
    assert!(sell(&mut world, "ann", all).is_ok());
}

/// T4: whoever takes one unit of a hold that is over ends the whole of it, also over areas.
#[test]
fn a_takeover_ends_the_whole_old_hold() {
    let mut world = world();
    let old = world.hold("ann", "A-1 A-2 floor*8");
    world.wait(60_000);
    assert_eq!(
        world.state("A-2"),
        StateKind::Held,
        "nobody wrote it down yet"
    );
    let applied = world.try_hold("bob", "floor*3").unwrap();
    let new = held(&applied);
    assert_eq!(
        world.names(new.units.iter().map(|held| held.unit)),
        "floor.1 floor.2 floor.3"
    );
    assert_eq!(new.fence, Fence(2), "above the fence of the old hold");
    assert_eq!(applied.holds, [old, new.id]);
    assert_eq!(applied.commits.len(), 1, "both in one commit");
    assert_eq!(world.inventory.hold(old).unwrap().state, HoldState::Expired);
    for name in ["A-1", "A-2", "floor.4", "floor.8"] {
        assert_eq!(world.state(name), StateKind::Free, "{name}");
    }
}

#[test]
fn areas_give_any_places_that_are_open() {
    let mut world = world();
    let first = world.hold("ann", "floor*3");
    world.hold("bob", "floor*5");
    let Err(Rejection::UnitUnavailable(refusal)) = world.try_hold("cid", "floor*3 A-1") else {
        panic!("two places are free");
    };
    let area = soldonce_core::AreaNo(0);
    assert_eq!(refusal.conflicts, [Conflict::Area { area, free: 2 }]);
    assert_eq!(world.state("A-1"), StateKind::Free, "all or nothing");
    world.apply(Command::Release { on: on(first) }).unwrap();
    let third = world.hold("cid", "floor*5");
    let hold = world.inventory.hold(third).unwrap();
    let places = world.names(hold.units.iter().map(|held| held.unit));
    assert_eq!(places, "floor.1 floor.2 floor.3 floor.9 floor.10");
}

#[test]
fn a_change_takes_and_drops_places() {
    let mut world = world();
    let hold = world.hold("ann", "A-1 floor*2");
    let (units, fence) = change(&mut world, hold, "floor*2", "A-1").unwrap();
    assert_eq!(
        (units.as_str(), fence),
        ("floor.1 floor.2 floor.3 floor.4", Fence(2))
    );
    let (units, fence) = change(&mut world, hold, "A-1", "floor*3").unwrap();
    assert_eq!((units.as_str(), fence), ("A-1 floor.1", Fence(3)));
    let (units, _) = change(&mut world, hold, "A-1", "").unwrap();
    assert_eq!(units, "A-1 floor.1", "what it has already is no change");
    let refusals = [
        ("", "floor*2", "unknown_unit"),
        ("", "A-2", "unknown_unit"),
        ("A-1", "A-1", "invalid_request"),
        ("", "A-1 floor*1", "invalid_request"),
        ("floor*10", "", "too_many_units"),
    ];
    for (add, drop, code) in refusals {
        let refusal = change(&mut world, hold, add, drop).unwrap_err();
        assert_eq!(refusal.code(), code, "+ {add} - {drop}");
    }
}

/// He comes closer to what is allowed now: that must not be refused.
#[test]
fn dropping_units_needs_no_budget() {
    let mut world = world();
    let hold = world.hold("ann", "A-1 A-2 A-3 A-4");
    let event = world.event;
    let strict = Policy {
        units_per_hold_max: 2,
        units_per_holder_max: 2,
        sale_closes_at: Some(world.now),
        ..policy()
    };
    let policy = Box::new(strict);
    world
        .apply(Command::UpdatePolicy { event, policy })
        .unwrap();
    assert_eq!(
        change(&mut world, hold, "", "A-1").unwrap().0,
        "A-2 A-3 A-4"
    );
    assert!(change(&mut world, hold, "A-5", "A-2").is_err());
}

#[test]
fn a_hold_is_never_extended_beyond_its_cap_nor_made_shorter() {
    let mut world = world();
    let hold = world.hold("ann", "A-1");
    let extend = |world: &mut World, ms: u64| {
        let (ttl, ttl_max) = (Some(Span::from_ms(ms)), None);
        let applied = world.apply(Command::Extend {
            on: on(hold),
            ttl,
            ttl_max,
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
    let mut ask = |ttl: u64, most: Option<u64>| {
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
            ttl_max: most.map(Span::from_ms),
        };
        world
            .apply(Command::Hold(new))
            .map(|applied| held(&applied).expires_at.ms() - 1_000_000)
    };
    assert_eq!(ask(1_000, None), Ok(1_000));
    assert_eq!(ask(180_000, None), Ok(180_000));
    assert_eq!(ask(60_000, Some(60_000)), Ok(60_000), "a session's bound");
    for (ttl, most, bounds) in [
        (999, None, "999 is outside 1000 ..= 180000"),
        (180_001, None, "180001 is outside 1000 ..= 180000"),
        (60_001, Some(60_000), "60001 is outside 1000 ..= 60000"),
    ] {
        assert_eq!(
            ask(ttl, most),
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
    world.apply(Command::Abandon { on: on(hold) }).unwrap();
    assert_eq!(ends(&world), 20_000, "the retry window");
    world.wait(19_999);
    world.checkout(hold).unwrap();
    assert_eq!(ends(&world), 49_999);
    world.apply(Command::Abandon { on: on(hold) }).unwrap();
    world.wait(10_000);
    let ttl = Some(Span::from_ms(180_000));
    world
        .apply(Command::Extend {
            on: on(hold),
            ttl,
            ttl_max: None,
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
    world.apply(Command::Abandon { on: on(hold) }).unwrap();
    assert_eq!(
        ends(&world),
        210_000,
        "the cap and one window, not a retry window more"
    );
    let refusal = world
        .apply(Command::Extend {
            on: on(hold),
            ttl,
            ttl_max: None,
        })
        .unwrap_err();
    assert_eq!(refusal.code(), "cap_reached");
}

#[test]
fn a_failed_payment_may_free_the_units_at_once() {
    let mut world = world_with(Policy {
        on_payment_failure: OnPaymentFailure::Release,
        ..policy()
    });
    let hold = world.hold("ann", "A-1 A-2");
    let booking = booked(&world.checkout(hold).unwrap()).id;
    let state = PaymentState::Failed;
    let applied = world
        .apply(Command::Payment(PaymentReport { booking, state }))
        .unwrap();
    assert_eq!(booked(&applied).state.as_str(), "failed");
    assert!(
        applied.effects.is_empty(),
        "there is no intent left to cancel"
    );
    assert_eq!(
        world.inventory.hold(hold).unwrap().state,
        HoldState::Released
    );
    assert_eq!(world.state("A-1"), StateKind::Free);
}

#[test]
fn fences_rise_with_every_owner() {
    let mut world = world();
    let first = world.hold("ann", "A-1 A-2");
    world.apply(Command::Release { on: on(first) }).unwrap();
    let second = world.hold("bob", "A-2 A-3");
    assert_eq!(
        world.inventory.hold(second).unwrap().fence,
        Fence(2),
        "1 + the newest of its units"
    );
    let booking = booked(&world.confirm(second).unwrap()).id;
    let lines = LineChoice::Some {
        units: vec![world.unit("A-3")],
        places: Selection::default(),
    };
    world
        .apply(Command::Cancel {
            booking,
            by: Authority::Secret,
            lines,
        })
        .unwrap();
    let third = world.hold("cid", "A-3 A-4");
    assert_eq!(
        world.inventory.hold(third).unwrap().fence,
        Fence(4),
        "giving back raises it too"
    );
    let stale = on_fence(third, Fence(3));
    assert_eq!(
        world.apply(Command::Release { on: stale }).unwrap_err(),
        Rejection::StaleFence(Fence(4))
    );
    world
        .apply(Command::Release {
            on: on_fence(third, Fence(4)),
        })
        .unwrap();
}

/// A secret proves one hold. With that alone nobody reaches another owner's booking.
#[test]
fn a_secret_opens_no_foreign_booking() {
    let mut world = world();
    let of_bob = world.hold("bob", "A-1");
    let booking = booked(&world.confirm(of_bob).unwrap()).id;
    let of_ann = world.hold("ann", "B-1");
    let give = vec![world.unit("A-1")];
    let exchange = |on: OnHold| Command::Exchange {
        booking,
        give: give.clone(),
        on,
    };
    let refusal = world.apply(exchange(on(of_ann))).unwrap_err();
    assert_eq!(refusal, Rejection::BookingNotFound);
    let stranger = OnHold {
        by: Authority::Caller(CallerId::from_bits(8)),
        ..on(of_ann)
    };
    assert_eq!(
        world.apply(exchange(stranger)).unwrap_err(),
        Rejection::BookingNotFound
    );
    let staff = OnHold {
        by: Authority::Staff,
        ..on(of_ann)
    };
    let applied = world.apply(exchange(staff)).unwrap();
    assert_eq!(booked(&applied).holder, holder("bob"));
    assert_eq!(
        (world.state("A-1"), world.state("B-1")),
        (StateKind::Free, StateKind::Sold)
    );
}

#[test]
fn an_exchange_swaps_and_refunds_the_difference() {
    let mut world = world();
    let hold = world.hold("ann", "floor*1 A-1");
    let booking = booked(&world.checkout(hold).unwrap()).id;
    let state = PaymentState::Captured;
    world
        .apply(Command::Payment(PaymentReport { booking, state }))
        .unwrap();
    let cheaper = world.hold("ann", "B-1");
    let give = vec![world.unit("floor.1")];
    let applied = world
        .apply(Command::Exchange {
            booking,
            give: give.clone(),
            on: on(cheaper),
        })
        .unwrap();
    let lines = booked(&applied).lines.iter().map(|line| line.unit);
    assert_eq!(world.names(lines), "A-1 B-1");
    assert_eq!(
        (booked(&applied).total().minor(), applied.effects.len()),
        (2_000, 1)
    );
    let dearer = world.hold("ann", "floor*1");
    let refusal = world
        .apply(Command::Exchange {
            booking,
            give: vec![world.unit("A-1")],
            on: on(dearer),
        })
        .unwrap_err();
    assert_eq!(refusal, Rejection::PaymentRequired);
    let refusal = world
        .apply(Command::Exchange {
            booking,
            give,
            on: on(dearer),
        })
        .unwrap_err();
    assert_eq!(
        refusal.code(),
        "unknown_unit",
        "what was swapped away is no line any more"
    );
}

/// What was cancelled before stays in the record, also when the same unit comes and goes again.
#[test]
fn an_exchange_keeps_cancelled_lines() {
    let mut world = world();
    let hold = world.hold("ann", "A-1 A-2");
    let booking = booked(&world.confirm(hold).unwrap()).id;
    let by = Authority::Secret;
    let lines = LineChoice::Some {
        units: vec![world.unit("A-1")],
        places: Selection::default(),
    };
    world.apply(Command::Cancel { booking, by, lines }).unwrap();
    for (give, take) in [("A-2", "A-1"), ("A-1", "A-5")] {
        let on = on(world.hold("ann", take));
        let give = vec![world.unit(give)];
        world
            .apply(Command::Exchange { booking, give, on })
            .unwrap();
    }
    let booking = world.inventory.booking(booking).unwrap();
    let lines = booking
        .lines
        .iter()
        .map(|line| format!("{} {}", world.names([line.unit]), line.state.as_str()));
    assert_eq!(lines.collect::<Vec<_>>(), ["A-1 cancelled", "A-5 sold"]);
    assert_eq!(booking.state.as_str(), "partly_cancelled");
}

#[test]
fn owners_give_back_until_the_deadline_and_staff_always() {
    let until = Timestamp::from_ms(1_050_000);
    let mut world = world_with(Policy {
        cancel_until: Some(until),
        ..policy()
    });
    let hold = world.hold("ann", "A-1 A-2");
    let booking = booked(&world.confirm(hold).unwrap()).id;
    world.wait(49_999);
    let cancel = |world: &World, by, unit| {
        let lines = LineChoice::Some {
            units: vec![world.unit(unit)],
            places: Selection::default(),
        };
        Command::Cancel { booking, by, lines }
    };
    let in_time = cancel(&world, Authority::Secret, "A-1");
    world.apply(in_time).unwrap();
    world.wait(1);
    let late = cancel(&world, Authority::Secret, "A-2");
    assert_eq!(
        world.apply(late).unwrap_err(),
        Rejection::CancelClosed(until)
    );
    let other = on(world.hold("ann", "A-5"));
    let give = vec![world.unit("A-2")];
    let exchange = Command::Exchange {
        booking,
        give,
        on: other,
    };
    assert_eq!(
        world.apply(exchange).unwrap_err(),
        Rejection::CancelClosed(until)
    );
    let by_staff = cancel(&world, Authority::Staff, "A-2");
    world.apply(by_staff).unwrap();
}

#[test]
fn lines_are_chosen_by_unit_and_by_area() {
    let mut world = world();
    let hold = world.hold("ann", "A-1 A-2 floor*4");
    let booking = booked(&world.confirm(hold).unwrap()).id;
    let mut cancel = |names: &str, also: &str| {
        let selection = world.select(names);
        let mut units = selection.seats().to_vec();
        units.extend((!also.is_empty()).then(|| world.unit(also)));
        let lines = LineChoice::Some {
            units,
            places: selection.without_seats(),
        };
        let applied = world.apply(Command::Cancel {
            booking,
            by: Authority::Secret,
            lines,
        })?;
        let sold = |line: &&soldonce_core::Line| line.state.as_str() == "sold";
        let sold = booked(&applied)
            .lines
            .iter()
            .filter(sold)
            .map(|line| line.unit);
        Ok(world.names(sold))
    };
    assert_eq!(
        cancel("A-1 floor*1", "floor.1"),
        Ok("A-2 floor.3 floor.4".to_owned())
    );
    assert_eq!(
        cancel("floor*3", ""),
        Err(Rejection::UnknownUnit(vec!["floor".to_owned()]))
    );
    assert_eq!(cancel("A-5 B-1", ""), Err(unknown(&["A-5", "B-1"])));
    assert_eq!(
        cancel("", "").map_err(|refusal| refusal.code()),
        Err("invalid_request")
    );
    assert_eq!(cancel("A-2 floor*2", ""), Ok(String::new()));
}

fn unknown(names: &[&str]) -> Rejection {
    Rejection::UnknownUnit(names.iter().map(|name| (*name).to_owned()).collect())
}

#[test]
fn a_request_names_what_the_chart_has() {
    let world = world();
    let chart = world.chart();
    let names = ["A-1", "Z-9", "A-1"];
    assert_eq!(
        chart.select(names, [("stalls", 1)]),
        Err(unknown(&["Z-9", "stalls"]))
    );
    let twice = chart
        .select(["A-2", "A-1", "A-2"], [("floor", 1), ("floor", 2)])
        .unwrap();
    assert_eq!(
        (twice.seats().len(), twice.count()),
        (2, 5),
        "doubles count once, places add up"
    );
    assert!(chart.select([], [("floor", 0)]).unwrap().is_empty());
}

/// The end of a hold moves its pending booking without naming it: that one cannot be forgotten.
#[test]
fn what_waits_is_not_forgotten() {
    let mut world = world();
    let hold = world.hold("ann", "A-1");
    let booking = booked(&world.checkout(hold).unwrap()).id;
    world.inventory.forget_booking(booking);
    world.inventory.forget_hold(hold);
    world.wait(60_000);
    world.sweep();
    assert_eq!(
        world.inventory.booking(booking).unwrap().state.as_str(),
        "expired"
    );
    world.inventory.forget_booking(booking);
    world.inventory.forget_hold(hold);
    assert!(world.inventory.booking(booking).is_none() && world.inventory.hold(hold).is_none());
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

#[test]
fn blocked_places_come_back() {
    let mut world = world();
    let (event, selection) = (world.event, world.select("A-2 floor*4"));
    let reason = text("camera");
    let block = Command::Block {
        event,
        selection: selection.clone(),
        reason: reason.clone(),
    };
    let applied = world.apply(block).unwrap();
    assert_eq!(applied.commits[0].reason, Some(reason.clone()));
    let more = Command::Unblock {
        event,
        selection: world.select("A-1 floor*5"),
        reason,
    };
    let Err(Rejection::UnitUnavailable(refusal)) = world.apply(more) else {
        panic!("four places are blocked");
    };
    assert_eq!(refusal.conflicts.len(), 2);
    let some = Command::Unblock {
        event,
        selection: world.select("floor*3"),
        reason: text("sold"),
    };
    let Answer::Units(_, units) = world.apply(some).unwrap().answer else {
        panic!("units were unblocked");
    };
    assert_eq!(world.names(units), "floor.1 floor.2 floor.3");
}

#[test]
fn events_are_made_once_and_called_off_once() {
    let mut world = world();
    let event = world.event;
    let unknown = EventNo(9);
    let policy = Box::new(Policy {
        units_per_hold_max: 65,
        ..policy()
    });
    let update = |event| Command::UpdatePolicy {
        event,
        policy: policy.clone(),
    };
    assert_eq!(
        world.apply(update(unknown)).unwrap_err(),
        Rejection::EventNotFound
    );
    assert_eq!(
        world.apply(update(event)).unwrap_err().code(),
        "invalid_request"
    );
    let live = world.hold("ann", "A-1");
    let call_off = || Command::CancelEvent {
        event,
        reason: text("fire"),
    };
    let applied = world.apply(call_off()).unwrap();
    assert_eq!(applied.holds, [live]);
    assert_eq!(
        world.inventory.hold(live).unwrap().state,
        HoldState::Revoked(text("fire"))
    );
    assert!(!world.apply(call_off()).unwrap().has_effect());
    assert_eq!(
        world.try_best("ann", 1).unwrap_err(),
        Rejection::NotOnSale { opens_at: None }
    );
}

#[test]
#[should_panic(expected = "the id of a new hold is another's already")]
fn an_id_that_exists_stops_the_writer() {
    let mut world = world();
    let hold = world.hold("ann", "A-1");
    let wish = Wish::Named(world.select("A-2"));
    let (event, holder) = (world.event, holder("bob"));
    let new = NewHold {
        event,
        hold,
        holder,
        wish,
        ttl: None,
        ttl_max: None,
    };
    drop(world.apply(Command::Hold(new)));
}
