//! What endpoints ask for by their answers: to be left alone for a while, or for ever.

use soldonce_clock::{Clock, SystemClock};
use soldonce_core::{Span, Timestamp};
use soldonce_engine::webhook::{Delivery, DeliveryState, Endpoint, EndpointChange, Kinds};
use soldonce_testkit::PATIENCE;
use soldonce_testkit::webhooks::{Answer, Received, Receiver, is_by_one_of};

use super::rig::{ALL, Rig, every_ledger};
use crate::ledgers::TestLedger;

const WEEK_MS: u64 = 7 * 24 * 3_600_000;

fn later(status: u16, when: &str) -> Answer {
    Answer::Later(status, when.to_owned())
}

fn was_tried(log: &[Delivery]) -> bool {
    log.iter().all(|one| one.attempts > 0)
}

async fn known(rig: &Rig, endpoint: &Endpoint) -> Endpoint {
    let all = rig.engine.endpoints().await.unwrap();
    all.into_iter().find(|one| one.id == endpoint.id).unwrap()
}

/// When a request was signed, by the sender's clock, milliseconds.
fn signed_ms(request: &Received) -> i64 {
    request.timestamp.parse::<i64>().unwrap() * 1_000
}

/// Whether one of these tells of this.
fn tells(requests: &[Received], id: &str) -> bool {
    let mut requests = requests.iter();
    requests.any(|one| String::from_utf8_lossy(&one.body).contains(id))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_endpoint_that_is_busy_is_left_alone_as_long_as_it_says() {
    for test in every_ledger().await {
        let mut rig = Rig::on(test).await;
        let event = rig.test.event().await;
        let (endpoint, secret) = rig.endpoint().await;
        let other = Receiver::start().unwrap();
        let other_endpoint = rig.endpoint_at(&other.url(), Kinds::ALL).await;
        let (other_endpoint, _) = other_endpoint.unwrap();
        rig.receiver.answer_next([later(429, "300")]);
        let first = rig.test.hold(&event, "ann", &["A-1"]).await.unwrap();
        let first = rig.test.confirm(&first).await.unwrap();
        rig.run();
        let log = rig.until(&endpoint, 20, was_tried).await;
        let asked = log[0].tried_at.unwrap().plus(Span::from_ms(300_000));
        assert_eq!(known(&rig, &endpoint).await.quiet_until, Some(asked));
        assert_eq!(
            log[0].next_at,
            Some(asked),
            "the schedule alone would be sooner"
        );
        // It is asked for nothing else meanwhile; others are.
        let second = rig.test.hold(&event, "bob", &["A-2"]).await.unwrap();
        let second = rig.test.confirm(&second).await.unwrap();
        rig.until_over(&other_endpoint, 2).await;
        assert_eq!(rig.receiver.received().len(), 1);
        let all_over = |log: &[Delivery]| log.iter().all(|one| one.state != DeliveryState::Open);
        rig.until(&endpoint, 20_000, all_over).await;
        // Signatures tell whole seconds.
        let later = &rig.receiver.received()[1..];
        assert!(later.iter().all(|one| signed_ms(one) + 1_000 > asked.ms()));
        let told = [first, second].map(|one| (one.id.to_string(), "booking.confirmed"));
        rig.assert_heard(&[&secret], &told);
    }
}

/// The wall clock was two hours ahead and was set right: the ledger is ahead of it since.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_others_say_and_hear_of_time_is_the_wall_clocks() {
    for test in every_ledger().await {
        let mut rig = Rig::on(test).await;
        let event = rig.test.event().await;
        let (endpoint, secret) = rig.endpoint().await;
        let noon = rig.test.clock.wall_ms();
        rig.test.clock.step_wall(noon + 2 * 3_600_000);
        let held = rig.test.hold(&event, "ann", &["A-1"]).await.unwrap();
        rig.test.clock.step_wall(noon);
        let sold = rig.test.confirm(&held).await.unwrap();
        let date = jiff::Timestamp::from_millisecond(noon + 300_000).unwrap();
        let date = date.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
        rig.receiver.answer_next([later(503, &date)]);
        rig.run();
        let log = rig.until(&endpoint, 20, was_tried).await;
        let signed = signed_ms(&rig.receiver.received()[0]);
        let late = signed - noon;
        assert!((-1_000..60_000).contains(&late), "signed {late} ms late");
        let (tried, quiet) = (log[0].tried_at.unwrap(), known(&rig, &endpoint).await);
        let wait = quiet.quiet_until.unwrap().ms() - tried.ms();
        assert!((240_000..=300_000).contains(&wait), "{wait} ms");
        let told = [(sold.id.to_string(), "booking.confirmed")];
        let heard = rig.receiver.received();
        assert!(is_by_one_of(&[&secret], &heard[0]), "{told:?}");
    }
}

