//! Who may do what: every route with every caller, and what one caller may know of another's.

use std::collections::BTreeSet;

use axum::http::{Method, StatusCode};
use serde_json::{Value, json};
use soldonce_core::Text;
use soldonce_engine::keys::Scope;
use soldonce_engine::webhook::{EndpointId, Kinds};
use soldonce_server::{AdminRoutes, ServerSettings, route_table};

use crate::harness::{Answer, Held, TestApp, units};

/// Callers in the order of the columns below.
const CALLERS: [&str; 7] = [
    "no one",
    "shopper A",
    "shopper B",
    "read",
    "sell",
    "lease",
    "admin",
];

/// Expected statuses by route, for a hold and a booking of shopper A. A status below 400 stands for
/// "let in": what the route answers then is other tests' business.
const MATRIX: &[(&str, &str, [u16; 7])] = &[
    ("GET", "/v1/events", [200; 7]),
    ("POST", "/v1/events", [401, 403, 403, 403, 403, 403, 200]),
    ("GET", "/v1/events/{event}", [200; 7]),
    (
        "DELETE",
        "/v1/events/{event}",
        [401, 403, 403, 403, 403, 403, 409],
    ),
    (
        "PATCH",
        "/v1/events/{event}",
        [401, 403, 403, 403, 403, 403, 200],
    ),
    (
        "POST",
        "/v1/events/{event}/cancel",
        [401, 403, 403, 403, 403, 403, 200],
    ),
    ("GET", "/v1/events/{event}/chart", [200; 7]),
    ("GET", "/v1/events/{event}/seats", [200; 7]),
    ("GET", "/v1/events/{event}/feed", [200; 7]),
    ("GET", "/v1/events/{event}/frames", [200; 7]),
    (
        "POST",
        "/v1/events/{event}/holds",
        [401, 200, 200, 403, 200, 403, 200],
    ),
    (
        "GET",
        "/v1/events/{event}/holds",
        [401, 403, 403, 200, 403, 403, 200],
    ),
    (
        "GET",
        "/v1/events/{event}/bookings",
        [401, 403, 403, 200, 403, 403, 200],
    ),
    ("GET", "/v1/holds", [401, 200, 200, 403, 200, 403, 200]),
    (
        "GET",
        "/v1/holds/{hold}",
        [401, 200, 404, 403, 404, 403, 200],
    ),
    (
        "PATCH",
        "/v1/holds/{hold}",
        [401, 200, 404, 403, 404, 403, 200],
    ),
    (
        "DELETE",
        "/v1/holds/{hold}",
        [401, 200, 404, 403, 404, 403, 200],
    ),
    (
        "POST",
        "/v1/holds/{hold}/extend",
        [401, 200, 404, 403, 404, 403, 200],
    ),
    (
        "POST",
        "/v1/holds/{hold}/confirm",
        [401, 200, 404, 403, 404, 403, 200],
    ),
    // No provider takes money here: every caller is refused.
    (
        "POST",
        "/v1/holds/{hold}/checkout",
        [401, 200, 200, 403, 200, 403, 200],
    ),
    (
        "POST",
        "/v1/holds/{hold}/abandon",
        [401, 200, 404, 403, 404, 403, 200],
    ),
    (
        "POST",
        "/v1/holds/{hold}/revoke",
        [401, 403, 403, 403, 403, 403, 200],
    ),
    (
        "POST",
        "/v1/events/{event}/sales",
        [401, 403, 403, 403, 200, 403, 200],
    ),
    ("GET", "/v1/bookings", [401, 200, 200, 403, 200, 403, 200]),
    (
        "GET",
        "/v1/bookings/{booking}",
        [401, 200, 404, 403, 404, 403, 200],
    ),
    (
        "POST",
        "/v1/bookings/{booking}/cancel",
        [401, 200, 404, 403, 404, 403, 200],
    ),
    (
        "POST",
        "/v1/bookings/{booking}/refunds",
        [401, 403, 403, 403, 403, 403, 200],
    ),
    ("POST", "/v1/exchanges", [401, 200, 200, 403, 200, 403, 200]),
    ("GET", "/v1/payments", [200; 7]),
    // Notices of a provider that is not set up.
    ("POST", "/v1/webhooks/stripe", [404; 7]),
    (
        "POST",
        "/v1/events/{event}/block",
        [401, 403, 403, 403, 403, 403, 200],
    ),
    (
        "POST",
        "/v1/events/{event}/unblock",
        [401, 403, 403, 403, 403, 403, 200],
    ),
    (
        "GET",
        "/v1/events/{event}/units/{unit}/history",
        [401, 403, 403, 403, 403, 403, 200],
    ),
    (
        "POST",
        "/v1/leases/{name}/acquire",
        [401, 403, 403, 403, 403, 200, 200],
    ),
    (
        "POST",
        "/v1/leases/{name}/renew",
        [401, 403, 403, 403, 403, 200, 200],
    ),
    (
        "POST",
        "/v1/leases/{name}/release",
        [401, 403, 403, 403, 403, 200, 200],
    ),
    (
        "GET",
        "/v1/leases/{name}",
        [401, 403, 403, 403, 403, 200, 200],
    ),
    (
        "GET",
        "/v1/leases/{name}/watch",
        [401, 403, 403, 403, 403, 200, 200],
    ),
    ("POST", "/v1/sessions", [200; 7]),
    ("POST", "/v1/keys", [401, 403, 403, 403, 403, 403, 200]),
    ("GET", "/v1/keys", [401, 403, 403, 403, 403, 403, 200]),
    (
        "DELETE",
        "/v1/keys/{key}",
        [401, 403, 403, 403, 403, 403, 200],
    ),
    (
        "POST",
        "/v1/webhook-endpoints",
        [401, 403, 403, 403, 403, 403, 200],
    ),
    (
        "GET",
        "/v1/webhook-endpoints",
        [401, 403, 403, 403, 403, 403, 200],
    ),
    (
        "GET",
        "/v1/webhook-endpoints/{endpoint}",
        [401, 403, 403, 403, 403, 403, 200],
    ),
    (
        "DELETE",
        "/v1/webhook-endpoints/{endpoint}",
        [401, 403, 403, 403, 403, 403, 200],
    ),
    (
        "POST",
        "/v1/webhook-endpoints/{endpoint}/rotate",
        [401, 403, 403, 403, 403, 403, 200],
    ),
    (
        "POST",
        "/v1/webhook-endpoints/{endpoint}/disable",
        [401, 403, 403, 403, 403, 403, 200],
    ),
    (
        "POST",
        "/v1/webhook-endpoints/{endpoint}/enable",
        [401, 403, 403, 403, 403, 403, 200],
    ),
    (
        "GET",
        "/v1/webhook-endpoints/{endpoint}/deliveries",
        [401, 403, 403, 403, 403, 403, 200],
    ),
    (
        "POST",
        "/v1/webhook-endpoints/{endpoint}/deliveries/{message}/resend",
        [401, 403, 403, 403, 403, 403, 200],
    ),
    ("GET", "/", [200; 7]),
    ("GET", "/assets/{*path}", [200; 7]),
    ("GET", "/problems/{code}", [200; 7]),
    ("GET", "/docs", [200; 7]),
    ("GET", "/docs/", [200; 7]),
    ("GET", "/docs/{*path}", [200; 7]),
    ("GET", "/llms.txt", [200; 7]),
    ("GET", "/openapi.json", [200; 7]),
    ("GET", "/healthz", [200; 7]),
    ("GET", "/readyz", [200; 7]),
    ("GET", "/metrics", [200; 7]),
];

