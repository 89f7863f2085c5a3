//! Holding, changing, extending, letting go.

use soldonce_core::limits::ENDED_UNITS_MAX;
use soldonce_core::{
    Actor, Answer, Authority, CategoryNo, Change, Command, Conflict, ConflictState, EventChange,
    EventState, HoldState, OnHold, Policy, Rejection, Selection, Span, Text, Together, TtlMax,
    UnitNo, UnitState, Wish,
};
use soldonce_engine::ledger::Done;

use crate::ledgers::{START_MS, TestLedger, caller, expect_taken, held, on, select};

const TTL_MS: u64 = 600_000;

fn unit(event: &soldonce_core::Event, seat: &str) -> UnitNo {
    event.chart.find_unit(seat).unwrap()
}

pub(super) async fn held_units_are_refused_to_others_with_their_state(test: TestLedger) {
    let event = test.event().await;
    let ann = test.hold(&event, "ann", &["A-1", "A-2"]).await.unwrap();
    assert_eq!(ann.expires_at.ms(), START_MS + 600_000);
    let sold = test.hold(&event, "cid", &["A-3"]).await.unwrap();
    test.confirm(&sold).await.unwrap();
    let refused = test
        .hold(&event, "bob", &["A-1", "A-3", "A-4"])
        .await
        .unwrap_err();
    let Rejection::UnitUnavailable(unavailable) = refused else {
        panic!("{refused:?}")
    };
    let conflict = |seat: &str, state, retry_after| Conflict::Seat {
        unit: unit(&event, seat),
        state,
        retry_after,
    };
    assert_eq!(
        unavailable.conflicts,
        [
            conflict("A-1", ConflictState::Held, Some(Span::from_ms(TTL_MS))),
            conflict("A-3", ConflictState::Sold, None),
        ]
    );
    assert!(!unavailable.alternatives.is_empty());
    let free = test.hold(&event, "bob", &["A-4"]).await.unwrap();
    assert_eq!(free.units.len(), 1, "a refusal leaves nothing behind");
}

pub(super) async fn the_own_hold_comes_back(test: TestLedger) {
    let event = test.event().await;
    let first = test.hold(&event, "ann", &["A-1", "A-2"]).await.unwrap();
    test.advance_ms(5_000);
    let done = test
        .ask(test.hold_command(&event, "ann", &["A-2", "A-1"]))
        .await
        .unwrap();
    let Done::Fresh {
        answer: Answer::OwnHold(again),
        seq: None,
    } = done
    else {
        panic!("{done:?}")
    };
    assert_eq!(again, first);
    let some = test.hold(&event, "ann", &["A-2", "A-3"]).await.unwrap_err();
    let Rejection::UnitUnavailable(some) = some else {
        panic!("{some:?}")
    };
    assert!(matches!(
        some.conflicts[..],
        [Conflict::Seat {
            state: ConflictState::Yours,
            ..
        }]
    ));
}

pub(super) async fn a_change_takes_and_gives_up_in_one_step(test: TestLedger) {
    let event = test.event().await;
    let hold = test.hold(&event, "ann", &["A-1", "A-2"]).await.unwrap();
    test.hold(&event, "bob", &["A-5"]).await.unwrap();
    let change = |hold: &soldonce_core::Hold, add: &[&str], drop: &[&str]| {
        Command::Change(Box::new(Change {
            on: on(hold),
            add: select(&event, add, &[]),
            drop: drop.iter().map(|seat| unit(&event, seat)).collect(),
            drop_places: Selection::default(),
        }))
    };
    let refused = test.ask(change(&hold, &["A-3", "A-5"], &["A-1"])).await;
    expect_taken(&refused);
    let changed = held(test.ask(change(&hold, &["A-3"], &["A-1"])).await).unwrap();
    let units: Vec<UnitNo> = changed.units.iter().map(|held| held.unit).collect();
    assert_eq!(units, [unit(&event, "A-2"), unit(&event, "A-3")]);
    assert!(changed.fence > hold.fence);
    assert_eq!(changed.expires_at, hold.expires_at);
    let stale = test.ask(change(&hold, &["A-4"], &[])).await.unwrap_err();
    assert_eq!(stale, Rejection::StaleFence(changed.fence));
    test.hold(&event, "eve", &["A-1"]).await.unwrap();
}

