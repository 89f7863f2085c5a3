//! Leases for programs in any language: acquire, renew, release, inspect; what is refused and what is not known.

use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use soldonce_core::Text;
use soldonce_engine::keys::Scope;
use soldonce_engine::rate::Quota;
use soldonce_lease::{Clock, Leases};
use soldonce_server::{LeasePlace, LeaseSettings, RateLimits, ServerSettings};

use crate::harness::{Answer, TestApp};

/// A ttl of ten seconds less its margin.
const TEN: u64 = 9_898;

async fn ask(app: &TestApp, by: &str, what: &str, body: &Value) -> Answer {
    let path = format!("/v1/leases/{what}");
    app.post(&path).by(by).json(body).send().await
}

async fn acquire(app: &TestApp, owner: &str) -> Answer {
    let body = json!({"owner": owner, "ttl_ms": 10_000});
    ask(app, &app.lease, "job/acquire", &body).await
}

async fn granted(app: &TestApp, owner: &str) -> Value {
    acquire(app, owner).await.expect(StatusCode::OK).json()
}

async fn inspected(app: &TestApp, path: &str) -> Value {
    let read = app.get(path).by(&app.lease).send().await;
    read.expect(StatusCode::OK).json()
}

async fn a_lease_is_acquired_renewed_and_released() {
    let app = TestApp::open().await;
    let first = granted(&app, "a").await;
    assert_eq!(
        (&first["name"], &first["owner"]),
        (&json!("job"), &json!("a"))
    );
    assert_eq!(first["token"].as_str().unwrap().len(), 16);
    assert_eq!(
        (&first["remaining_ms"], &first["waited_ms"]),
        (&json!(TEN), &json!(0))
    );
    assert_eq!(first["cap_remaining_ms"], 900_000);
    let held = inspected(&app, "/v1/leases/job").await;
    assert_eq!(
        (&held["held"], &held["token"]),
        (&json!(true), &first["token"])
    );
    assert!(!held.to_string().contains("owner"), "{held}");
    // The answer was lost, and is asked for again.
    app.clock.advance(Duration::from_secs(4));
    let again = granted(&app, "a").await;
    assert_eq!(
        (&again["token"], &again["remaining_ms"]),
        (&first["token"], &json!(TEN))
    );
    assert_eq!(again["cap_remaining_ms"], 896_000);
    let other = acquire(&app, "b").await.refused(409, "lease_held");
    assert_eq!(other["retry_after_ms"], 10_000);
    assert_eq!(other["conflicts"][0]["name"], "job");
    assert_eq!(other["advice"], "retry_after");

    let token = &first["token"];
    let renew = json!({"owner": "a", "token": token, "ttl_ms": 20_000});
    let renewed = ask(&app, &app.lease, "job/renew", &renew).await;
    assert_eq!(
        renewed.expect(StatusCode::OK).json()["remaining_ms"],
        19_798
    );
    for wrong in [
        json!({"owner": "b", "token": token, "ttl_ms": 20_000}),
        json!({"owner": "a", "token": "0000000000000009", "ttl_ms": 20_000}),
    ] {
        let lost = ask(&app, &app.lease, "job/renew", &wrong).await;
        let lost = lost.refused(409, "lease_lost");
        assert_eq!(
            (&lost["reason"], &lost["advice"]),
            (&json!("taken"), &json!("reacquire"))
        );
    }
    let release = json!({"owner": "a", "token": token});
    for released in [true, false] {
        let answer = ask(&app, &app.lease, "job/release", &release).await;
        assert_eq!(answer.expect(StatusCode::OK).json()["released"], released);
    }
    let lost = ask(&app, &app.lease, "job/renew", &renew).await;
    assert_eq!(lost.refused(409, "lease_lost")["reason"], "gone");
    assert_eq!(inspected(&app, "/v1/leases/job").await["held"], false);
    let second = granted(&app, "b").await;
    assert!(second["token"].as_str() > first["token"].as_str());
}

async fn a_pause_loses_the_lease_and_the_cap_ends_it() {
    let app = TestApp::open().await;
    let first = granted(&app, "a").await;
    app.clock.advance(Duration::from_secs(11));
    let body = json!({"owner": "b", "ttl_ms": 5_000, "cap_ms": 6_000});
    let second = ask(&app, &app.lease, "job/acquire", &body).await;
    let second = second.expect(StatusCode::OK).json();
    let late = json!({"owner": "a", "token": first["token"], "ttl_ms": 10_000});
    let late = ask(&app, &app.lease, "job/renew", &late).await;
    assert_eq!(late.refused(409, "lease_lost")["reason"], "taken");
    app.clock.advance(Duration::from_secs(4));
    let renew = json!({"owner": "b", "token": second["token"], "ttl_ms": 5_000});
    let cut = ask(&app, &app.lease, "job/renew", &renew).await;
    let left = cut.expect(StatusCode::OK).json()["remaining_ms"].as_u64();
    assert!(left <= Some(2_000), "{left:?}");
    app.clock.advance(Duration::from_secs(3));
    let over = ask(&app, &app.lease, "job/renew", &renew).await;
    over.refused(409, "lease_lost");
}

