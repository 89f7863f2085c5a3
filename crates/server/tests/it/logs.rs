//! What is logged of a request, and what is not.

use axum::http::StatusCode;
use serde_json::json;

use crate::harness::{TestApp, units};
use crate::log;

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
        .find(|line| line.contains("request_id=\"logged-once\""))
        .unwrap();
    assert!(line.starts_with("DEBUG message=request served "), "{line}");
    for field in [
        "method=\"POST\"",
        "route=\"/v1/events/{event}/holds\"",
        "status=201",
        "code=\"\"",
    ] {
        assert!(line.contains(field), "{line}");
    }
}

#[test]
fn secrets_have_no_readable_debug() {
    let secret = soldonce_engine::HoldSecret("hs_canary".into());
    assert_eq!(format!("{secret:?}"), "HoldSecret(..)");
}