/// The same while shoppers are not let in: a session opens no more than no key at all.
fn closed(path: &str, method: &str, open: [u16; 7]) -> [u16; 7] {
    let [keyless, _, _, read, sell, lease, admin] = open;
    if path == "/v1/sessions" {
        return [401, 401, 401, 403, 403, 403, 403];
    }
    if path == "/v1/webhooks/stripe" {
        return open;
    }
    let is_page = !path.starts_with("/v1/");
    let without_key = if is_page { keyless } else { 401 };
    assert!(is_page || keyless == 401 || method == "GET");
    [
        without_key,
        without_key,
        without_key,
        read,
        sell,
        lease,
        admin,
    ]
}

#[test]
fn every_route_stands_in_the_matrix() {
    let routes: BTreeSet<_> = route_table()
        .iter()
        .map(|route| (route.method, route.path))
        .collect();
    let judged: BTreeSet<_> = MATRIX
        .iter()
        .map(|(method, path, _)| (*method, *path))
        .collect();
    assert_eq!(routes, judged);
}

/// An app with what the paths of the matrix name, fresh for each request.
struct Stage {
    app: TestApp,
    tokens: [Option<String>; 7],
    hold: Held,
    booking: String,
    /// A webhook endpoint, and a message on its way to it.
    post: (String, String),
}