/// The new units have never had an owner, so their fences are the lowest that there are.
pub(super) async fn a_change_of_all_units_keeps_the_fence_rising(test: TestLedger) {
    let event = test.event().await;
    for _ in 0..3 {
        let before = test.hold(&event, "bob", &["A-1"]).await.unwrap();
        test.ask(Command::Release { on: on(&before) })
            .await
            .unwrap();
    }
    let hold = test.hold(&event, "ann", &["A-1"]).await.unwrap();
    let swap = Command::Change(Box::new(Change {
        on: on(&hold),
        add: select(&event, &["A-5"], &[("floor", 2)]),
        drop: vec![unit(&event, "A-1")],
        drop_places: Selection::default(),
    }));
    let changed = held(test.ask(swap).await).unwrap();
    assert_eq!(changed.units.len(), 3);
    assert_eq!(changed.fence, hold.fence.next());
    let stale = test.ask(Command::Release { on: on(&hold) }).await;
    assert_eq!(stale.unwrap_err(), Rejection::StaleFence(changed.fence));
    test.confirm(&changed).await.unwrap();
}

pub(super) async fn an_extension_ends_at_the_cap(test: TestLedger) {
    let event = test.event_on(crate::ledgers::HALL, |policy| {
        policy.hold_max = Span::from_ms(700_000);
    });
    let event = event.await;
    let hold = test.hold(&event, "ann", &["A-1"]).await.unwrap();
    let extend = || Command::Extend {
        on: on(&hold),
        ttl: None,
        ttl_max: TtlMax::HoldMax,
    };
    test.advance_ms(50_000);
    let longer = held(test.ask(extend()).await).unwrap();
    assert_eq!(longer.expires_at.ms(), START_MS + 650_000);
    test.advance_ms(500_000);
    let longest = held(test.ask(extend()).await).unwrap();
    assert_eq!(longest.expires_at, longest.max_expires_at);
    assert_eq!(longest.expires_at.ms(), START_MS + 700_000);
    let refused = test.ask(extend()).await.unwrap_err();
    assert_eq!(refused, Rejection::CapReached(longest.max_expires_at));
}

pub(super) async fn a_hold_is_over_at_its_very_millisecond(test: TestLedger) {
    let event = test.event().await;
    let early = test.hold(&event, "ann", &["A-1"]).await.unwrap();
    let late = test.hold(&event, "bob", &["A-2"]).await.unwrap();
    test.advance_ms(TTL_MS - 1);
    assert!(test.hold(&event, "eve", &["A-1"]).await.is_err());
    test.confirm(&early).await.unwrap();
    test.advance_ms(1);
    assert_eq!(
        test.confirm(&late).await.unwrap_err(),
        Rejection::HoldExpired
    );
    let extend = Command::Extend {
        on: on(&late),
        ttl: None,
        ttl_max: TtlMax::HoldMax,
    };
    assert_eq!(test.ask(extend).await.unwrap_err(), Rejection::HoldExpired);
    test.hold(&event, "eve", &["A-2"]).await.unwrap();
}

pub(super) async fn a_takeover_ends_the_whole_old_hold(test: TestLedger) {
    let event = test.event().await;
    let old = test
        .hold(&event, "ann", &["A-1", "A-2", "A-3"])
        .await
        .unwrap();
    test.advance_ms(TTL_MS);
    let new = test.hold(&event, "bob", &["A-2"]).await.unwrap();
    assert!(new.fence > old.fence);
    let stored = test.ledger.hold(old.id).await.unwrap().unwrap();
    assert_eq!(stored.state, HoldState::Expired);
    let released = test
        .ask(Command::Release { on: on(&old) })
        .await
        .unwrap_err();
    assert_eq!(
        released,
        Rejection::HoldExpired,
        "a late release frees no unit of another holder"
    );
    assert!(test.hold(&event, "eve", &["A-2"]).await.is_err());
    test.hold(&event, "eve", &["A-1", "A-3"]).await.unwrap();
}

/// Sweeps once; returns how many units became free.
async fn swept(test: &TestLedger, limit: usize) -> usize {
    match test.ask(Command::Sweep { limit }).await.unwrap() {
        Done::Fresh {
            answer: Answer::Swept(units),
            ..
        } => units,
        other => panic!("{other:?}"),
    }
}

