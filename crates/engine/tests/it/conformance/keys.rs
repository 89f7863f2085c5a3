//! Idempotency keys (model.md 8).

use std::sync::Arc;

use soldonce_clock::Clock;
use soldonce_core::{
    Amount, Authority, Booking, Command, Event, HoldId, LineChoice, PaymentState, Rejection, Wish,
};
use soldonce_engine::ledger::Done;
use soldonce_engine::limits::IDEMPOTENCY_MS;
use soldonce_engine::reply::StoredReply;
use soldonce_testkit::postgres::query;
use soldonce_testkit::{PATIENCE, until};

use crate::ledgers::{TestLedger, booked, caller, held, key, select};

fn replayed(done: Result<Done, Rejection>) -> StoredReply {
    match done {
        Ok(Done::Replayed(reply)) => reply,
        other => panic!("not replayed: {other:?}"),
    }
}

pub(super) async fn the_same_request_gets_the_same_bytes(test: TestLedger) {
    let event = test.event().await;
    let ask = || test.ask_as(test.hold_command(&event, "ann", &["A-1"]), key(1, 1));
    let hold = held(ask().await).unwrap();
    let first = replayed(ask().await);
    assert_eq!(HoldId::from_bytes(first.subject), hold.id);
    // The hold is confirmed and more time passes: the answer stays what it was.
    test.confirm(&hold).await.unwrap();
    test.advance_ms(700_000);
    assert_eq!(replayed(ask().await), first);
}

pub(super) async fn another_body_is_refused_and_another_key_is_unrelated(test: TestLedger) {
    let event = test.event().await;
    let first = test.hold_command(&event, "ann", &["A-1"]);
    held(test.ask_as(first, key(1, 1)).await).unwrap();
    let other = test.hold_command(&event, "ann", &["A-2"]);
    let refused = test.ask_as(other.clone(), key(1, 2)).await.unwrap_err();
    assert_eq!(refused, Rejection::IdempotencyKeyReused);
    held(test.ask_as(other, key(2, 2)).await).unwrap();
}

pub(super) async fn refusals_are_not_pinned(test: TestLedger) {
    let event = test.event().await;
    test.hold(&event, "bob", &["A-1"]).await.unwrap();
    let ask = || test.ask_as(test.hold_command(&event, "ann", &["A-1"]), key(1, 1));
    assert!(ask().await.is_err());
    test.advance_ms(600_000);
    held(ask().await).unwrap();
    replayed(ask().await);
}

pub(super) async fn twins_at_once_have_one_effect(test: TestLedger) {
    let event = test.event().await;
    let asks = (0..20).map(|_| {
        let command = test.hold_command(&event, "ann", &["A-1", "A-2"]);
        test.ask_as(command, key(1, 1))
    });
    let asks: Vec<_> = asks.collect();
    let mut fresh = Vec::new();
    let mut replays = Vec::new();
    for ask in asks {
        match ask.await.unwrap() {
            Done::Fresh { answer, .. } => fresh.push(answer),
            Done::Replayed(reply) => replays.push(reply),
        }
    }
    assert_eq!((fresh.len(), replays.len()), (1, 19));
    assert!(replays.iter().all(|reply| *reply == replays[0]));
}

pub(super) async fn records_outlive_a_restart(mut test: TestLedger) {
    let event = test.event().await;
    let mut replies = Vec::new();
    for (name, seat) in [(1, "A-1"), (2, "A-2"), (3, "A-3")] {
        let command = test.hold_command(&event, "ann", &[seat]);
        held(test.ask_as(command.clone(), key(name, 1)).await).unwrap();
        replies.push(replayed(test.ask_as(command, key(name, 1)).await));
    }
    test.restart().await;
    for (name, reply) in (1..).zip(&replies) {
        let command = test.hold_command(&event, "ann", &["B-1"]);
        assert_eq!(
            replayed(test.ask_as(command.clone(), key(name, 1)).await),
            *reply
        );
        let other = test.ask_as(command, key(name, 9)).await.unwrap_err();
        assert_eq!(other, Rejection::IdempotencyKeyReused);
    }
    let command = test.hold_command(&event, "ann", &["B-2"]);
    held(test.ask_as(command.clone(), key(4, 1)).await).unwrap();
    test.crash().await;
    replayed(test.ask_as(command, key(4, 1)).await);
}

pub(super) async fn records_are_forgotten_after_a_day(mut test: TestLedger) {
    if test.folder.is_none() {
        return; // PostgreSQL forgets by and by.
    }
    let kept_ms = u64::try_from(IDEMPOTENCY_MS).unwrap();
    let event = test.event().await;
    let ask = async |test: &TestLedger, seat: &str, name| {
        let command = test.hold_command(&event, "ann", &[seat]);
        test.ask_as(command, key(name, 1)).await
    };
    held(ask(&test, "A-1", 1).await).unwrap();
    test.advance_ms(kept_ms);
    held(ask(&test, "A-2", 2).await).unwrap();
    replayed(ask(&test, "A-3", 1).await);
    test.advance_ms(1);
    held(ask(&test, "A-4", 3).await).unwrap();
    held(ask(&test, "A-5", 1).await).unwrap();
    test.restart().await;
    replayed(ask(&test, "B-1", 1).await);
    replayed(ask(&test, "B-1", 2).await);
    replayed(ask(&test, "B-1", 3).await);
}

