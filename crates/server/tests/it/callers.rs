//! Sessions and keys: how callers come and go, and pages of other origins.

use std::time::Duration;

use axum::http::{Method, StatusCode};
use serde_json::json;
use soldonce_server::{Access, AdminRoutes, CookieSecurity, ServerSettings};

use crate::harness::{Answer, Store, TestApp, units};

#[tokio::test]
async fn a_session_comes_with_a_cookie_that_scripts_cannot_read() {
    for store in Store::BOTH {
        let app = TestApp::open_on(store).await.with_hall(1).await;
        let opened = app.post("/v1/sessions").json(&json!({})).send().await;
        let opened = opened.expect(StatusCode::CREATED);
        let (token, cookie) = (
            opened.json()["session"].clone(),
            opened.header("set-cookie"),
        );
        let token = token.as_str().unwrap();
        let attributes = "HttpOnly; SameSite=Lax; Path=/; Max-Age=86400";
        assert_eq!(cookie, format!("soldonce_session={token}; {attributes}"));
        assert_eq!(opened.json()["expires_at"], "2026-12-02T12:00:00.000Z");
        let cookie = format!("theme=dark; soldonce_session={token}");
        let body = json!({"units": units(&["A-1"])});
        let held = app
            .post("/v1/events/hall/holds")
            .header("cookie", &cookie)
            .json(&body)
            .send()
            .await;
        assert_eq!(
            held.expect(StatusCode::CREATED).json()["holder"],
            opened.json()["holder"]
        );
        app.clock.advance(Duration::from_hours(24));
        let late = app.get("/v1/holds").header("cookie", &cookie).send().await;
        late.refused(401, "unauthenticated");
        let unknown = app
            .post("/v1/sessions")
            .json(&json!({"holder": "me"}))
            .send()
            .await;
        unknown.refused(400, "invalid_request");
    }
}

#[tokio::test]
async fn the_cookie_can_be_for_https_alone() {
    let settings = ServerSettings {
        shoppers: Access::Open,
        cookie: CookieSecurity::Secure,
        ..ServerSettings::default()
    };
    let app = TestApp::start(Store::Memory, settings, AdminRoutes::Public).await;
    let opened = app
        .post("/v1/sessions")
        .send()
        .await
        .expect(StatusCode::CREATED);
    assert!(opened.header("set-cookie").ends_with("; Secure"));
}

#[tokio::test]
async fn a_shopper_who_is_not_let_in_is_told_so() {
    let settings = ServerSettings::default();
    let app = TestApp::start(Store::Memory, settings, AdminRoutes::Public).await;
    let refused = app.post("/v1/sessions").send().await;
    let refused = refused.refused(401, "unauthenticated");
    let detail = refused["detail"].as_str().unwrap();
    assert!(detail.contains("--shoppers open"), "{detail}");
}

#[tokio::test]
async fn a_key_is_told_once_and_refused_when_revoked() {
    for store in Store::BOTH {
        let app = TestApp::open_on(store).await.with_hall(1).await;
        let body = json!({"name": "till 3", "scopes": ["sell", "sell"]});
        let made = app.post("/v1/keys").by(&app.admin).json(&body).send().await;
        let made = made.expect(StatusCode::CREATED).json();
        assert_eq!(made["scopes"], json!(["sell"]));
        let (id, key) = (made["id"].as_str().unwrap(), made["key"].as_str().unwrap());
        app.get("/v1/holds?holder=a")
            .by(key)
            .send()
            .await
            .expect(StatusCode::OK);
        let listed = app
            .get("/v1/keys")
            .by(&app.admin)
            .send()
            .await
            .expect(StatusCode::OK);
        assert!(!listed.text().contains(key));
        assert_eq!(listed.json()["keys"].as_array().unwrap().len(), 4);
        let path = format!("/v1/keys/{id}");
        let revoked = app
            .delete(&path)
            .by(&app.admin)
            .send()
            .await
            .expect(StatusCode::OK)
            .json();
        assert_eq!(revoked["revoked_at"], "2026-12-01T12:00:00.000Z");
        app.delete(&path)
            .by(&app.admin)
            .send()
            .await
            .expect(StatusCode::OK);
        app.get("/v1/holds?holder=a")
            .by(key)
            .send()
            .await
            .refused(401, "unauthenticated");
        for missing in ["cal_00000000000000000000000000", "x"] {
            let answer = app
                .delete(&format!("/v1/keys/{missing}"))
                .by(&app.admin)
                .send()
                .await;
            let problem = answer.refused(404, "not_found");
            assert_eq!(problem["detail"], "there is no API key of this id");
        }
        for wrong in [
            json!({"name": "x", "scopes": []}),
            json!({"name": "x", "scopes": ["root"]}),
            json!({"name": "\n", "scopes": ["read"]}),
        ] {
            let answer = app
                .post("/v1/keys")
                .by(&app.admin)
                .json(&wrong)
                .send()
                .await;
            answer.refused(400, "invalid_request");
        }
    }
}