/// What is told with this status, and when it is tried again.
async fn next_after(answer: Answer) -> (Timestamp, Timestamp, Option<Timestamp>) {
    let mut rig = Rig::on(TestLedger::sqlite()).await;
    let event = rig.test.event().await;
    let (endpoint, _) = rig.endpoint().await;
    rig.receiver.answer_next([answer]);
    rig.sold(&event, "ann", "A-1").await;
    rig.run();
    let log = rig.until(&endpoint, 20, was_tried).await;
    let quiet = known(&rig, &endpoint).await.quiet_until;
    (log[0].tried_at.unwrap(), log[0].next_at.unwrap(), quiet)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wait_has_a_bound_and_only_those_count_who_are_busy() {
    for far in ["86400", "Thu, 31 Dec 2099 23:59:59 GMT"] {
        let (tried, next, quiet) = next_after(later(503, far)).await;
        assert_eq!(next, tried.plus(Span::from_ms(3_600_000)), "{far}");
        assert_eq!(quiet, Some(next));
    }
    for answer in [
        later(500, "300"),
        later(503, "soon"),
        later(503, "Sun, 06 Nov 1994 08:49:37 GMT"),
        Answer::Status(503),
    ] {
        let (tried, next, quiet) = next_after(answer.clone()).await;
        let pause = next.ms() - tried.ms();
        assert!((5_000..6_000).contains(&pause), "{answer:?}: {pause}");
        assert!(quiet.is_none_or(|until| until <= tried), "{answer:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_gone_is_disabled_and_loses_nothing_when_it_is_enabled() {
    for test in every_ledger().await {
        let mut rig = Rig::on(test).await;
        let event = rig.test.event().await;
        let (endpoint, secret) = rig.endpoint().await;
        rig.receiver.answer_next([Answer::Status(410)]);
        let hold = rig.test.hold(&event, "ann", &["A-1"]).await.unwrap();
        let first = rig.test.confirm(&hold).await.unwrap();
        rig.run();
        let log = rig.until(&endpoint, 20, was_tried).await;
        assert_eq!(
            (log[0].state, log[0].status),
            (DeliveryState::Open, Some(410))
        );
        assert_eq!(log[0].problem.as_deref(), Some("gone"));
        let disabled_at = known(&rig, &endpoint).await.disabled_at;
        assert_eq!(disabled_at, log[0].tried_at);
        // What is told meanwhile waits, through a restart of all.
        rig.kill().await;
        rig.test.restart().await;
        let mut rig = rig.again().await;
        rig.run();
        let hold = rig.test.hold(&event, "bob", &["A-2"]).await.unwrap();
        let second = rig.test.confirm(&hold).await.unwrap();
        let other_endpoint = rig.endpoint().await;
        rig.sold(&event, "eve", "A-3").await;
        rig.until_over(&other_endpoint.0, 1).await;
        rig.change(&other_endpoint.0, EndpointChange::Delete).await;
        assert_eq!(known(&rig, &endpoint).await.disabled_at, disabled_at);
        let asked = rig.receiver.received().len();
        let enabled = rig.change(&endpoint, EndpointChange::Enable).await;
        assert_eq!(enabled.unwrap().disabled_at, None);
        let log = rig.until_over(&endpoint, 3).await;
        assert!(log.iter().all(|one| one.attempts == 1), "{log:?}");
        assert_eq!(rig.receiver.received().len(), asked + 3);
        let mut heard = rig.receiver.taken();
        heard.retain(|one| is_by_one_of(&[&secret], one));
        assert_eq!(heard.len(), 3);
        for booking in [first, second] {
            assert!(tells(&heard, &booking.id.to_string()));
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_waits_for_a_disabled_endpoint_waits_a_week() {
    for test in every_ledger().await {
        let rig = Rig::on(test).await;
        let event = rig.test.event().await;
        let (endpoint, _) = rig.endpoint().await;
        let (other, _) = rig.endpoint().await;
        let disabled = rig.change(&endpoint, EndpointChange::Disable).await;
        let since = disabled.unwrap().disabled_at;
        assert!(since.is_some());
        rig.test.advance_ms(1_000);
        let again = rig.change(&endpoint, EndpointChange::Disable).await;
        assert_eq!(again.unwrap().disabled_at, since);
        rig.sold(&event, "ann", "A-1").await;
        let ledger = std::sync::Arc::clone(&rig.test.ledger);
        let forget = async |before: Timestamp| {
            let forgotten = ledger.webhooks().forget_deliveries(before, 9);
            forgotten.await.unwrap()
        };
        let told_at = rig.log(&endpoint).await[0].at;
        assert_eq!(forget(told_at).await, 0);
        rig.test.advance_ms(WEEK_MS);
        assert_eq!(forget(told_at.plus(Span::from_ms(1))).await, 1);
        assert_eq!(rig.log(&endpoint).await, []);
        assert_eq!(
            rig.log(&other).await.len(),
            1,
            "what is open elsewhere stays"
        );
    }
}

/// A clock that is ahead for a moment makes no wait a week long.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_waits_for_a_disabled_endpoint_outlives_a_clock_that_steps_ahead() {
    for test in every_ledger().await {
        let mut rig = Rig::on(test).await;
        let event = rig.test.event().await;
        let (endpoint, _) = rig.endpoint().await;
        let (other, _) = rig.endpoint().await;
        rig.change(&endpoint, EndpointChange::Disable).await;
        rig.sold(&event, "ann", "A-1").await;
        rig.run();
        rig.until_over(&other, 1).await;
        let ahead = i64::try_from(2 * WEEK_MS).unwrap();
        let clock = &rig.test.clock;
        clock.step_wall(clock.wall_ms() + ahead);
        // What deletes the log of an endpoint that is gone deletes all that is old.
        rig.change(&other, EndpointChange::Delete).await;
        let ledger = std::sync::Arc::clone(&rig.test.ledger);
        let strays = async || ledger.webhooks().deliveries(other.id, (None, ALL)).await;
        let end = SystemClock.boot().plus(PATIENCE);
        while !strays().await.unwrap().is_empty() {
            assert!(SystemClock.boot() < end, "the log of the other is kept");
            rig.test.advance_ms(200);
        }
        assert_eq!(rig.log(&endpoint).await.len(), 1, "it waits");
    }
}