impl Stage {
    async fn set() -> Self {
        let app = TestApp::open().await.with_hall(3).await;
        let (a, b) = (app.shopper().await, app.shopper().await);
        let hold = held_by(&app, &a, "A-1").await;
        let sold = held_by(&app, &a, "A-3").await;
        let made = app
            .engine
            .add_endpoint("https://example.org/", Kinds::ALL, None);
        let endpoint = EndpointId::from_bytes(made.await.unwrap().stored.subject);
        let booking = app.booked_by(&a, &sold).await;
        let booking = booking["id"].as_str().unwrap().to_owned();
        let log = app.engine.deliveries(endpoint, None, 1).await;
        let message = log.unwrap().unwrap()[0].message.to_string();
        let tokens = [
            None,
            Some(a),
            Some(b),
            Some(app.read.clone()),
            Some(app.sell.clone()),
            Some(app.lease.clone()),
            Some(app.admin.clone()),
        ];
        Self {
            app,
            tokens,
            hold,
            booking,
            post: (endpoint.to_string(), message),
        }
    }

    async fn ask(&self, method: &str, template: &str, caller: usize) -> Answer {
        let key = self.app.engine.keys()[0].id.to_string();
        let path = template
            .replace("{event}", "hall")
            .replace("{hold}", &self.hold.id)
            .replace("{booking}", &self.booking)
            .replace("{unit}", "A-1")
            .replace("{key}", &key)
            .replace("{endpoint}", &self.post.0)
            .replace("{message}", &self.post.1)
            .replace("{name}", "job")
            .replace("{code}", "hold-expired")
            .replace("/docs/{*path}", "/docs/docs.js")
            .replace("/assets/{*path}", "/assets/js/main.js");
        let method: Method = method.parse().unwrap();
        let mut ask = self.app.ask(method.clone(), &path).key("matrix");
        if let Some(token) = &self.tokens[caller] {
            ask = ask.by(token);
        }
        let holder = (caller > 2).then_some("a");
        let body = match (method.as_str(), template) {
            ("POST", "/v1/events") => crate::harness::hall("hall", 3),
            ("PATCH", "/v1/events/{event}") => json!({"policy": {}}),
            ("POST", "/v1/events/{event}/holds") => match holder {
                Some(holder) => json!({"holder": holder, "units": units(&["C-1"])}),
                None => json!({"units": units(&["C-1"])}),
            },
            ("POST", "/v1/events/{event}/sales") => {
                json!({"holder": "a", "units": units(&["C-1"])})
            }
            ("PATCH", "/v1/holds/{hold}") => json!({"add": units(&["A-2"])}),
            ("POST", "/v1/events/{event}/block" | "/v1/events/{event}/unblock") => {
                json!({"units": []})
            }
            ("POST", "/v1/leases/{name}/acquire") => json!({"owner": "a", "ttl_ms": 1_000}),
            ("POST", "/v1/leases/{name}/renew") => {
                json!({"owner": "a", "ttl_ms": 1_000, "token": "0000000000000001"})
            }
            ("POST", "/v1/leases/{name}/release") => {
                json!({"owner": "a", "token": "0000000000000001"})
            }
            ("POST", "/v1/keys") => json!({"name": "x", "scopes": ["read"]}),
            ("POST", "/v1/webhook-endpoints") => json!({"url": "https://example.org/"}),
            ("POST", _) => json!({}),
            _ => Value::Null,
        };
        if body != Value::Null {
            ask = ask.json(&body);
        }
        if template == "/v1/holds" || template == "/v1/bookings" {
            let query = if holder.is_some() {
                format!("{path}?holder=a")
            } else {
                path
            };
            *ask.request.uri_mut() = query.parse().unwrap();
        }
        if template.ends_with("/feed") || template.ends_with("/watch") {
            let (parts, _) = ask.start().await.into_parts();
            return Answer {
                status: parts.status,
                headers: parts.headers,
                body: axum::body::Bytes::new(),
            };
        }
        ask.send().await
    }
}