#[tokio::test]
async fn a_page_of_another_origin_may_not_act_for_the_shopper() {
    let app = TestApp::open().await.with_hall(1).await;
    let cookie = format!("soldonce_session={}", app.shopper().await);
    let body = json!({"units": units(&["A-1"])});
    let ask = async |origin: &str| {
        let ask = app
            .post("/v1/events/hall/holds")
            .header("host", "hall.example:8080");
        ask.header("cookie", &cookie)
            .header("origin", origin)
            .json(&body)
            .send()
            .await
    };
    for foreign in [
        "https://evil.example",
        "http://hall.example",
        "null",
        "http://hall.example:8080.evil.example",
    ] {
        ask(foreign).await.refused(403, "forbidden");
    }
    ask("http://hall.example:8080")
        .await
        .expect(StatusCode::CREATED);
    let feed = app
        .get("/v1/events/hall/feed")
        .header("host", "hall.example")
        .header("origin", "https://evil.example");
    feed.send().await.refused(403, "forbidden");
}

#[tokio::test]
async fn only_named_origins_may_read_answers() {
    let settings = ServerSettings {
        shoppers: Access::Open,
        allowed_origins: vec!["https://shop.example".to_owned()],
        ..ServerSettings::default()
    };
    let app = TestApp::start(Store::Memory, settings, AdminRoutes::Public)
        .await
        .with_hall(1)
        .await;
    let named = |answer: &Answer| answer.header("access-control-allow-origin").to_owned();
    let ask = async |origin: &str| app.get("/v1/events").header("origin", origin).send().await;
    let answer = ask("https://shop.example").await;
    assert_eq!(named(&answer), "https://shop.example");
    assert_eq!(answer.header("access-control-allow-credentials"), "true");
    assert_eq!(answer.header("vary"), "Origin");
    assert_eq!(named(&ask("https://evil.example").await), "");
    let preflight = async |origin: &str| {
        let ask = app
            .ask(Method::OPTIONS, "/v1/events/hall/holds")
            .header("origin", origin);
        ask.header("access-control-request-method", "POST")
            .send()
            .await
    };
    let passed = preflight("https://shop.example")
        .await
        .expect(StatusCode::NO_CONTENT);
    assert!(
        passed
            .header("access-control-allow-headers")
            .contains("Hold-Secret")
    );
    assert_eq!(named(&passed), "https://shop.example");
    preflight("https://evil.example")
        .await
        .refused(405, "method_not_allowed");
    let cookie = format!("soldonce_session={}", app.shopper().await);
    let body = json!({"units": units(&["A-1"])});
    let held = app.post("/v1/events/hall/holds").header("cookie", &cookie);
    let held = held
        .header("origin", "https://shop.example")
        .header("host", "hall.example");
    held.json(&body).send().await.expect(StatusCode::CREATED);
}
