//! Pages, health and metrics; and what every answer says to browsers.

use axum::http::StatusCode;
use serde_json::json;
use soldonce_server::{Access, AdminRoutes, ServerSettings, route_table};
use tower::ServiceExt;

use crate::harness::{TestApp, units};

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
    app.hold(&app.sell, &body)
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
    let media = "text/plain; version=0.0.4; charset=utf-8";
    let classic = app.get("/metrics").send().await;
    assert_eq!(classic.header("content-type"), media);
    assert!(
        classic
            .text()
            .contains("# TYPE soldonce_http_requests_total counter\n")
    );
    assert!(!classic.text().contains("# EOF"));
    let accepts = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;q=0.2";
    let asked = app.get("/metrics").header("accept", accepts).send().await;
    assert!(
        asked
            .header("content-type")
            .starts_with("application/openmetrics-text")
    );
    assert!(asked.text().ends_with("# EOF\n"));
}

#[tokio::test]
async fn what_is_for_staff_moves_to_the_admin_listener() {
    let settings = ServerSettings {
        shoppers: Access::Open,
        ..ServerSettings::default()
    };
    let app = TestApp::start(settings, AdminRoutes::Apart).await;
    let admin = app.admin_router.clone().unwrap();
    let on_admin = async |method: &str, path: &str| {
        let method = method.parse().unwrap();
        let ask = app.ask(method, path).by(&app.admin);
        admin.clone().oneshot(ask.request).await.unwrap().status()
    };
    let missing = [StatusCode::NOT_FOUND, StatusCode::METHOD_NOT_ALLOWED];
    for route in route_table() {
        let path = route.path.replace(['{', '}', '*'], "");
        let is_for_staff = route.admission == "admin" || path == "/metrics";
        let method = route.method.parse().unwrap();
        let public = app.ask(method, &path).by(&app.admin);
        if path.ends_with("/watch") {
            // It does not end.
            assert_eq!(public.start().await.status(), StatusCode::OK);
            continue;
        }
        let public = public.send().await;
        let code = serde_json::from_slice::<serde_json::Value>(&public.body);
        let code = code.map_or(json!(null), |body| body["code"].clone());
        let is_missing = missing.contains(&public.status)
            && [json!("not_found"), json!("method_not_allowed")].contains(&code);
        // A file, a problem or a payment of that name is not there either.
        let is_named = route.path.contains("{*") || route.path.contains("{code}");
        if !is_named && path != "/v1/webhooks/stripe" {
            assert_eq!(is_missing, is_for_staff, "{} {path}: {code}", route.method);
        }
        assert_ne!(
            on_admin(route.method, &path).await,
            StatusCode::METHOD_NOT_ALLOWED,
            "{} {path}",
            route.method
        );
    }
    app.get("/v1/keys")
        .by(&app.admin)
        .send()
        .await
        .refused(404, "not_found");
    assert_eq!(on_admin("GET", "/v1/keys").await, StatusCode::OK);
    assert_eq!(on_admin("GET", "/metrics").await, StatusCode::OK);
    assert_eq!(on_admin("GET", "/v1/events").await, StatusCode::OK);
}

#[tokio::test]
async fn a_known_page_is_not_sent_again() {
    let app = TestApp::open().await.with_hall(1).await;
    for path in [
        "/",
        "/docs",
        "/assets/js/main.js",
        "/v1/events/hall/chart",
        "/v1/events/hall/seats",
    ] {
        let page = app.get(path).send().await.expect(StatusCode::OK);
        let tag = page.header("etag");
        let strong = tag.trim_start_matches("W/").to_owned();
        for known in ["*", tag, &*strong, &format!("\"other\", W/{strong}")] {
            let ask = app.get(path).header("if-none-match", known).send().await;
            let again = ask.expect(StatusCode::NOT_MODIFIED);
            assert!(again.body.is_empty());
            assert_eq!(again.header("etag"), tag, "{path}");
        }
        let other = app
            .get(path)
            .header("if-none-match", "\"other\"")
            .send()
            .await;
        other.expect(StatusCode::OK);
    }
}

#[tokio::test]
async fn it_is_ready_while_commands_are_taken() {
    let app = TestApp::open().await.with_hall(1).await;
    app.get("/readyz").send().await.expect(StatusCode::OK);
    app.engine.close().await;
    let closed = app.get("/readyz").send().await;
    assert_eq!(closed.header("retry-after"), "1");
    closed.refused(503, "read_only");
    app.get("/healthz").send().await.expect(StatusCode::OK);
    let body = json!({"holder": "a", "units": units(&["A-1"])});
    let hold = app.post("/v1/events/hall/holds").by(&app.sell).json(&body);
    let hold = hold.send().await;
    assert_eq!(hold.header("retry-after"), "1");
    let first = hold.refused(503, "shutting_down");
    app.shutdown.cancel();
    let closed = app.get("/readyz").send().await;
    let same = closed.refused(503, "shutting_down");
    assert_eq!(same, first, "bodies of 5xx are constant");
}

/// The page divides what the provider charges by the same digits as the server counts.
#[test]
fn the_page_counts_minor_units_as_the_server_does() {
    let script = include_str!("../../web/js/format.js");
    let listed = |name: &str| {
        let (_, rest) = script.split_once(&format!("const {name} = \"")).unwrap();
        rest.split_once('"')
            .unwrap()
            .0
            .split(' ')
            .collect::<Vec<_>>()
    };
    let (none, three) = (listed("WITHOUT_DIGITS"), listed("WITH_THREE_DIGITS"));
    let letters = || b'A'..=b'Z';
    let mut differing = 0;
    for (a, b, c) in
        letters().flat_map(|a| letters().flat_map(move |b| letters().map(move |c| (a, b, c))))
    {
        let code = String::from_utf8(vec![a, b, c]).unwrap();
        let digits = soldonce_core::Currency::parse(&code).unwrap().digits();
        assert_eq!(none.contains(&&*code), digits == 0, "{code}");
        assert_eq!(three.contains(&&*code), digits == 3, "{code}");
        differing += usize::from(digits != 2);
    }
    assert_eq!(differing, none.len() + three.len());
}

#[tokio::test]
async fn what_programs_read_names_operations_that_exist() {
    let app = TestApp::open().await;
    let told = app.get("/llms.txt").send().await.expect(StatusCode::OK);
    assert_eq!(told.header("content-type"), "text/plain; charset=utf-8");
    let told = told.text();
    let described = app.get("/openapi.json").send().await.expect(StatusCode::OK);
    let described = described.json();
    let named = told
        .split('`')
        .filter_map(|quoted| quoted.split_once(" /v1/"));
    let mut count = 0;
    for (method, path) in named {
        let path = format!("/v1/{}", path.split('?').next().unwrap());
        let operation = &described["paths"][&path][method.to_lowercase()];
        assert!(operation.is_object(), "{method} {path}");
        count += 1;
    }
    assert!(count >= 8, "{count}");
}