async fn held_by(app: &TestApp, token: &str, seat: &str) -> Held {
    let body = json!({"units": units(&[seat])});
    let held = app.hold(token, &body).await;
    Held::of(&held.expect(StatusCode::CREATED))
}

/// Whether a status is the one of the matrix, or any of those who were let in.
fn fits(wanted: u16, got: u16) -> bool {
    let let_in = ![401, 403, 404, 405, 500].contains(&got);
    if wanted < 400 { let_in } else { got == wanted }
}

/// Asks every route as every caller, on stages that `open` makes; `expected` gives a line of the matrix. A stage is
/// used again after a read or a refusal, so that what either changes fails a later line; after anything else the
/// next caller gets a fresh one.
async fn judge(open: impl AsyncFn() -> Stage, expected: fn(&str, &str, [u16; 7]) -> [u16; 7]) {
    let mut used = None;
    for (method, path, line) in MATRIX {
        let expected = expected(path, method, *line);
        for (at, caller) in CALLERS.iter().enumerate() {
            let stage = match used.take() {
                Some(stage) => stage,
                None => open().await,
            };
            let answer = stage.ask(method, path, at).await;
            let (wanted, got) = (expected[at], answer.status.as_u16());
            assert!(
                fits(wanted, got),
                "{method} {path} by {caller}: {got}, not {wanted}: {}",
                answer.text()
            );
            if *method == "GET" || got >= 400 {
                used = Some(stage);
            }
        }
    }
}

async fn every_route_with_every_caller() {
    judge(Stage::set, |_, _, line| line).await;
}

async fn every_route_with_every_caller_while_shoppers_are_not_let_in() {
    let open = async || {
        let mut stage = Stage::set().await;
        let (settings, shutdown) = (ServerSettings::default(), stage.app.shutdown.clone());
        let engine = stage.app.engine.clone();
        stage.app.router =
            soldonce_server::routers(engine, settings, AdminRoutes::Public, shutdown).public;
        stage
    };
    judge(open, closed).await;
}

/// What is done to a foreign hold or booking, and what a missing one answers.
const FOREIGN: [(&str, &str, &str); 8] = [
    ("GET", "/v1/holds/{}", "hold_not_found"),
    ("PATCH", "/v1/holds/{}", "hold_not_found"),
    ("DELETE", "/v1/holds/{}", "hold_not_found"),
    ("DELETE", "/v1/holds/{}?fence=1", "hold_not_found"),
    ("POST", "/v1/holds/{}/extend", "hold_not_found"),
    ("POST", "/v1/holds/{}/confirm", "hold_not_found"),
    ("GET", "/v1/bookings/{}", "booking_not_found"),
    ("POST", "/v1/bookings/{}/cancel", "booking_not_found"),
];