pub(super) async fn the_sweeper_writes_down_what_the_clock_has_ended(test: TestLedger) {
    let event = test.event().await;
    let mut holds = Vec::new();
    for seat in ["A-1", "A-2", "A-3"] {
        holds.push(test.hold(&event, "ann", &[seat]).await.unwrap());
        test.advance_ms(10);
    }
    test.advance_ms(TTL_MS - 20);
    assert_eq!(swept(&test, 1).await, 1);
    assert_eq!(swept(&test, 5).await, 1);
    assert_eq!(swept(&test, 5).await, 0);
    for (hold, state) in
        holds
            .iter()
            .zip([HoldState::Expired, HoldState::Expired, HoldState::Active])
    {
        assert_eq!(
            test.ledger.hold(hold.id).await.unwrap().unwrap().state,
            state
        );
    }
}

pub(super) async fn a_release_frees_and_repeats(test: TestLedger) {
    let event = test.event().await;
    let hold = test.hold(&event, "ann", &["A-1", "A-2"]).await.unwrap();
    let foreign = OnHold {
        by: Authority::Caller(soldonce_core::CallerId::from_bits(1)),
        ..on(&hold)
    };
    let refused = test
        .ask(Command::Release { on: foreign })
        .await
        .unwrap_err();
    assert_eq!(refused, Rejection::HoldNotFound);
    let own = OnHold {
        by: Authority::Caller(caller()),
        ..on(&hold)
    };
    let first = held(test.ask(Command::Release { on: own }).await).unwrap();
    assert_eq!(first.state, HoldState::Released);
    let again = held(test.ask(Command::Release { on: own }).await).unwrap();
    assert_eq!(again, first);
    assert_eq!(
        test.confirm(&hold).await.unwrap_err(),
        Rejection::HoldReleased
    );
    let revoked = test.hold(&event, "bob", &["A-1"]).await.unwrap();
    let reason = Text::parse("broken seat").unwrap();
    let revoke = Command::Revoke {
        hold: revoked.id,
        reason: reason.clone(),
    };
    held(test.ask(revoke).await).unwrap();
    assert_eq!(
        test.confirm(&revoked).await.unwrap_err(),
        Rejection::HoldRevoked(reason)
    );
}

pub(super) async fn areas_count_their_places(test: TestLedger) {
    let event = test.event().await;
    let places = |quantity| Wish::Named(select(&event, &[], &[("floor", quantity)]));
    let three = held(test.ask(test.wish_command(&event, "ann", places(3))).await).unwrap();
    assert_eq!(three.units.len(), 3);
    let refused = test
        .ask(test.wish_command(&event, "bob", places(3)))
        .await
        .unwrap_err();
    let Rejection::UnitUnavailable(refused) = refused else {
        panic!("{refused:?}")
    };
    assert!(matches!(
        refused.conflicts[..],
        [Conflict::Area { free: 2, .. }]
    ));
    let two = held(test.ask(test.wish_command(&event, "bob", places(2))).await).unwrap();
    test.confirm(&two).await.unwrap();
    held(test.ask(Command::Release { on: on(&three) }).await).unwrap();
    let again = held(test.ask(test.wish_command(&event, "eve", places(3))).await).unwrap();
    assert!(again.fence > three.fence);
}

pub(super) async fn the_best_units_are_chosen_in_the_step_that_takes_them(test: TestLedger) {
    let event = test.event().await;
    let standard: Option<CategoryNo> = event.chart.category("Standard");
    let best = |quantity, together| Wish::Best {
        quantity,
        category: standard,
        together,
    };
    test.hold(&event, "bob", &["A-3"]).await.unwrap();
    let wish = best(3, Together::Required);
    let three = held(test.ask(test.wish_command(&event, "ann", wish)).await).unwrap();
    assert_eq!((three.units.len(), three.together), (3, Some(true)));
    let wish = best(5, Together::Required);
    let refused = test.ask(test.wish_command(&event, "eve", wish)).await;
    expect_taken(&refused);
    let wish = best(6, Together::Preferred);
    let rest = held(test.ask(test.wish_command(&event, "eve", wish)).await).unwrap();
    assert_eq!((rest.units.len(), rest.together), (6, Some(false)));
}