async fn several_names_are_leased_together_or_not_at_all() {
    let app = TestApp::open().await;
    let both = json!({"owner": "a", "ttl_ms": 10_000, "names": ["A-2", "A-1", "A-2"]});
    let first = ask(&app, &app.lease, "hall/acquire", &both).await;
    let first = first.expect(StatusCode::OK).json();
    assert_eq!(first["names"], json!(["A-1", "A-2"]));
    let more = json!({"owner": "b", "ttl_ms": 10_000, "names": ["A-2", "A-3"]});
    let refused = ask(&app, &app.lease, "hall/acquire", &more).await;
    let refused = refused.refused(409, "lease_held");
    assert_eq!(refused["conflicts"].as_array().unwrap().len(), 1);
    assert_eq!(refused["conflicts"][0]["name"], "A-2");
    let held =
        async |name: &str| inspected(&app, &format!("/v1/leases/{name}")).await["held"] == true;
    assert!(held("A-1?group=hall").await && !held("A-3?group=hall").await);
    assert!(!held("A-1").await && !held("hall").await, "other leases");
    // A part of them is another lease, and free.
    let part = json!({"owner": "a", "token": first["token"], "ttl_ms": 10_000, "names": ["A-1"]});
    let part = ask(&app, &app.lease, "hall/renew", &part).await;
    part.refused(409, "lease_lost");
    let all = json!({"owner": "a", "token": first["token"], "names": ["A-1", "A-2"]});
    let all = ask(&app, &app.lease, "hall/release", &all).await;
    assert_eq!(all.expect(StatusCode::OK).json()["released"], true);
    let again = ask(&app, &app.lease, "hall/acquire", &more).await;
    again.expect(StatusCode::OK);
}

async fn whoever_waits_gets_it_when_it_is_released() {
    let app = TestApp::open().await;
    let first = granted(&app, "a").await;
    let wait = json!({"owner": "b", "ttl_ms": 10_000, "wait_ms": 30_000});
    let waiting = ask(&app, &app.lease, "job/acquire", &wait);
    let releasing = async {
        // When the second look is answered, the acquire was refused and waits.
        for _ in 0..2 {
            inspected(&app, "/v1/leases/job").await;
        }
        app.clock.advance(Duration::from_secs(2));
        let release = json!({"owner": "a", "token": first["token"]});
        ask(&app, &app.lease, "job/release", &release).await
    };
    let (second, released) = tokio::join!(waiting, releasing);
    assert_eq!(released.json()["released"], true);
    let second = second.expect(StatusCode::OK).json();
    assert!(second["token"].as_str() > first["token"].as_str());
    assert_eq!(
        (&second["waited_ms"], &second["remaining_ms"]),
        (&json!(2_000), &json!(TEN))
    );
}

async fn a_server_that_stops_lets_nobody_wait() {
    let app = TestApp::open().await;
    granted(&app, "a").await;
    let wait = json!({"owner": "b", "ttl_ms": 10_000, "wait_ms": 30_000});
    let waiting = ask(&app, &app.lease, "job/acquire", &wait);
    let stopping = async { app.shutdown.cancel() };
    let (waited, ()) = tokio::join!(waiting, stopping);
    waited.refused(503, "outcome_unknown");
    let late = ask(&app, &app.lease, "job/acquire", &wait).await;
    late.refused(503, "shutting_down");
}

async fn owners_of_two_keys_are_never_the_same() {
    let app = TestApp::open().await;
    let name = Text::parse("other").unwrap();
    let (_, other) = app
        .engine
        .create_key(name, vec![Scope::Lease])
        .await
        .unwrap();
    app.keep_secret(&other);
    let first = granted(&app, "a").await;
    let body = json!({"owner": "a", "ttl_ms": 10_000});
    let theirs = ask(&app, &other, "job/acquire", &body).await;
    theirs.refused(409, "lease_held");
    let release = json!({"owner": "a", "token": first["token"]});
    let theirs = ask(&app, &other, "job/release", &release).await;
    assert_eq!(theirs.expect(StatusCode::OK).json()["released"], false);
    assert_eq!(inspected(&app, "/v1/leases/job").await["held"], true);
}

async fn a_floor_is_below_the_next_token() {
    let app = TestApp::open().await;
    let floor = json!({"owner": "a", "ttl_ms": 10_000, "floor": "0000000000000041"});
    let above = ask(&app, &app.lease, "job/acquire", &floor).await;
    let above = above.expect(StatusCode::OK).json();
    assert!(
        above["token"].as_str() > Some("0000000000000041"),
        "{above}"
    );
}

