//! Events that are over go: refused while anything of them is open, then gone for every route.

use std::time::Duration;

use axum::http::StatusCode;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use soldonce_clock::Clock;
use soldonce_core::limits::DROP_AFTER_MS_MIN;
use soldonce_core::{EventId, Span};
use soldonce_engine::run_dropper;
use soldonce_testkit::{PATIENCE, log, until};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::harness::{TestApp, hall};

const HALL: &str = "/v1/events/hall";

async fn call_off(app: &TestApp) {
    let asked = app.post("/v1/events/hall/cancel").json(&json!({}));
    asked.by(&app.admin).send().await.expect(StatusCode::OK);
}

async fn listed(app: &TestApp) -> Vec<String> {
    let list = app.get("/v1/events").by(&app.admin).send().await.json();
    let events = list["events"].as_array().unwrap().iter();
    let id = |event: &Value| event["id"].as_str().unwrap().to_owned();
    events.map(id).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_that_is_over_is_gone_for_every_route() {
    let app = TestApp::open().await.with_hall(1).await;
    let held = app.held("ann", &["A-1"]).await;
    let booking = app.booked(&held).await;
    let drop_it = async || app.delete(HALL).by(&app.admin).send().await;
    let never = drop_it().await.refused(409, "event_not_over");
    assert_eq!(never.get("droppable_at"), None, "it has no end");
    call_off(&app).await;
    let early = drop_it().await.refused(409, "event_not_over");
    assert_eq!(early["droppable_at"], "2026-12-09T12:00:00.000Z");
    assert_eq!(early["advice"], "retry_after");
    let feed = app.get("/v1/events/hall/feed").start().await;
    app.create(&hall("other", 1))
        .await
        .expect(StatusCode::CREATED);

    app.clock.advance(Duration::from_millis(DROP_AFTER_MS_MIN));
    let dropped = drop_it().await.expect(StatusCode::OK).json();
    assert_eq!(dropped["id"], "hall");
    assert_eq!(dropped["dropped_at"], "2026-12-09T12:00:00.000Z");
    let told = feed.into_body().collect().await.unwrap().to_bytes();
    let told = String::from_utf8(told.to_vec()).unwrap();
    assert!(told.contains("event: event"), "it ended: {told}");

    for part in [
        "",
        "/chart",
        "/seats",
        "/feed",
        "/bookings",
        "/units/A-1/history",
    ] {
        let asked = app.get(&format!("{HALL}{part}")).by(&app.admin);
        asked.send().await.refused(410, "event_dropped");
    }
    drop_it().await.refused(410, "event_dropped");
    app.create(&hall("hall", 1))
        .await
        .refused(410, "event_dropped");
    assert_eq!(listed(&app).await, ["other"]);
    app.engine.clear_dropped().await.unwrap();
    let path = format!("/v1/bookings/{}", booking["id"].as_str().unwrap());
    let gone = app.get(&path).by(&app.sell).send().await;
    gone.refused(404, "booking_not_found");
    let gone = app.get(&held.path()).by(&app.sell).send().await;
    gone.refused(404, "hold_not_found");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_staff_drops_events() {
    let app = TestApp::open().await.with_hall(1).await;
    for token in [&app.sell, &app.read, &app.shopper().await] {
        let asked = app.delete(HALL).by(token);
        asked.send().await.refused(403, "forbidden");
    }
}

/// As `serve --keep-ended-events 240h` has it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_drops_what_has_been_over_for_as_long_as_its_operator_keeps_it() {
    let app = TestApp::open().await.with_hall(1).await;
    app.create(&hall("other", 1))
        .await
        .expect(StatusCode::CREATED);
    call_off(&app).await;
    let (mut tasks, end) = (JoinSet::new(), CancellationToken::new());
    let keep = Span::from_ms(10 * 24 * 60 * 60 * 1_000);
    tasks.spawn(run_dropper(app.engine.clone(), Some(keep), end.clone()));
    app.clock.advance(Duration::from_hours(10 * 24 - 1));
    let found = app.get(HALL).by(&app.admin).send().await;
    found.expect(StatusCode::OK);
    let id = EventId::parse("hall").unwrap();
    let waited = until("it is dropped", PATIENCE, || {
        app.clock.advance(Duration::from_mins(2));
        app.engine.known_event(&id).is_none()
    });
    waited.unwrap();
    end.cancel();
    tasks.join_all().await;
    assert_eq!(listed(&app).await, ["other"]);
}

/// A clock that is wrong for a moment makes nothing over for long.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_whose_clock_stepped_drops_nothing() {
    let app = TestApp::open().await.with_hall(1).await;
    call_off(&app).await;
    let (mut tasks, end) = (JoinSet::new(), CancellationToken::new());
    let keep = Span::from_ms(10 * 24 * 60 * 60 * 1_000);
    tasks.spawn(run_dropper(app.engine.clone(), Some(keep), end.clone()));
    let first = EventId::parse("hall").unwrap();
    let waited = until("it is dropped", PATIENCE, || {
        app.clock.advance(Duration::from_hours(24));
        app.engine.known_event(&first).is_none()
    });
    waited.unwrap();
    app.create(&hall("other", 1))
        .await
        .expect(StatusCode::CREATED);
    let cancel = app.post("/v1/events/other/cancel").json(&json!({}));
    let cancelled = cancel.by(&app.admin).send().await;
    cancelled.expect(StatusCode::OK);
    let year_ms = 365 * 24 * 60 * 60 * 1_000;
    app.clock.step_wall(app.clock.wall_ms() + year_ms);
    let told = "no event is dropped: a clock is wrong";
    let waited = until("it looks", PATIENCE, || {
        app.clock.advance(Duration::from_mins(2));
        log::lines().iter().any(|line| line.contains(told))
    });
    waited.unwrap();
    end.cancel();
    tasks.join_all().await;
    let other = EventId::parse("other").unwrap();
    assert!(app.engine.known_event(&other).is_some());
}
