//! Sessions and keys: how callers come and go, and pages of other origins.

use std::sync::Arc;
use std::time::Duration;

use axum::http::{Method, StatusCode};
use serde_json::{Value, json};
use soldonce_server::{AdminRoutes, CookieSecurity, Peer, ServerSettings};
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use crate::harness::{Answer, TestApp, units};

#[tokio::test]
async fn a_session_comes_with_a_cookie_that_scripts_cannot_read() {
    let app = TestApp::open().await.with_hall(1).await;
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

#[tokio::test]
async fn the_cookie_can_be_for_https_alone() {
    let app = TestApp::open_with(|settings| settings.cookie = CookieSecurity::Secure).await;
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
    let app = TestApp::start(settings, AdminRoutes::Public).await;
    let refused = app.post("/v1/sessions").send().await;
    let refused = refused.refused(401, "unauthenticated");
    let detail = refused["detail"].as_str().unwrap();
    assert!(detail.contains("--shoppers open"), "{detail}");
}

#[tokio::test]
async fn a_key_is_told_once_and_refused_when_revoked() {
    let app = TestApp::open().await.with_hall(1).await;
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
    assert_eq!(listed.json()["keys"].as_array().unwrap().len(), 5);
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
    let none = json!({"name": "x", "scopes": []});
    let refused = app.post("/v1/keys").by(&app.admin).json(&none).send().await;
    let refused = refused.refused(400, "invalid_request");
    let rule = "scopes: name at least one of `admin`, `sell`, `read`, `lease`";
    assert_eq!(refused["detail"], rule);
    for wrong in [
        json!({"name": "x", "scopes": ["root"]}),
        json!({"name": "\n", "scopes": ["read"]}),
        json!({"name": "", "scopes": ["read"]}),
        json!({"name": "  ", "scopes": ["read"]}),
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

/// Keys that are made and revoked at once by many admins: each works when its maker has it, and is
/// refused when its revoking is answered.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn keys_made_and_revoked_at_once_are_right_at_every_answer() {
    const ADMINS: usize = 12;
    const ROUNDS: usize = 30;
    let app = Arc::new(TestApp::open().await);
    let start = Arc::new(Barrier::new(ADMINS));
    let mut admins = JoinSet::new();
    for n in 0..ADMINS {
        let (app, start) = (Arc::clone(&app), Arc::clone(&start));
        admins.spawn(async move {
            start.wait().await;
            for _ in 0..ROUNDS {
                let body = json!({"name": format!("till {n}"), "scopes": ["sell"]});
                let made = app.post("/v1/keys").by(&app.admin).json(&body).send().await;
                let made = made.expect(StatusCode::CREATED).json();
                let (id, key) = (made["id"].as_str().unwrap(), made["key"].as_str().unwrap());
                let look = async || app.get("/v1/holds?holder=a").by(key).send().await;
                look().await.expect(StatusCode::OK);
                let path = format!("/v1/keys/{id}");
                let revoked = app.delete(&path).by(&app.admin).send().await;
                assert_ne!(
                    revoked.expect(StatusCode::OK).json()["revoked_at"],
                    Value::Null
                );
                look().await.refused(401, "unauthenticated");
            }
        });
    }
    while let Some(ended) = admins.join_next().await {
        ended.unwrap();
    }
}

#[tokio::test]
async fn the_last_admin_key_is_not_revoked() {
    let app = TestApp::open().await;
    let listed = app.get("/v1/keys").by(&app.admin).send().await.json();
    let keys = listed["keys"].as_array().unwrap();
    let own = keys.iter().find(|key| key["name"] == "admin").unwrap();
    let path = format!("/v1/keys/{}", own["id"].as_str().unwrap());
    let refused = app.delete(&path).by(&app.admin).send().await;
    refused.refused(409, "last_admin_key");
    let body = json!({"name": "next", "scopes": ["admin"]});
    let made = app.post("/v1/keys").by(&app.admin).json(&body).send().await;
    let next = made.expect(StatusCode::CREATED).json()["key"].clone();
    let revoked = app.delete(&path).by(&app.admin).send().await;
    revoked.expect(StatusCode::OK);
    let late = app.get("/v1/keys").by(&app.admin).send().await;
    late.refused(401, "unauthenticated");
    let listed = app.get("/v1/keys").by(next.as_str().unwrap()).send().await;
    listed.expect(StatusCode::OK);
}

/// The admin key of the setting takes the place of the one that the setting named before.
#[tokio::test]
async fn another_admin_key_in_the_setting_ends_the_one_before() {
    let app = TestApp::open().await;
    let (old, new) = ("an-old-admin-key", "another-admin-key");
    let look = async |key: &str| app.get("/v1/keys").by(key).send().await;
    let first = app.engine.adopt_admin_key(old).await.unwrap();
    assert_eq!(first.ended, []);
    let again = app.engine.adopt_admin_key(old).await.unwrap();
    assert_eq!((again.key.id, again.ended), (first.key.id, Vec::new()));
    look(old).await.expect(StatusCode::OK);
    let second = app.engine.adopt_admin_key(new).await.unwrap();
    assert_eq!(second.ended, [first.key.id]);
    look(old).await.refused(401, "unauthenticated");
    look(new).await.expect(StatusCode::OK);
    look(&app.admin).await.expect(StatusCode::OK);
    // It stays revoked, and does not end the one that is good.
    let back = app.engine.adopt_admin_key(old).await.unwrap();
    assert!(back.key.revoked_at.is_some() && back.ended.is_empty());
    look(new).await.expect(StatusCode::OK);
    let body = json!({"name": "admin (of the setting)", "scopes": ["admin"]});
    let made = app.post("/v1/keys").by(new).json(&body).send().await;
    made.refused(400, "invalid_request");
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

/// A server whose answers the pages of one origin may read.
async fn with_a_shop() -> TestApp {
    let origins = vec!["https://shop.example".to_owned()];
    let app = TestApp::open_with(|settings| settings.allowed_origins = origins).await;
    app.with_hall(1).await
}

#[tokio::test]
async fn only_named_origins_may_read_answers() {
    let app = with_a_shop().await;
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

#[tokio::test]
async fn a_secure_cookie_has_a_name_that_no_other_host_can_plant() {
    let app = TestApp::open_with(|settings| settings.cookie = CookieSecurity::Secure).await;
    let opened = app.post("/v1/sessions").send().await;
    let cookie = opened.header("set-cookie");
    assert!(
        cookie.starts_with("__Host-soldonce_session=ses_"),
        "{cookie}"
    );
    assert!(
        cookie.contains("; Path=/;") && cookie.ends_with("; Secure"),
        "{cookie}"
    );
    let (pair, _) = cookie.split_once(';').unwrap();
    let holds = async |cookie: &str| app.get("/v1/holds").header("cookie", cookie).send().await;
    holds(pair).await.expect(StatusCode::OK);
    let planted = pair.replace("__Host-", "");
    holds(&planted).await.refused(401, "unauthenticated");
    let both = holds(&format!("{planted}; {pair}")).await;
    both.expect(StatusCode::OK);
}

/// A proxy on the same machine ends TLS, and the server listens on its loopback alone.
#[tokio::test]
async fn behind_a_trusted_proxy_that_ends_tls_the_cookie_is_secure() {
    let app = TestApp::open_with(|settings| {
        settings.cookie = CookieSecurity::Forwarded;
        settings.rates.trusted_proxies = vec!["127.0.0.1".parse().unwrap()];
    })
    .await;
    let open = async |peer: &str, scheme: &str| {
        let peer = peer.parse().unwrap();
        let ask = app.post("/v1/sessions").with(Peer(peer));
        let opened = ask.header("x-forwarded-proto", scheme).send().await;
        opened.header("set-cookie").to_owned()
    };
    let secure = open("127.0.0.1:4000", "https").await;
    assert!(
        secure.starts_with("__Host-soldonce_session=ses_"),
        "{secure}"
    );
    assert!(secure.ends_with("; Secure"), "{secure}");
    for (peer, scheme) in [("127.0.0.1:4000", "http"), ("192.0.2.1:4000", "https")] {
        let plain = open(peer, scheme).await;
        assert!(
            plain.starts_with("soldonce_session=ses_"),
            "{peer}: {plain}"
        );
        assert!(!plain.contains("Secure"), "{peer}: {plain}");
    }
    let (pair, _) = secure.split_once(';').unwrap();
    let holds = async |scheme: &str| {
        let peer = "127.0.0.1:4000".parse().unwrap();
        let ask = app.get("/v1/holds").with(Peer(peer)).header("cookie", pair);
        ask.header("x-forwarded-proto", scheme).send().await
    };
    holds("https").await.expect(StatusCode::OK);
    holds("http").await.refused(401, "unauthenticated");
}

#[tokio::test]
async fn two_sessions_in_cookies_are_none() {
    let app = TestApp::open().await;
    let (one, other) = (app.shopper().await, app.shopper().await);
    let both = format!("soldonce_session={one}; soldonce_session={other}");
    let refused = app.get("/v1/holds").header("cookie", &both).send().await;
    let problem = refused.refused(401, "unauthenticated");
    assert!(
        problem["detail"]
            .as_str()
            .unwrap()
            .contains("more than one cookie")
    );
}

#[tokio::test]
async fn a_page_of_another_origin_cannot_replace_the_session() {
    let app = TestApp::open().await;
    let open = async |origin: &str| {
        let ask = app.post("/v1/sessions").header("host", "hall.example");
        let ask = ask.header("origin", origin);
        ask.body("application/x-www-form-urlencoded", "")
            .send()
            .await
    };
    for foreign in ["https://evil.example", "null"] {
        let refused = open(foreign).await;
        assert_eq!(refused.header("set-cookie"), "");
        let problem = refused.refused(403, "forbidden");
        let detail = problem["detail"].as_str().unwrap();
        let told = format!("a page of {foreign} asked the host hall.example: ");
        assert!(detail.starts_with(&told), "{detail}");
    }
    open("https://hall.example")
        .await
        .expect(StatusCode::CREATED);
}

#[tokio::test]
async fn every_answer_says_that_the_origin_matters_where_it_does() {
    let app = with_a_shop().await;
    for path in ["/v1/events/hall/chart", "/v1/events", "/nope"] {
        let answer = app.get(path).send().await;
        let vary = answer.headers.get_all("vary").iter();
        assert!(vary.into_iter().any(|vary| vary == "Origin"), "{path}");
    }
}