async fn what_is_no_lease_is_refused() {
    let app = TestApp::open().await;
    let legal = || json!({"owner": "a", "ttl_ms": 10_000});
    let long = "x".repeat(129);
    for name in ["a%2Fb", "a%20b", "%C3%A4", &long] {
        let what = format!("{name}/acquire");
        let refused = ask(&app, &app.lease, &what, &legal()).await;
        refused.refused(400, "invalid_request");
    }
    for (field, value) in [
        ("owner", json!("")),
        ("owner", json!("a b")),
        ("owner", json!("x".repeat(65))),
        ("ttl_ms", json!(999)),
        ("ttl_ms", json!(86_400_001)),
        ("wait_ms", json!(30_001)),
        ("cap_ms", json!(9_999)),
        ("cap_ms", json!(2_592_000_001_u64)),
        ("floor", json!("41")),
        ("names", json!(["a", "b/c"])),
        (
            "names",
            json!((0..65).map(|n| n.to_string()).collect::<Vec<_>>()),
        ),
    ] {
        let mut body = legal();
        body[field] = value;
        let refused = ask(&app, &app.lease, "job/acquire", &body).await;
        let refused = refused.refused(400, "invalid_request");
        assert_eq!(
            inspected(&app, "/v1/leases/job").await["held"],
            false,
            "{refused}"
        );
    }
    let empty = json!({"owner": "a", "ttl_ms": 10_000, "names": []});
    let empty = ask(&app, &app.lease, "job/acquire", &empty).await;
    empty.refused(400, "invalid_request");
}

async fn a_key_has_so_many_leases_and_asks_so_often() {
    let settings = ServerSettings {
        leases: LeaseSettings {
            live_max: Some(2),
            ..LeaseSettings::default()
        },
        rates: RateLimits {
            acquires: Quota::new(5, 60).ok(),
            ..RateLimits::off()
        },
        ..ServerSettings::default()
    };
    let app = TestApp::open_with(|of_server| *of_server = settings).await;
    let body = json!({"owner": "a", "ttl_ms": 10_000});
    let name = async |name: &str| ask(&app, &app.lease, &format!("{name}/acquire"), &body).await;
    let first = name("one").await.expect(StatusCode::OK).json();
    let second = name("two").await.expect(StatusCode::OK);
    assert_eq!(second.header("ratelimit"), "\"acquires\";r=3;t=24");
    // What releases nothing makes no room.
    let wrong = json!({"owner": "a", "token": "0000000000000001"});
    let wrong = ask(&app, &app.lease, "two/release", &wrong).await;
    assert_eq!(wrong.expect(StatusCode::OK).json()["released"], false);
    let third = name("three").await;
    assert_eq!(third.header("ratelimit-policy"), "\"leases\";q=2");
    let third = third.refused(429, "rate_limited");
    assert_eq!(third["retry_after_ms"], TEN);
    name("two").await.expect(StatusCode::OK);
    let release = json!({"owner": "a", "token": first["token"]});
    let released = ask(&app, &app.lease, "one/release", &release).await;
    released.expect(StatusCode::OK);
    name("three").await.expect(StatusCode::OK);
    let often = name("four").await.refused(429, "rate_limited");
    let detail = often["detail"].as_str().unwrap();
    assert!(detail.contains("asked for as many leases"), "{detail}");
    assert_eq!(
        inspected(&app, "/v1/leases/two").await["held"],
        true,
        "reads are no acquires"
    );
    let metrics = app.get("/metrics").send().await.text();
    assert!(metrics.contains("\nsoldonce_leases 2\n"), "{metrics}");
    for limit in ["leases", "acquires"] {
        let refused = format!("\nsoldonce_rate_limited_total{{limit=\"{limit}\"}} 1\n");
        assert!(metrics.contains(&refused), "{metrics}");
    }
}

/// Leases that cannot be reached.
#[derive(Debug)]
struct Away;

impl LeasePlace for Away {
    fn connect(&self, _: Arc<dyn Clock>) -> BoxFuture<'static, Result<Leases, String>> {
        Box::pin(async { Err("redis://:word@nowhere: refused".to_owned()) })
    }
}

async fn leases_that_cannot_be_reached_are_told_and_sales_go_on() {
    let place = Arc::new(Away);
    let settings = ServerSettings {
        leases: LeaseSettings {
            place,
            ..LeaseSettings::default()
        },
        ..ServerSettings::default()
    };
    let app = TestApp::open_with(|of_server| *of_server = settings).await;
    let app = app.with_hall(1).await;
    let away = acquire(&app, "a").await.refused(503, "leases_unavailable");
    assert!(!away.to_string().contains("nowhere"), "{away}");
    let read = app.get("/v1/leases/job").by(&app.lease).send().await;
    read.refused(503, "leases_unavailable");
    app.held("ann", &["A-1"]).await;
}

crate::variant::run_over! {
    [over_http, over_grpc], workers: 0, {
        a_lease_is_acquired_renewed_and_released,
        a_pause_loses_the_lease_and_the_cap_ends_it,
        several_names_are_leased_together_or_not_at_all,
        whoever_waits_gets_it_when_it_is_released,
        a_server_that_stops_lets_nobody_wait,
        owners_of_two_keys_are_never_the_same,
        a_floor_is_below_the_next_token,
        what_is_no_lease_is_refused,
        a_key_has_so_many_leases_and_asks_so_often,
        leases_that_cannot_be_reached_are_told_and_sales_go_on,
    }
}
