//! What every ledger promises of deliveries: kept over restarts and kills, worked on by one server at a
//! time, forgotten when they are old.

use soldonce_clock::{Clock, SystemClock};
use soldonce_core::{Booking, CallerId, Event, Rejection, Span, Timestamp};
use soldonce_engine::ledger::{AddOutcome, Ledger, NewEndpoint, RequestKey};
use soldonce_engine::limits::WEBHOOK_ENDPOINTS_MAX;
use soldonce_engine::webhook::{
    Attempt, DeliveryState, DueDelivery, Endpoint, EndpointChange, EndpointId, Kinds, Then,
};
use soldonce_testkit::PATIENCE;
use tokio::task::JoinSet;

use super::rig::{ALL, Rig, every_ledger};
use crate::ledgers::{TestLedger, cancel};

const KEEP: Span = Span::from_ms(60_000);

pub(super) fn endpoint(n: u8) -> Endpoint {
    Endpoint {
        id: EndpointId::from_bytes([n; 16]),
        url: format!("https://{n}.example.org/").into(),
        kinds: Kinds::ALL,
        rotation: 0,
        rotated_at: None,
        created_at: Timestamp::from_ms(7),
        disabled_at: None,
        quiet_until: None,
    }
}

async fn take(test: &TestLedger) -> Vec<DueDelivery> {
    let webhooks = test.ledger.webhooks();
    webhooks.take_deliveries(KEEP, ALL).await.unwrap()
}

fn tried(number: i64, at: Timestamp, then: Then) -> Attempt {
    Attempt {
        number,
        endpoint: endpoint(1).id,
        before: 0,
        at,
        status: Some(500),
        problem: Some("refused"),
        quiet_until: None,
        then,
    }
}

async fn note(test: &TestLedger, number: i64, then: Then) {
    let attempt = tried(number, test.ledger.now(), then);
    let noted = test.ledger.webhooks().note_attempts(vec![attempt]);
    noted.await.unwrap();
}

/// A request for an endpoint, with this key and body.
fn keyed(n: u8, key: &str, body: &str) -> NewEndpoint {
    let caller = CallerId::from_bits(1);
    let key = RequestKey::new(caller, "POST", key, &[], body.as_bytes());
    NewEndpoint::new(endpoint(n), Some(key))
}

async fn sold_and_cancelled(test: &TestLedger, event: &Event, seat: &str) -> Booking {
    let hold = test.hold(event, "ann", &[seat]).await.unwrap();
    let booking = test.confirm(&hold).await.unwrap();
    test.ask(cancel(booking.id)).await.unwrap();
    booking
}