async fn a_foreign_thing_answers_like_a_missing_one() {
    let app = TestApp::open().await.with_hall(1).await;
    let (a, b) = (app.shopper().await, app.shopper().await);
    let held = held_by(&app, &a, "A-1").await;
    let sold = held_by(&app, &a, "A-3").await;
    let booked = app.booked_by(&a, &sold).await;
    let booking = booked["id"].as_str().unwrap();
    let ask = async |method: &str, path: &str, token: &str| {
        let body = match method {
            "PATCH" => json!({"add": units(&["A-2"])}),
            _ => json!({}),
        };
        // The key with which the owner confirmed: another caller's is another key.
        let ask = app.ask(method.parse().unwrap(), path);
        let ask = ask.by(token).key(&sold.id);
        match method {
            "POST" | "PATCH" => ask.json(&body).send().await,
            _ => ask.send().await,
        }
    };
    let nothing = "0".repeat(26);
    for (method, template, code) in FOREIGN {
        let (foreign, never) = match code {
            "hold_not_found" => (held.id.as_str(), format!("hld_{nothing}")),
            _ => (booking, format!("bkg_{nothing}")),
        };
        let mut told = BTreeSet::new();
        for id in [foreign, &never, "x", "hld_%00", &"x".repeat(80)] {
            for token in [&b, &app.sell] {
                let answer = ask(method, &template.replace("{}", id), token).await;
                told.insert(answer.text());
                answer.refused(404, code);
            }
        }
        assert_eq!(told.len(), 1, "{method} {template}: {told:?}");
    }
    let still = app.get(&held.path()).by(&a).send().await;
    let still = still.expect(StatusCode::OK).json();
    assert_eq!(
        (&still["state"], &still["fence"]),
        (&json!("active"), &json!(1))
    );
}

/// Not even by what is wrong with the lines that are named.
async fn a_foreign_booking_is_exchanged_like_a_missing_one() {
    let app = TestApp::open().await.with_hall(1).await;
    let (a, b) = (app.shopper().await, app.shopper().await);
    let sold = held_by(&app, &a, "A-1").await;
    let booked = app.booked_by(&a, &sold).await;
    let own = held_by(&app, &b, "A-2").await;
    let never = json!(format!("bkg_{}", "0".repeat(26)));
    let mut told = BTreeSet::new();
    for booking in [&booked["id"], &never] {
        for release in [json!({"seat": "A-1"}), json!({"seat": "Z-99"})] {
            let body = json!({"booking": booking, "release": [release], "hold": own.id});
            for secret in [None, Some(own.secret.as_str())] {
                let ask = app.post("/v1/exchanges").by(&b).key("x").json(&body);
                let ask = match secret {
                    Some(secret) => ask.secret(secret),
                    None => ask,
                };
                let answer = ask.send().await;
                told.insert(answer.text());
                answer.refused(404, "booking_not_found");
            }
        }
    }
    assert_eq!(told.len(), 1, "{told:?}");
}

/// A caller with the secret of one hold does not change other bookings of that holder.
async fn the_secret_of_a_hold_exchanges_no_other_booking_of_its_holder() {
    let app = TestApp::open().await.with_hall(1).await;
    let sold = app.held("ann", &["A-1"]).await;
    let booked = app.booked(&sold).await;
    let other = app.held("ann", &["A-2"]).await;
    let body = json!({"booking": booked["id"], "release": [{"seat": "A-1"}], "hold": other.id});
    let stranger = app
        .engine
        .create_key(Text::parse("b").unwrap(), vec![Scope::Sell]);
    let stranger = stranger.await.unwrap().1;
    let ask = |by: &str, key: &str| {
        let ask = app.post("/v1/exchanges").by(by).key(key).json(&body);
        ask.secret(&other.secret)
    };
    for by in [&stranger, &app.shopper().await] {
        let bare = ask(by, "x").send().await;
        bare.refused(404, "booking_not_found");
        for wrong in [&other.secret, "", "hs_"] {
            let wrong = ask(by, "x").header("booking-secret", wrong).send().await;
            wrong.refused(404, "booking_not_found");
        }
    }
    // With both proofs the stranger may.
    let both = ask(&stranger, "y").header("booking-secret", &sold.secret);
    let swapped = both.send().await.expect(StatusCode::OK).json();
    assert_eq!(swapped["lines"][0]["seat"], "A-2");
}

