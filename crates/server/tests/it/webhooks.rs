//! Webhook endpoints over HTTP: made, listed, rotated, deleted; the log; a message that arrives.

use std::sync::Arc;

use axum::http::StatusCode;
use serde_json::{Value, json};
use soldonce_engine::run_webhooks;
use soldonce_engine::webhook::address::Destinations;
use soldonce_engine::webhook::{Sender, SystemLookup};
use soldonce_testkit::webhooks::{Receiver, violations};
use soldonce_testkit::{PATIENCE, until};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::harness::TestApp;
use crate::openapi;

const ENDPOINTS: &str = "/v1/webhook-endpoints";

async fn shop() -> TestApp {
    let app = TestApp::open().await.with_hall(1).await;
    let sender = Sender::new(Destinations::Any, Arc::new(SystemLookup)).unwrap();
    drop(app.engine.clone().posted_by(sender));
    app
}

async fn made(app: &TestApp, body: &Value) -> (String, String) {
    let made = app.post(ENDPOINTS).by(&app.admin).json(body).send().await;
    let made = made.expect(StatusCode::CREATED).json();
    let secret = made["secret"].as_str().unwrap().to_owned();
    assert!(secret.starts_with("whsec_"), "{secret}");
    app.keep_secret(&secret);
    (made["id"].as_str().unwrap().to_owned(), secret)
}

async fn read(app: &TestApp, path: &str) -> Value {
    let answer = app.get(path).by(&app.admin).send().await;
    answer.expect(StatusCode::OK).json()
}

async fn post(app: &TestApp, path: &str) -> Value {
    let answer = app.post(path).by(&app.admin).json(&json!({})).send().await;
    answer.expect(StatusCode::OK).json()
}

/// Runs the sender until so many messages arrived.
async fn deliver(app: &TestApp, receiver: &Receiver, count: usize) {
    let mut tasks = JoinSet::new();
    let end = CancellationToken::new();
    tasks.spawn(run_webhooks(app.engine.clone(), end.clone()));
    let waited = until("the messages", PATIENCE, || {
        app.clock.advance(std::time::Duration::from_millis(200));
        receiver.received().len() >= count
    });
    waited.unwrap();
    end.cancel();
    tasks.join_all().await;
}

/// The names of all members of a JSON text, as they come.
fn names(text: &str) -> Vec<&str> {
    let parts: Vec<&str> = text.split('"').collect();
    let named = parts.windows(2).filter(|pair| pair[1].starts_with(':'));
    named.map(|pair| pair[0]).collect()
}

async fn a_booking_arrives_and_stands_in_the_log() {
    let app = shop().await;
    let receiver = Receiver::start().unwrap();
    let (id, secret) = made(&app, &json!({"url": receiver.url()})).await;
    let held = app.held("ann", &["A-1"]).await;
    let booking = app.booked(&held).await;
    deliver(&app, &receiver, 1).await;
    let told = (booking["id"].as_str().unwrap(), "booking.confirmed");
    let told = [(told.0.to_owned(), told.1.to_owned())];
    assert_eq!(violations(&receiver.received(), &[&secret], &told), [""; 0]);
    let sent = String::from_utf8(receiver.received()[0].body.clone()).unwrap();
    let manual = include_str!("../../../../docs/webhooks.md");
    let example = manual.split("```json\n").nth(1).unwrap();
    let example = example.split("```").next().unwrap();
    assert_eq!(names(example), names(&sent));
    for message in [sent.as_str(), example] {
        let body = serde_json::from_str(message).unwrap();
        assert_eq!(openapi::judge_message(&body), None, "{body:#}");
    }
    let log = format!("{ENDPOINTS}/{id}/deliveries");
    let page = read(&app, &log).await;
    let row = &page["deliveries"][0];
    assert_eq!(row["type"], "booking.confirmed");
    assert_eq!(row["message"], receiver.received()[0].id);
    let again = format!("{log}/{}/resend", row["message"].as_str().unwrap());
    let opened = post(&app, &again).await;
    assert_eq!(
        (&opened["state"], &opened["attempts"]),
        (&json!("open"), &json!(0))
    );
}

async fn endpoints_are_made_listed_rotated_and_deleted() {
    let app = shop().await;
    let body = json!({"url": "https://example.org/hooks", "types": ["booking.cancelled"]});
    let (id, secret) = made(&app, &body).await;
    let list = read(&app, ENDPOINTS).await;
    let row = &list["endpoints"][0];
    assert_eq!(row["url"], "https://example.org/hooks");
    assert_eq!(row["types"], json!(["booking.cancelled"]));
    assert_eq!(row["secret"], Value::Null);
    let rotated = post(&app, &format!("{ENDPOINTS}/{id}/rotate")).await;
    let next = rotated["secret"].as_str().unwrap();
    app.keep_secret(next);
    assert_ne!(next, secret);
    assert_ne!(rotated["rotated_at"], Value::Null);
    let path = format!("{ENDPOINTS}/{id}");
    let disabled = post(&app, &format!("{path}/disable")).await;
    assert_ne!(disabled["disabled_at"], Value::Null);
    let row = &read(&app, ENDPOINTS).await["endpoints"][0];
    assert_eq!(row["disabled_at"], disabled["disabled_at"]);
    assert_eq!(read(&app, &path).await["disabled_at"], row["disabled_at"]);
    let enabled = post(&app, &format!("{path}/enable")).await;
    assert_eq!(enabled["disabled_at"], Value::Null);
    assert_eq!(enabled["quiet_until"], Value::Null);
    for status in [StatusCode::OK, StatusCode::NOT_FOUND] {
        let deleted = app.ask("DELETE".parse().unwrap(), &path);
        assert_eq!(deleted.by(&app.admin).send().await.status, status);
    }
    for gone in ["enable", "disable", "rotate"] {
        let gone = format!("{path}/{gone}");
        let missing = app.post(&gone).by(&app.admin).json(&json!({})).send();
        missing.await.refused(404, "not_found");
    }
    for path in [
        path.clone(),
        format!("{path}/deliveries"),
        format!("{ENDPOINTS}/x/deliveries"),
    ] {
        let missing = app.get(&path).by(&app.admin).send().await;
        missing.refused(404, "not_found");
    }
    assert_eq!(read(&app, ENDPOINTS).await["endpoints"], json!([]));
}

