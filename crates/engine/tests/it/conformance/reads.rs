//! What can be looked up, and the ledger's own life.

use soldonce_core::{Cause, Command, EventId, Rejection, Text, Timestamp, UnitNo};
use soldonce_engine::keys::{ApiKey, KeyId, Scope, hash_key};

use crate::ledgers::{START_MS, TestLedger, booked, held, holder, on};

pub(super) async fn lists_show_the_newest_first(mut test: TestLedger) {
    let event = test.event().await;
    let mut holds = Vec::new();
    for seat in ["A-1", "A-2", "A-3", "A-4"] {
        holds.push(test.hold(&event, "ann", &[seat]).await.unwrap());
    }
    let first = test.confirm(&holds[0]).await.unwrap();
    let second = test.confirm(&holds[1]).await.unwrap();
    test.hold(&event, "bob", &["B-1"]).await.unwrap();
    for _ in 0..2 {
        let live = test.ledger.holds_of(holder("ann"), (None, 10));
        assert_eq!(live.await.unwrap(), [holds[3].clone(), holds[2].clone()]);
        let newest = test.ledger.holds_of(holder("ann"), (None, 1));
        assert_eq!(newest.await.unwrap(), [holds[3].clone()]);
        let before = Some(holds[3].id);
        let older = test.ledger.holds_of(holder("ann"), (before, 1));
        assert_eq!(older.await.unwrap(), [holds[2].clone()]);
        let bookings = test.ledger.bookings_of(holder("ann"), (None, 10));
        assert_eq!(bookings.await.unwrap(), [second.clone(), first.clone()]);
        let newest = test.ledger.bookings_of(holder("ann"), (None, 1));
        assert_eq!(newest.await.unwrap(), std::slice::from_ref(&second));
        let before = Some(second.id);
        let older = test.ledger.bookings_of(holder("ann"), (before, 10));
        assert_eq!(older.await.unwrap(), std::slice::from_ref(&first));
        let none = test.ledger.holds_of(holder("eve"), (None, 10));
        assert_eq!(none.await.unwrap(), []);
        test.restart().await;
    }
    assert_eq!(test.ledger.hold(test.hold_id()).await.unwrap(), None);
    assert_eq!(test.ledger.booking(test.booking_id()).await.unwrap(), None);
}

pub(super) async fn a_unit_knows_its_history(mut test: TestLedger) {
    let event = test.event().await;
    let hold = test.hold(&event, "ann", &["A-1", "A-2"]).await.unwrap();
    held(test.ask(Command::Release { on: on(&hold) }).await).unwrap();
    let hold = test.hold(&event, "bob", &["A-2"]).await.unwrap();
    test.confirm(&hold).await.unwrap();
    test.restart().await;
    let causes = |commits: &[soldonce_core::Commit]| -> Vec<Cause> {
        commits
            .iter()
            .map(|commit| commit.transitions[0].cause)
            .collect()
    };
    let commits = test
        .ledger
        .unit_history(event.no, UnitNo(1), 10)
        .await
        .unwrap();
    assert_eq!(
        causes(&commits),
        [Cause::Held, Cause::Released, Cause::Held, Cause::Confirmed]
    );
    let commits = test
        .ledger
        .unit_history(event.no, UnitNo(1), 2)
        .await
        .unwrap();
    assert_eq!(causes(&commits), [Cause::Held, Cause::Confirmed]);
    let history = test.ledger.history(event.id.clone()).await.unwrap();
    assert_eq!(
        (history.units, history.holds.len(), history.commits.len()),
        (15, 2, 4)
    );
    let unknown = EventId::parse("nothing").unwrap();
    assert!(test.ledger.history(unknown).await.is_err());
}

pub(super) async fn commits_get_the_numbers_they_were_shown_with(mut test: TestLedger) {
    let event = test.event().await;
    for seat in ["A-1", "A-2", "A-3"] {
        test.hold(&event, "ann", &[seat, "B-1"])
            .await
            .unwrap_or_else(|_| panic!("{seat}"));
        let live = test.ledger.holds_of(holder("ann"), (None, 1));
        let live = live.await.unwrap();
        held(test.ask(Command::Release { on: on(&live[0]) }).await).unwrap();
    }
    let all = test.ledger.history(event.id.clone()).await.unwrap().commits;
    assert_eq!(all.len(), 6);
    test.restart().await;
    test.numbered();
    let stored = test.ledger.history(event.id.clone()).await.unwrap().commits;
    assert_eq!(stored, all);
}