async fn a_bearer_of_the_secret_may_act_and_a_wrong_one_opens_nothing() {
    let app = TestApp::open().await.with_hall(1).await;
    let (a, b) = (app.shopper().await, app.shopper().await);
    let held = held_by(&app, &a, "A-1").await;
    let other = held_by(&app, &b, "A-2").await;
    let read = async |token: &str, secret: &str| {
        app.get(&held.path()).by(token).secret(secret).send().await
    };
    read(&b, &held.secret).await.expect(StatusCode::OK);
    read(&app.sell, &held.secret).await.expect(StatusCode::OK);
    // A secret that is sent must be right: for its maker and for staff too.
    for token in [&a, &b, &app.sell, &app.admin] {
        for wrong in [
            other.secret.as_str(),
            "",
            "hs_",
            "1",
            &held.secret.to_uppercase(),
            "\u{e9}",
        ] {
            read(token, wrong).await.refused(404, "hold_not_found");
        }
    }
    let confirm = app
        .post(&format!("{}/confirm", held.path()))
        .by(&b)
        .key("k")
        .secret(&held.secret);
    let booked = confirm.send().await.expect(StatusCode::CREATED).json();
    let booking = format!("/v1/bookings/{}", booked["id"].as_str().unwrap());
    app.get(&booking)
        .by(&b)
        .send()
        .await
        .refused(404, "booking_not_found");
    app.get(&booking)
        .by(&b)
        .secret(&other.secret)
        .send()
        .await
        .refused(404, "booking_not_found");
    app.get(&booking)
        .by(&b)
        .secret(&held.secret)
        .send()
        .await
        .expect(StatusCode::OK);
    app.get(&booking).by(&a).send().await.expect(StatusCode::OK);
}

async fn holders_are_scoped_by_caller() {
    let app = TestApp::open().await.with_hall(1).await;
    let body = json!({"holder": "user-42", "units": units(&["A-1"])});
    let ask = async |token: &str| app.hold(token, &body).await;
    ask(&app.sell).await.expect(StatusCode::CREATED);
    let problem = ask(&app.admin).await.refused(409, "unit_unavailable");
    assert_eq!(problem["conflicts"][0]["state"], "held");
    let listed = app
        .get("/v1/holds?holder=user-42")
        .by(&app.admin)
        .send()
        .await
        .json();
    assert_eq!(listed["holds"], json!([]));
}

async fn wrong_credentials_are_refused_where_none_are_needed() {
    let app = TestApp::open().await.with_hall(1).await;
    let shopper = app.shopper().await;
    let forged = shopper.replace(".1", ".2");
    for value in [
        "Bearer",
        "Bearer ",
        "Basic abc",
        "Bearer sk_0",
        &format!("Bearer {forged}"),
        "\u{e9}",
    ] {
        let ask = || app.get("/v1/events").header("authorization", value);
        let problem = ask().send().await.refused(401, "unauthenticated");
        let answer = ask().over_http().send().await;
        assert_eq!(answer.header("www-authenticate"), "Bearer");
        assert!(!problem.to_string().contains("sk_0"));
    }
    // A browser sends the cookie of a session that is over: it may look, and open a new one.
    let stale = "soldonce_session=ses_0";
    app.get("/v1/events")
        .header("cookie", stale)
        .send()
        .await
        .expect(StatusCode::OK);
    app.get("/v1/holds")
        .header("cookie", stale)
        .send()
        .await
        .refused(401, "unauthenticated");
    app.post("/v1/sessions")
        .header("cookie", stale)
        .send()
        .await
        .expect(StatusCode::CREATED);
}

crate::variant::run_over! {
    [over_http, over_grpc, on_postgres, over_grpc_on_postgres], workers: 0, {
        every_route_with_every_caller,
        every_route_with_every_caller_while_shoppers_are_not_let_in,
        a_foreign_thing_answers_like_a_missing_one,
        a_foreign_booking_is_exchanged_like_a_missing_one,
        the_secret_of_a_hold_exchanges_no_other_booking_of_its_holder,
        a_bearer_of_the_secret_may_act_and_a_wrong_one_opens_nothing,
        holders_are_scoped_by_caller,
        wrong_credentials_are_refused_where_none_are_needed,
    }
}