/// Until old records are deleted by what looked for them after this call.
fn old_ones_are_forgotten(test: &TestLedger) {
    let Some((_, options)) = &test.postgres else {
        return; // A folder forgets with each commit.
    };
    let old = "INSERT INTO idempotency VALUES ('\\x01', '\\x01', 0, 0, '\\x01', '\\x01')";
    let count = "SELECT count(*) FROM idempotency WHERE at = 0";
    let is_gone = || {
        test.advance_ms(200);
        query(&options.url, count).unwrap() == "0"
    };
    // What deletes the first one may have read the clock before.
    for _ in 0..2 {
        query(&options.url, old).unwrap();
        until("an old record is deleted", PATIENCE, is_gone).unwrap();
    }
}

pub(super) async fn a_clock_that_steps_ahead_forgets_no_record(mut test: TestLedger) {
    let event = test.event().await;
    let ask = async |test: &TestLedger, seat: &str, name| {
        let command = test.hold_command(&event, "ann", &[seat]);
        test.ask_as(command, key(name, 1)).await
    };
    held(ask(&test, "A-1", 1).await).unwrap();
    let right = test.clock.wall_ms();
    test.clock.step_wall(right + 2 * IDEMPOTENCY_MS);
    held(ask(&test, "A-2", 2).await).unwrap();
    old_ones_are_forgotten(&test);
    replayed(ask(&test, "A-3", 1).await);
    // Put right, and the ledger is ahead from its start on.
    test.clock.step_wall(right);
    test.restart().await;
    held(ask(&test, "A-4", 3).await).unwrap();
    old_ones_are_forgotten(&test);
    for name in [1, 2, 3] {
        replayed(ask(&test, "A-5", name).await);
    }
}

/// Places of an area that were paid, two of them.
async fn paid_places(test: &TestLedger) -> (Arc<Event>, Booking) {
    let event = test.event().await;
    let wish = Wish::Named(select(&event, &[], &[("floor", 2)]));
    let hold = held(test.ask(test.wish_command(&event, "ann", wish)).await).unwrap();
    let begun = booked(test.ask(test.checkout_command(&hold)).await).unwrap();
    let paid = test.report(begun.id, PaymentState::Captured, None).await;
    (event, booked(test.ask(paid).await).unwrap())
}

/// A day and more later, when the key of a hold is forgotten.
async fn keys_are_forgotten(test: &TestLedger) {
    test.advance_ms(u64::try_from(IDEMPOTENCY_MS).unwrap() + 1);
    let event = test.other_event().await;
    let ask = || test.ask_as(test.hold_command(&event, "eve", &["A-1"]), key(9, 9));
    held(ask().await).unwrap();
    test.advance_ms(u64::try_from(IDEMPOTENCY_MS).unwrap() + 1);
    // One ledger forgets when it commits, another by and by.
    while let Ok(Done::Replayed(_)) = ask().await {
        test.hold(&event, "joe", &["B-1"]).await.ok();
        test.advance_ms(1_000);
    }
}

pub(super) async fn what_gives_back_has_its_key_for_good(mut test: TestLedger) {
    let (event, booking) = paid_places(&test).await;
    let refund = Command::Refund {
        booking: booking.id,
        amount: Amount::from_minor(300),
    };
    let cancel = Command::Cancel {
        booking: booking.id,
        by: Authority::Caller(caller()),
        lines: LineChoice::Some {
            units: Vec::new(),
            places: select(&event, &[], &[("floor", 1)]),
        },
    };
    let asked = [(refund, key(1, 1)), (cancel, key(2, 2))];
    for (command, key) in &asked {
        booked(test.ask_as(command.clone(), *key).await).unwrap();
    }
    let left = test.ledger.booking(booking.id).await.unwrap().unwrap();
    let mut replies = Vec::new();
    for (command, key) in &asked {
        replies.push(replayed(test.ask_as(command.clone(), *key).await));
    }
    keys_are_forgotten(&test).await;
    for _ in 0..2 {
        for ((command, key), reply) in asked.iter().zip(&replies) {
            let again = test.ask_as(command.clone(), *key).await;
            assert_eq!(replayed(again), *reply);
        }
        test.restart().await;
    }
    let (command, _) = &asked[0];
    let other = test.ask_as(command.clone(), key(1, 9)).await;
    assert_eq!(other.unwrap_err(), Rejection::IdempotencyKeyReused);
    let found = test.ledger.booking(booking.id).await.unwrap().unwrap();
    assert_eq!(found, left);
}
