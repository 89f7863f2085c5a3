//! Idempotency keys (model.md 8).

use soldonce_core::{HoldId, Rejection};
use soldonce_engine::ledger::Done;
use soldonce_engine::limits::IDEMPOTENCY_MS;
use soldonce_engine::reply::StoredReply;

use crate::ledgers::{TestLedger, held, key};

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
    // Whatever becomes of the hold, the answer stays what it was.
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
        return; // The memory ledger keeps everything.
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