async fn sell(test: &TestLedger, event: &Event, seats: &[&str]) {
    for seat in seats {
        let hold = test.hold(event, "ann", &[seat]).await.unwrap();
        test.confirm(&hold).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn endpoints_and_deliveries_outlive_restarts_and_kills() {
    for mut test in every_ledger().await {
        let webhooks = |test: &TestLedger| std::sync::Arc::clone(&test.ledger);
        let (one, two) = (endpoint(1), endpoint(2));
        for endpoint in [&one, &two] {
            let ledger = webhooks(&test);
            let added = ledger
                .webhooks()
                .add_endpoint(NewEndpoint::new(endpoint.clone(), None));
            added.await.unwrap();
        }
        let at = test.ledger.now();
        let rotate = webhooks(&test);
        let rotated = rotate
            .webhooks()
            .change_endpoint(two.id, EndpointChange::Rotate);
        let rotated = rotated.await.unwrap().unwrap();
        assert_eq!(rotated.rotation, 1);
        let span = Some(at)..=Some(test.ledger.now());
        assert!(span.contains(&rotated.rotated_at), "{rotated:?}");
        let foreign = EndpointId::from_bytes([9; 16]);
        let missing = rotate
            .webhooks()
            .change_endpoint(foreign, EndpointChange::Delete);
        assert_eq!(missing.await.unwrap(), None);
        drop(rotate);
        let event = test.event().await;
        sell(&test, &event, &["A-1"]).await;
        let before = take(&test).await;
        assert_eq!(before.len(), 2);
        let next = Then::Again(test.ledger.now().plus(Span::from_ms(5_000)));
        note(&test, before[0].number, next).await;
        test.restart().await;
        test.crash().await;
        let known = webhooks(&test);
        assert_eq!(known.webhooks().endpoints().await.unwrap(), [one, rotated]);
        drop(known);
        // What the dead had taken is free when its time is over; what is to wait waits.
        test.advance_ms(60_000);
        let after = take(&test).await;
        let numbers = |due: &[DueDelivery]| due.iter().map(|one| one.number).collect::<Vec<_>>();
        assert_eq!(numbers(&after), numbers(&before));
        assert_eq!((after[0].attempts, after[1].attempts), (1, 0));
        assert_eq!(after[0].body, before[0].body);
        sell(&test, &event, &["A-2"]).await;
        let fresh = take(&test).await;
        assert_eq!(fresh.len(), 4, "numbers go on: {:?}", numbers(&fresh));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_request_makes_one_endpoint_and_has_one_answer() {
    for mut test in every_ledger().await {
        let add = async |test: &TestLedger, new: NewEndpoint| {
            let ledger = std::sync::Arc::clone(&test.ledger);
            ledger.webhooks().add_endpoint(new).await
        };
        let first = keyed(1, "k", "{}");
        let replayed = AddOutcome::Replayed(first.reply.clone());
        assert_eq!(add(&test, first).await, Ok(AddOutcome::Stored));
        for round in 0..3 {
            assert_eq!(
                add(&test, keyed(2, "k", " {} ")).await,
                Ok(replayed.clone())
            );
            let other = add(&test, keyed(2, "k", "[]")).await;
            assert_eq!(other, Err(Rejection::IdempotencyKeyReused));
            match round {
                0 => test.restart().await,
                _ => test.crash().await,
            }
        }
        for n in 2..=16 {
            let added = add(&test, keyed(n, &n.to_string(), "{}")).await;
            assert_eq!(added, Ok(AddOutcome::Stored));
        }
        let full = add(&test, keyed(17, "17", "{}")).await;
        assert!(matches!(full, Err(Rejection::Invalid(_))), "{full:?}");
        assert_eq!(add(&test, keyed(17, "k", "{}")).await, Ok(replayed));
        let ledger = std::sync::Arc::clone(&test.ledger);
        assert_eq!(ledger.webhooks().endpoints().await.unwrap().len(), 16);
    }
}

/// Asks until the table is not locked by others for longer than a request waits.
async fn patiently(ledger: &dyn Ledger, new: NewEndpoint) -> Result<AddOutcome, Rejection> {
    let end = SystemClock.boot().plus(PATIENCE);
    loop {
        match ledger.webhooks().add_endpoint(new.clone()).await {
            Err(Rejection::Overloaded) if SystemClock.boot() < end => {}
            answered => return answered,
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_servers_that_are_asked_the_same_at_once_make_one_endpoint() {
    let test = TestLedger::postgres().await;
    let other = test.second_server().await;
    for round in 0..8_u8 {
        let key = round.to_string();
        let [first, second] = [1, 2].map(|n| keyed(2 * round + n, &key, "{}"));
        let both = tokio::join!(
            patiently(&*test.ledger, first),
            patiently(&*other.ledger, second)
        );
        let both = [both.0.unwrap(), both.1.unwrap()];
        let stored = both.iter().filter(|added| **added == AddOutcome::Stored);
        assert_eq!(stored.count(), 1, "{both:?}");
    }
    assert_eq!(test.ledger.webhooks().endpoints().await.unwrap().len(), 8);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_servers_at_once_make_no_more_endpoints_than_there_may_be() {
    let test = TestLedger::postgres().await;
    let other = test.second_server().await;
    let of = |test: &TestLedger| std::sync::Arc::clone(&test.ledger);
    for n in 1..WEBHOOK_ENDPOINTS_MAX {
        let new = NewEndpoint::new(endpoint(u8::try_from(n).unwrap()), None);
        of(&test).webhooks().add_endpoint(new).await.unwrap();
    }
    let mut asked = JoinSet::new();
    for n in 100..108 {
        let ledger = of(if n % 2 == 0 { &test } else { &other });
        let new = NewEndpoint::new(endpoint(n), None);
        asked.spawn(async move { patiently(&*ledger, new).await });
    }
    let answers = asked.join_all().await;
    let stored = answers.iter().filter(|answer| answer.is_ok());
    assert_eq!(stored.count(), 1, "{answers:?}");
    let is_full =
        |answer: &&Result<AddOutcome, Rejection>| matches!(answer, Err(Rejection::Invalid(_)));
    assert_eq!(answers.iter().filter(is_full).count(), 7, "{answers:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_server_at_a_time_works_on_a_delivery() {
    let test = TestLedger::postgres().await;
    let added = test
        .ledger
        .webhooks()
        .add_endpoint(NewEndpoint::new(endpoint(1), None));
    added.await.unwrap();
    let other = test.second_server().await;
    sell(&test, &*test.event().await, &["A-1", "A-2"]).await;
    let own = take(&test).await;
    assert_eq!(own.len(), 2);
    assert_eq!(take(&other).await, []);
    assert_eq!(
        take(&test).await,
        own,
        "a server that asks again keeps what it has"
    );
    // Its time is over: the other one has them, and what the first one says late counts for nothing.
    test.advance_ms(60_001);
    assert_eq!(take(&other).await, own);
    assert_eq!(take(&test).await, []);
    note(&test, own[0].number, Then::Delivered).await;
    let log = |test: &TestLedger| {
        let ledger = std::sync::Arc::clone(&test.ledger);
        async move {
            let log = ledger.webhooks().deliveries(endpoint(1).id, (None, ALL));
            log.await
                .unwrap()
                .iter()
                .map(|one| one.state)
                .collect::<Vec<_>>()
        }
    };
    assert_eq!(log(&test).await, [DeliveryState::Open; 2]);
    note(&other, own[0].number, Then::Delivered).await;
    assert_eq!(
        log(&test).await,
        [DeliveryState::Open, DeliveryState::Delivered]
    );
    // What failed falls to any server.
    note(&other, own[1].number, Then::Again(other.ledger.now())).await;
    assert_eq!(take(&test).await.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failure_of_before_undoes_no_resend() {
    for test in every_ledger().await {
        let ledger = std::sync::Arc::clone(&test.ledger);
        let webhooks = ledger.webhooks();
        let new = NewEndpoint::new(endpoint(1), None);
        webhooks.add_endpoint(new).await.unwrap();
        sell(&test, &*test.event().await, &["A-1"]).await;
        let now = test.ledger.now();
        let due = take(&test).await;
        note(&test, due[0].number, Then::Again(now)).await;
        let due = take(&test).await;
        assert_eq!(due[0].attempts, 1);
        let resent = webhooks.resend(endpoint(1).id, due[0].message);
        assert!(resent.await.unwrap().is_some());
        // As each look of the server that still waits for the answer does.
        take(&test).await;
        let late = Attempt {
            before: 1,
            ..tried(due[0].number, now, Then::GiveUp)
        };
        webhooks.note_attempts(vec![late]).await.unwrap();
        let due = take(&test).await;
        assert_eq!((due.len(), due[0].attempts), (1, 0));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_log_is_read_in_pages_and_forgets() {
    for test in every_ledger().await {
        let ledger = std::sync::Arc::clone(&test.ledger);
        let webhooks = ledger.webhooks();
        for n in [1, 2] {
            let new = NewEndpoint::new(endpoint(n), None);
            webhooks.add_endpoint(new).await.unwrap();
        }
        sell(&test, &*test.event().await, &["A-1", "A-2", "A-3"]).await;
        let page = |before, limit| webhooks.deliveries(endpoint(1).id, (before, limit));
        let newest = page(None, 2).await.unwrap();
        let oldest = page(Some(newest[1].number), 2).await.unwrap();
        assert_eq!((newest.len(), oldest.len()), (2, 1));
        assert!(newest[0].number > newest[1].number && newest[1].number > oldest[0].number);
        take(&test).await;
        note(&test, oldest[0].number, Then::GiveUp).await;
        let forget = |before: Timestamp, limit| webhooks.forget_deliveries(before, limit);
        assert_eq!(forget(oldest[0].at, 9).await.unwrap(), 0, "it is not older");
        let later = oldest[0].at.plus(Span::from_ms(60_000));
        assert_eq!(forget(later, 9).await.unwrap(), 1, "what is open stays");
        let gone = webhooks.resend(endpoint(1).id, oldest[0].message);
        assert_eq!(gone.await.unwrap(), None);
        let deleted = webhooks.change_endpoint(endpoint(2).id, EndpointChange::Delete);
        deleted.await.unwrap();
        assert_eq!(forget(oldest[0].at, 2).await.unwrap(), 2);
        assert_eq!(forget(oldest[0].at, 2).await.unwrap(), 1);
        assert_eq!(forget(oldest[0].at, 2).await.unwrap(), 0);
        assert_eq!(page(None, 9).await.unwrap().len(), 2);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_servers_and_a_kill_lose_nothing_and_turn_nothing_round() {
    let test = TestLedger::postgres().await;
    let event = test.event().await;
    let other = test.second_server().await;
    let mut rig = Rig::on(test).await;
    let second = super::rig::engine(&other, rig.engine.sender().unwrap().clone()).await;
    let (endpoint, secret) = rig.endpoint().await;
    let mut told = Vec::new();
    for round in 0..3_u8 {
        // Both servers sell while both deliver, and then all of them are killed in the middle.
        rig.run();
        rig.run_of(second.clone());
        for (at, seat) in ["A-1", "A-2", "A-3"].into_iter().enumerate() {
            let by = [&rig.test, &other][at % 2];
            let booking = sold_and_cancelled(by, &event, seat).await;
            let id = booking.id.to_string();
            told.push((id.clone(), "booking.confirmed"));
            told.push((id, "booking.cancelled"));
        }
        if round < 2 {
            rig.test.advance_ms(200);
            rig.kill().await;
            rig.test.advance_ms(60_001);
        }
    }
    rig.until_over(&endpoint, told.len()).await;
    rig.assert_heard(&[&secret], &told);
}
