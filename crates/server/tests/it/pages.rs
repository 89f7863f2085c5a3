//! Pages, health and metrics; and what every answer says to browsers.

use axum::http::StatusCode;
use serde_json::json;
use soldonce_server::{Access, AdminRoutes, ServerSettings};
use tower::ServiceExt;

use crate::harness::{Store, TestApp, units};

#[tokio::test]
async fn the_page_may_run_its_own_scripts_alone() {
    let app = TestApp::open().await;
    let page = app.get("/").send().await.expect(StatusCode::OK);
    let policy = page.header("content-security-policy");
    assert!(
        policy.starts_with("default-src 'self'; script-src 'self';"),
        "{policy}"
    );
    assert!(!policy.contains("unsafe"));
    assert_eq!(page.header("x-content-type-options"), "nosniff");
    assert_eq!(page.header("referrer-policy"), "no-referrer");
    let text = page.text();
    assert!(!text.contains("<script>") && !text.contains(" style=") && !text.contains("onclick"));
    for part in text.split('"').filter(|part| part.starts_with("/assets/")) {
        let part = app.get(part).send().await.expect(StatusCode::OK);
        assert_eq!(part.header("x-content-type-options"), "nosniff");
    }
    let script = app
        .get("/assets/js/main.js")
        .send()
        .await
        .expect(StatusCode::OK);
    assert_eq!(
        script.header("content-type"),
        "text/javascript; charset=utf-8"
    );
    let known = app
        .get("/assets/js/main.js")
        .header("if-none-match", script.header("etag"));
    assert!(
        known
            .send()
            .await
            .expect(StatusCode::NOT_MODIFIED)
            .body
            .is_empty()
    );
}

#[tokio::test]
async fn every_problem_has_a_page() {
    let app = TestApp::open().await;
    let page = app
        .get("/problems/hold-expired")
        .send()
        .await
        .expect(StatusCode::OK);
    assert!(page.text().contains("<h1>The hold is over</h1>"));
    assert!(
        page.header("content-security-policy")
            .contains("default-src 'self'")
    );
    let body = json!({});
    let problem = app
        .post("/v1/keys")
        .json(&body)
        .send()
        .await
        .refused(401, "unauthenticated");
    app.get(problem["type"].as_str().unwrap())
        .send()
        .await
        .expect(StatusCode::OK);
}

#[tokio::test]
async fn answers_with_something_private_are_not_kept() {
    let app = TestApp::open().await.with_hall(1).await;
    let held = app.held("a", &["A-1"]).await;
    for path in [&*held.path(), "/v1/keys", "/v1/events", "/healthz", "/nope"] {
        let answer = app.get(path).by(&app.admin).send().await;
        assert_eq!(answer.header("cache-control"), "no-store", "{path}");
    }
}

#[tokio::test]
async fn requests_are_counted_by_route_and_not_by_what_callers_say() {
    let app = TestApp::open().await.with_hall(1).await;
    let held = app.held("user-42", &["A-1"]).await;
    app.get(&held.path())
        .by(&app.sell)
        .send()
        .await
        .expect(StatusCode::OK);
    let body = json!({"holder": "b", "units": units(&["A-1"])});
    app.post("/v1/events/hall/holds")
        .by(&app.sell)
        .json(&body)
        .send()
        .await
        .refused(409, "unit_unavailable");
    app.get("/nope").send().await.refused(404, "not_found");
    let metrics = app
        .get("/metrics")
        .send()
        .await
        .expect(StatusCode::OK)
        .text();
    for line in [
        r#"soldonce_http_requests_total{route="GET /v1/holds/{hold}",status="200"} 1"#,
        r#"soldonce_http_requests_total{route="POST /v1/events/{event}/holds",status="409"} 1"#,
        r#"soldonce_http_requests_total{route="ANY no such path",status="404"} 1"#,
        r#"soldonce_http_request_seconds_count{route="POST /v1/events/{event}/holds"} 2"#,
        r#"soldonce_http_request_seconds_bucket{le="+Inf",route="POST /v1/events/{event}/holds"} 2"#,
        r#"soldonce_shield_refusals_total{shield="local"} 1"#,
    ] {
        assert!(metrics.contains(line), "{line}\n{metrics}");
    }
    for private in [&*held.id, &held.secret, "user-42", "A-1", &app.sell] {
        assert!(!metrics.contains(private), "{private}");
    }
    assert!(metrics.ends_with("# EOF\n"));
}

#[tokio::test]
async fn metrics_move_to_the_admin_listener() {
    let settings = ServerSettings {
        shoppers: Access::Open,
        ..ServerSettings::default()
    };
    let app = TestApp::start(Store::Memory, settings, AdminRoutes::Apart)
        .await
        .with_hall(1)
        .await;
    app.get("/metrics").send().await.refused(404, "not_found");
    app.get("/healthz").send().await.expect(StatusCode::OK);
    let admin = app.admin_router.clone().unwrap();
    let ask = async |path: &str| {
        admin
            .clone()
            .oneshot(app.get(path).request)
            .await
            .unwrap()
            .status()
    };
    assert_eq!(ask("/metrics").await, StatusCode::OK);
    assert_eq!(ask("/healthz").await, StatusCode::OK);
    assert_eq!(ask("/v1/events").await, StatusCode::NOT_FOUND);
    assert_eq!(ask("/").await, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn it_is_ready_while_commands_are_taken() {
    let app = TestApp::open().await.with_hall(1).await;
    app.get("/readyz").send().await.expect(StatusCode::OK);
    app.engine.close().await;
    let closed = app.get("/readyz").send().await;
    assert_eq!(closed.header("retry-after"), "1");
    let first = closed.refused(503, "read_only");
    app.get("/healthz").send().await.expect(StatusCode::OK);
    let body = json!({"holder": "a", "units": units(&["A-1"])});
    let hold = app
        .post("/v1/events/hall/holds")
        .by(&app.sell)
        .json(&body)
        .send()
        .await;
    assert_eq!(hold.header("retry-after"), "1");
    assert_eq!(
        hold.refused(503, "read_only"),
        first,
        "bodies of 5xx are constant"
    );
}