pub(super) async fn blocked_units_are_not_for_sale(test: TestLedger) {
    let event = test.event().await;
    let reason = || Text::parse("camera").unwrap();
    let selection = || select(&event, &["A-1", "A-2"], &[("floor", 2)]);
    let block = || Command::Block {
        event: event.no,
        selection: selection(),
        reason: reason(),
    };
    test.ask(block()).await.unwrap();
    assert!(
        test.ask(block()).await.is_err(),
        "what is blocked cannot be blocked"
    );
    let refused = test.hold(&event, "ann", &["A-1"]).await.unwrap_err();
    let Rejection::UnitUnavailable(refused) = refused else {
        panic!("{refused:?}")
    };
    assert!(matches!(
        refused.conflicts[..],
        [Conflict::Seat {
            state: ConflictState::Blocked,
            ..
        }]
    ));
    let unblock = Command::Unblock {
        event: event.no,
        selection: selection(),
        reason: reason(),
    };
    test.ask(unblock).await.unwrap();
    test.hold(&event, "ann", &["A-1"]).await.unwrap();
    let commits = test
        .ledger
        .unit_history(event.no, unit(&event, "A-1"), 9)
        .await
        .unwrap();
    assert_eq!(commits[0].reason, Some(reason()));
    assert_eq!(commits[0].transitions[0].to, UnitState::Blocked);
    assert_eq!(commits[0].origin.actor, Actor::Caller(caller()));
}

pub(super) async fn a_cancelled_event_sells_nothing(mut test: TestLedger) {
    let event = test.event().await;
    let hold = test.hold(&event, "ann", &["A-1"]).await.unwrap();
    let reason = Text::parse("rain").unwrap();
    let cancel = || Command::CancelEvent {
        event: event.no,
        reason: reason.clone(),
    };
    test.ask(cancel()).await.unwrap();
    test.restart().await;
    assert_eq!(
        test.confirm(&hold).await.unwrap_err(),
        Rejection::HoldRevoked(reason.clone())
    );
    let refused = test.hold(&event, "bob", &["A-2"]).await.unwrap_err();
    assert_eq!(refused, Rejection::NotOnSale { opens_at: None });
    let again = test.ask(cancel()).await.unwrap();
    let Done::Fresh {
        answer: Answer::Event(event),
        seq: None,
    } = again
    else {
        panic!("{again:?}")
    };
    assert_eq!(event.state, EventState::Cancelled(reason.clone()));
}

pub(super) async fn an_event_that_is_renamed_and_moved_stays_so(mut test: TestLedger) {
    let event = test.event().await;
    let update = |change: EventChange| Command::UpdateEvent {
        event: event.no,
        change: Box::new(change),
    };
    let (name, starts_at) = (Text::parse("Othello").unwrap(), test.ledger.now());
    let moved = EventChange {
        name: Some(name.clone()),
        starts_at: Some(starts_at),
        ..EventChange::default()
    };
    test.ask(update(moved)).await.unwrap();
    test.restart().await;
    let refused = test.hold(&event, "bob", &["A-2"]).await.unwrap_err();
    assert_eq!(refused, Rejection::NotOnSale { opens_at: None });
    let found = test.ask(update(EventChange::default())).await.unwrap();
    let Done::Fresh {
        answer: Answer::Event(found),
        ..
    } = found
    else {
        panic!("{found:?}")
    };
    assert_eq!((&found.name, found.starts_at), (&name, Some(starts_at)));
}

/// A floor for one hold more than one commit ends.
const FLOOR: &str = r#"{"format":"seats","seats":[],
    "areas":[{"area":"floor","capacity":4160,"category":"Standing"}]}"#;

pub(super) async fn a_large_event_is_called_off_in_parts(mut test: TestLedger) {
    let of_64 = |policy: &mut Policy| {
        policy.units_per_hold_max = 64;
        policy.units_per_holder_max = 64;
    };
    let event = test.event_on(FLOOR, of_64).await;
    let mut holds = Vec::new();
    for n in 0..=ENDED_UNITS_MAX / 64 {
        let wish = Wish::Named(select(&event, &[], &[("floor", 64)]));
        let command = test.wish_command(&event, &format!("buyer-{n}"), wish);
        holds.push(held(test.ask(command).await).unwrap());
    }
    let reason = Text::parse("rain").unwrap();
    let cancel = Command::CancelEvent {
        event: event.no,
        reason: reason.clone(),
    };
    test.ask(cancel).await.unwrap();
    // What is left is ended after any crash, and sold to no one until then.
    test.crash().await;
    for hold in &holds {
        let refused = test.confirm(hold).await.unwrap_err();
        assert_eq!(refused, Rejection::HoldRevoked(reason.clone()));
    }
    let mut parts = 0;
    while swept(&test, ENDED_UNITS_MAX).await > 0 {
        parts += 1;
    }
    assert_eq!(parts, 1);
    for hold in &holds {
        let found = test.ledger.hold(hold.id).await.unwrap().unwrap();
        assert_eq!(found.state, HoldState::Revoked(reason.clone()));
    }
}