pub(super) async fn api_keys_are_kept_and_revoked(mut test: TestLedger) {
    let key = |n: u128, scopes: &[Scope]| ApiKey {
        id: KeyId::from_bits(n),
        name: Text::parse("box office").unwrap(),
        scopes: scopes.to_vec(),
        hash: hash_key(&format!("sk_{n}")),
        created_at: test.ledger.now(),
        revoked_at: None,
    };
    let (one, two) = (key(1, &[Scope::Admin]), key(2, &[Scope::Sell, Scope::Read]));
    let three = key(3, &[Scope::Read, Scope::Admin]);
    test.ledger.add_key(one.clone()).await.unwrap();
    test.ledger.add_key(two.clone()).await.unwrap();
    let at = Timestamp::from_ms(START_MS + 5);
    let last = test.ledger.revoke_key(one.id, at).await;
    assert_eq!(last, Ok(false), "without it no key would be admin");
    test.ledger.add_key(three.clone()).await.unwrap();
    assert_eq!(test.ledger.revoke_key(one.id, at).await, Ok(true));
    assert_eq!(
        test.ledger.revoke_key(one.id, at).await,
        Ok(false),
        "it was revoked before"
    );
    assert_eq!(
        test.ledger.revoke_key(three.id, at).await,
        Ok(false),
        "now this is the last one"
    );
    assert_eq!(
        test.ledger.revoke_key(KeyId::from_bits(4), at).await,
        Ok(false)
    );
    let secret = test.ledger.master_keys();
    test.restart().await;
    let kept = test.ledger.keys().await.unwrap();
    assert_eq!(
        kept,
        [
            ApiKey {
                revoked_at: Some(at),
                ..one
            },
            two,
            three
        ]
    );
    let same = test.ledger.master_keys();
    let bytes = |keys: &[soldonce_engine::ledger::MasterKey]| -> Vec<[u8; 32]> {
        use secrecy::ExposeSecret;
        keys.iter().map(|key| *key.secret.expose_secret()).collect()
    };
    assert_eq!(bytes(&same), bytes(&secret));
    assert_eq!(same.len(), 1);
}

pub(super) async fn ledger_time_never_goes_back(mut test: TestLedger) {
    let event = test.event().await;
    let hold = test.hold(&event, "ann", &["A-1"]).await.unwrap();
    test.advance_ms(600_000);
    let taken = test.hold(&event, "bob", &["A-1"]).await.unwrap();
    let late = test.ledger.now();
    test.clock.step_wall(START_MS);
    assert_eq!(test.ledger.now(), late);
    assert_eq!(
        test.confirm(&hold).await.unwrap_err(),
        Rejection::HoldExpired
    );
    test.restart().await;
    assert_eq!(test.ledger.now(), late, "a restart forgets no time");
    assert_eq!(
        test.confirm(&hold).await.unwrap_err(),
        Rejection::HoldExpired
    );
    let other = test.hold(&event, "eve", &["A-2"]).await.unwrap();
    assert_eq!(other.created_at, late);
    test.confirm(&taken).await.unwrap();
}

pub(super) async fn a_closed_ledger_takes_nothing(test: TestLedger) {
    let event = test.event().await;
    let hold = test.hold(&event, "ann", &["A-1"]).await.unwrap();
    assert!(test.ledger.is_writable());
    test.ledger.close().await;
    assert!(!test.ledger.is_writable());
    let refused = test.confirm(&hold).await.unwrap_err();
    assert_eq!(refused, Rejection::ShuttingDown);
    test.ledger.close().await;
    assert!(test.recorder.failures.lock().unwrap().is_empty());
    assert_eq!(test.ledger.hold(hold.id).await.unwrap(), Some(hold));
}

pub(super) async fn unsettled_bookings_are_read_in_parts(test: TestLedger) {
    let event = test.event().await;
    let mut made = Vec::new();
    // Two of them in the same millisecond.
    for (who, seat, later) in [("ann", "A-1", 0), ("bob", "A-2", 0), ("eve", "A-3", 5)] {
        test.advance_ms(later);
        let hold = test.hold(&event, who, &[seat]).await.unwrap();
        let checkout = test.checkout_command(&hold);
        made.push(booked(test.ask(checkout).await).unwrap());
    }
    test.advance_ms(1);
    let (mut found, mut after) = (Vec::new(), None);
    while let Some(next) = {
        let part = test.ledger.unsettled(test.ledger.now(), (after, 1));
        part.await.unwrap().pop()
    } {
        after = Some((next.created_at, next.id));
        found.push(next);
    }
    assert_eq!(found, made);
}
