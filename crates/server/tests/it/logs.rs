//! What is logged of a request, and what is not.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use axum::http::StatusCode;
use futures_util::stream;
use serde_json::json;
use soldonce_server::limits::{LOG_PERIOD_MS, SLOW_REQUEST_MS};
use soldonce_testkit::log;

use crate::harness::{TestApp, units};

#[tokio::test]
async fn a_request_is_logged_by_its_route_without_what_it_carried() {
    let app = TestApp::open().await.with_hall(1).await;
    app.keep_secret("canary-cookie");
    app.keep_secret("canary-query");
    app.keep_secret("canary-key");
    app.keep_secret("canary-body");
    app.keep_secret("canary-secret");
    let ask = app
        .post("/v1/events/hall/holds")
        .header("cookie", "a=canary-cookie");
    let body = json!({"holder": "canary-body", "units": units(&["A-1"])});
    let ask = ask
        .by(&app.sell)
        .key("canary-key")
        .secret("hs_canary-secret")
        .json(&body);
    ask.header("request-id", "logged-once")
        .send()
        .await
        .expect(StatusCode::CREATED);
    let wrong = app
        .get("/v1/holds/x?fence=canary-query")
        .by(&app.sell)
        .secret("canary-secret");
    wrong.send().await.refused(400, "invalid_request");
    let lines = log::lines();
    let line = lines
        .iter()
        .find(|line| line.contains(" request_id=\"logged-once\""))
        .unwrap();
    assert!(line.starts_with("DEBUG message=request served "), "{line}");
    for field in [
        "method=\"POST\"",
        "route=\"/v1/events/{event}/holds\"",
        "event=\"hall\"",
        "status=201",
        "code=\"\"",
    ] {
        assert!(line.contains(field), "{line}");
    }
}

#[tokio::test]
async fn a_request_that_takes_a_second_is_a_warning() {
    let app = TestApp::open().await.with_hall(1).await;
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let slow = async |id: &str, seat: &str| {
        let clock = app.clock.clone();
        let wish = json!({"holder": "ann", "units": units(&[seat])}).to_string();
        let late = stream::once(async move {
            clock.advance(Duration::from_millis(SLOW_REQUEST_MS));
            Ok::<_, Infallible>(wish)
        });
        let ask = app.post("/v1/events/hall/holds").by(&app.sell).over_http();
        let ask = ask.body("application/json", Body::from_stream(late));
        let ask = ask.header("traceparent", trace).header("request-id", id);
        ask.send().await.expect(StatusCode::CREATED).json()
    };
    let hold = slow("slow-once", "A-1").await;
    let path = format!("/v1/holds/{}", hold["id"].as_str().unwrap());
    let read = app
        .get(&path)
        .by(&app.sell)
        .header("request-id", "quick-once");
    read.send().await.expect(StatusCode::OK);
    // A client can make its own requests slow: one line a minute tells of the others.
    slow("slow-twice", "A-3").await;
    app.clock.advance(Duration::from_millis(LOG_PERIOD_MS));
    slow("slow-later", "A-5").await;
    let lines = log::lines();
    assert!(
        !lines
            .iter()
            .any(|line| line.contains("slow-twice") && line.starts_with("WARN"))
    );
    let of = |id: &str| lines.iter().find(|line| line.contains(id)).unwrap();
    let slow = of(" request_id=\"slow-once\"");
    assert!(
        slow.starts_with("WARN message=a request took long "),
        "{slow}"
    );
    assert!(slow.contains("event=\"hall\""), "{slow}");
    assert!(
        slow.contains("trace_id=\"0af7651916cd43dd8448eb211c80319c\""),
        "{slow}"
    );
    let later = of(" request_id=\"slow-later\"");
    assert!(later.contains("left_out=1"), "{later}");
    let quick = of(" request_id=\"quick-once\"");
    let named = format!("hold={:?}", hold["id"].as_str().unwrap());
    assert!(quick.contains(&named), "{quick}");
}

#[test]
fn secrets_have_no_readable_debug() {
    let secret = soldonce_engine::HoldSecret("hs_canary".into());
    assert_eq!(format!("{secret:?}"), "HoldSecret { .. }");
}