async fn what_staff_end_is_told_as_described() {
    let app = shop().await;
    let receiver = Receiver::start().unwrap();
    made(&app, &json!({"url": receiver.url()})).await;
    app.held("ann", &["A-1"]).await;
    let cancel = app.post("/v1/events/hall/cancel").by(&app.admin);
    let called_off = cancel.json(&json!({"reason": "flood"})).send().await;
    called_off.expect(StatusCode::OK);
    deliver(&app, &receiver, 2).await;
    let bodies = receiver.received();
    let bodies = bodies
        .iter()
        .map(|got| serde_json::from_slice(&got.body).unwrap());
    let mut bodies: Vec<Value> = bodies.collect();
    bodies.sort_by_key(|body| body["type"].to_string());
    for body in &bodies {
        assert_eq!(openapi::judge_message(body), None, "{body:#}");
        assert_eq!(body["data"]["reason"], "flood");
    }
    assert_eq!(bodies[0]["type"], "event.cancelled");
    assert_eq!(bodies[1]["type"], "hold.revoked");
}

async fn the_same_key_has_the_same_answer_secret_included() {
    let app = shop().await;
    let body = json!({"url": "https://example.org/hooks"});
    let ask = async |body: &Value| {
        let ask = app.post(ENDPOINTS).by(&app.admin).key("k").json(body);
        ask.send().await
    };
    let first = ask(&body).await.expect(StatusCode::CREATED);
    let first = first.json();
    app.keep_secret(first["secret"].as_str().unwrap());
    let id = first["id"].as_str().unwrap();
    // What became of it since changes nothing: the answer is that of then.
    let rotated = post(&app, &format!("{ENDPOINTS}/{id}/rotate")).await;
    app.keep_secret(rotated["secret"].as_str().unwrap());
    let again = ask(&body).await.expect(StatusCode::CREATED);
    assert_eq!(again.headers["idempotency-replayed"], "true");
    let mut again = again.json();
    again["server_time"] = first["server_time"].clone();
    assert_eq!(again, first);
    assert_eq!(
        read(&app, ENDPOINTS).await["endpoints"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    let other = ask(&json!({"url": "https://example.org/"})).await;
    other.refused(422, "idempotency_key_reused");
    let other_caller = app.post(ENDPOINTS).by(&app.sell).key("k").json(&body);
    other_caller.send().await.refused(403, "forbidden");
}

async fn the_log_is_told_in_pages() {
    let app = shop().await;
    let (id, _) = made(&app, &json!({"url": "https://example.org/hooks"})).await;
    for seat in ["A-1", "A-2", "A-3"] {
        app.booked(&app.held("ann", &[seat]).await).await;
    }
    let log = format!("{ENDPOINTS}/{id}/deliveries");
    let (mut path, mut seen) = (format!("{log}?limit=2"), Vec::new());
    loop {
        let page = read(&app, &path).await;
        let rows = page["deliveries"].as_array().unwrap();
        seen.extend(rows.iter().map(|row| row["message"].to_string()));
        let Some(next) = page["next"].as_str() else {
            break;
        };
        path = format!("{log}?limit=2&after={next}");
    }
    let count = seen.len();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!((count, seen.len()), (3, 3));
    // A number like any other, though no delivery has it.
    read(&app, &format!("{log}?after={}", u64::MAX)).await;
    for query in ["limit=0", "limit=101", "after=x", "page=1"] {
        let wrong = app.get(&format!("{log}?{query}")).by(&app.admin).send();
        wrong.await.refused(400, "invalid_request");
    }
}

async fn what_cannot_be_an_endpoint_is_refused_by_its_field() {
    let app = TestApp::open().await;
    for body in [
        json!({}),
        json!({"url": "http://example.org/"}),
        json!({"url": "https://127.0.0.1/"}),
        json!({"url": "https://2852039166/"}),
        json!({"url": "https://[::ffff:10.0.0.1]/"}),
        json!({"url": "https://example.org/", "types": []}),
        json!({"url": "https://example.org/", "types": ["seat.sold"]}),
        json!({"url": "https://example.org/", "secret": "mine"}),
    ] {
        let refused = app.post(ENDPOINTS).by(&app.admin).json(&body).send().await;
        refused.refused(400, "invalid_request");
    }
}

crate::variant::run_over! {
    [over_http, over_grpc], workers: 2, {
        a_booking_arrives_and_stands_in_the_log,
        endpoints_are_made_listed_rotated_and_deleted,
        what_staff_end_is_told_as_described,
        the_same_key_has_the_same_answer_secret_included,
        the_log_is_told_in_pages,
        what_cannot_be_an_endpoint_is_refused_by_its_field,
    }
}
