//! What a request may be: media type, size, depth, time, method, path; one over each bound is refused
//! with the right words.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{Method, StatusCode};
use serde_json::{Value, json};
use soldonce_core::limits::UNITS_PER_STAFF_COMMAND_MAX;
use soldonce_server::limits::{
    BODY_BYTES_MAX, BODY_READ_MS_MAX, CHART_BODY_BYTES_MAX, UNITS_BODY_BYTES_MAX,
};

use crate::harness::{TestApp, hall, units};

const HOLDS: &str = "/v1/events/hall/holds";

#[tokio::test]
async fn a_body_is_json_and_says_so() {
    let app = TestApp::open().await.with_hall(1).await;
    let body = json!({"holder": "a", "units": units(&["A-1"])}).to_string();
    let ask = || app.post(HOLDS).by(&app.sell);
    for media in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "application/jsonx",
        "json",
        "",
    ] {
        let answer = ask().body(media, body.clone()).send().await;
        answer.refused(415, "unsupported_media_type");
    }
    ask().send().await.refused(415, "unsupported_media_type");
    let packed = ask()
        .body("application/json", body.clone())
        .header("content-encoding", "gzip");
    packed.send().await.refused(415, "unsupported_media_type");
    for media in [
        "application/json",
        "application/json; charset=utf-8",
        "Application/JSON",
    ] {
        let answer = ask().body(media, body.clone()).send().await;
        assert!(answer.status.is_success(), "{media}");
    }
}

#[tokio::test]
async fn a_wrong_body_is_refused_with_the_place() {
    let app = TestApp::open().await.with_hall(1).await;
    let deep = format!("{{\"units\":{}{}}}", "[".repeat(5_000), "]".repeat(5_000));
    let wrong = [
        ("", "at body (line 1, column 0): EOF"),
        ("{", "at body (line 1, column 1): EOF"),
        ("[]", "expected an object"),
        ("null", "expected an object"),
        ("{} {}", "trailing characters"),
        (
            r#"{"units":[{"seat":"A-1"}],"colour":1}"#,
            "at body.colour (line 1, column 34): unknown field `colour`",
        ),
        (
            r#"{"units":[{"seat":"A-1","x":1}]}"#,
            "at body.units[0].x (line 1, column 27): unknown field `x`, expected one of `seat`, `area`, `quantity`",
        ),
        (
            r#"{"units":[{"seat":1}]}"#,
            "at body.units[0].seat (line 1, column 19): invalid type: integer `1`, expected a string",
        ),
        (r#"{"units":[],"units":[]}"#, "duplicate field `units`"),
        (r#"{"ttl_ms":-1}"#, "at body.ttl_ms"),
        (r#"{"ttl_ms":1.5}"#, "at body.ttl_ms"),
        (
            r#"{"best":{"quantity":4294967296}}"#,
            "at body.best.quantity",
        ),
        (deep.as_str(), "at body.units"),
    ];
    for (body, detail) in wrong {
        let answer = app
            .post(HOLDS)
            .by(&app.sell)
            .body("application/json", body.to_owned())
            .send()
            .await;
        let problem = answer.refused(400, "invalid_request");
        let told = problem["detail"].as_str().unwrap();
        assert!(told.contains(detail), "{told}");
        assert!(told.len() < 1_000);
    }
    let query = app
        .post(&format!("{HOLDS}?dry_run=1"))
        .by(&app.sell)
        .json(&json!({}));
    query.send().await.refused(400, "invalid_request");
    let not_text = app
        .post(HOLDS)
        .by(&app.sell)
        .body("application/json", Bytes::from_static(b"\xff\xfe"));
    not_text.send().await.refused(400, "invalid_request");
}

#[tokio::test]
async fn a_body_has_a_size() {
    let app = TestApp::open().await.with_hall(1).await;
    let padded = |bytes: usize| {
        let body = json!({"holder": "a", "units": units(&["A-1"])}).to_string();
        format!("{body}{}", " ".repeat(bytes - body.len()))
    };
    let ask = |body: Body| app.post(HOLDS).by(&app.sell).body("application/json", body);
    ask(padded(BODY_BYTES_MAX).into())
        .send()
        .await
        .expect(StatusCode::CREATED);
    let problem = ask(padded(BODY_BYTES_MAX + 1).into())
        .send()
        .await
        .refused(413, "body_too_large");
    assert_eq!(problem["limit"], BODY_BYTES_MAX);
    let announced = ask(Body::empty())
        .header("content-length", "65537")
        .send()
        .await;
    announced.refused(413, "body_too_large");
    let pieces = (0..17).map(|_| Ok::<_, std::io::Error>(vec![b' '; 4_096]));
    let pieces = Body::from_stream(futures_util::stream::iter(pieces));
    ask(pieces).send().await.refused(413, "body_too_large");
    let broken = futures_util::stream::iter([Ok(vec![b'{']), Err(std::io::Error::other("gone"))]);
    ask(Body::from_stream(broken))
        .send()
        .await
        .refused(400, "invalid_request");
}

#[tokio::test]
async fn a_chart_has_a_size_of_its_own() {
    let app = TestApp::open().await;
    let body = hall("hall", 1).to_string();
    let ask = |body: String| {
        app.post("/v1/events")
            .by(&app.admin)
            .body("application/json", body)
    };
    let padded = format!("{body}{}", " ".repeat(CHART_BODY_BYTES_MAX - body.len()));
    ask(padded.clone()).send().await.expect(StatusCode::CREATED);
    ask(format!("{padded} "))
        .send()
        .await
        .refused(413, "body_too_large");
    app.post("/v1/keys")
        .by(&app.admin)
        .body("application/json", padded)
        .send()
        .await
        .refused(413, "body_too_large");
}

#[tokio::test]
async fn staff_may_name_as_many_units_as_a_command_may_have() {
    let app = TestApp::open().await;
    let seats = (1..=UNITS_PER_STAFF_COMMAND_MAX).map(|n| format!("Upper.circle-Row.12-Seat.{n}"));
    let seats: Vec<String> = seats.collect();
    let chart: Vec<_> = seats
        .iter()
        .map(|seat| json!({"seat": seat, "category": "Standard"}))
        .collect();
    let event = json!({
        "id": "hall", "name": "Hall", "currency": "EUR",
        "chart": {"format": "seats", "seats": chart}, "prices": {"Standard": 4500},
    });
    let ask = |path: &str, body: &Value| app.post(path).by(&app.admin).json(body);
    ask("/v1/events", &event)
        .send()
        .await
        .expect(StatusCode::CREATED);
    let all: Vec<_> = seats.iter().map(|seat| json!({"seat": seat})).collect();
    let path = "/v1/events/hall";
    for verb in ["block", "unblock"] {
        let body = json!({"units": all});
        ask(&format!("{path}/{verb}"), &body)
            .send()
            .await
            .expect(StatusCode::OK);
    }
    let sale = json!({"holder": "ann", "units": all});
    let sold = ask(&format!("{path}/sales"), &sale).header("idempotency-key", "all");
    let booking = sold.send().await.expect(StatusCode::CREATED);
    assert_eq!(
        booking.json()["lines"].as_array().map(Vec::len),
        Some(seats.len())
    );
    let padded = format!("{sale}{}", " ".repeat(UNITS_BODY_BYTES_MAX));
    let large = app
        .post(&format!("{path}/sales"))
        .by(&app.admin)
        .body("application/json", padded);
    large.send().await.refused(413, "body_too_large");
}

#[tokio::test]
async fn a_body_that_does_not_come_is_not_waited_for() {
    let app = TestApp::open().await.with_hall(1).await;
    let never = Body::from_stream(futures_util::stream::pending::<std::io::Result<Bytes>>());
    let ask = app
        .post(HOLDS)
        .by(&app.sell)
        .body("application/json", never);
    let (answer, ()) = tokio::join!(ask.send(), async {
        tokio::task::yield_now().await;
        app.clock.advance(Duration::from_millis(BODY_READ_MS_MAX));
    });
    assert_eq!(answer.header("connection"), "close");
    answer.refused(408, "request_timeout");
}

#[tokio::test]
async fn a_hold_has_at_most_64_units() {
    let app = TestApp::open().await;
    let mut event = hall("hall", 10);
    event["policy"] = json!({"units_per_hold_max": 64, "units_per_holder_max": 1000});
    app.create(&event).await.expect(StatusCode::CREATED);
    let ask = async |count: usize| {
        let seats: Vec<String> = (0..count)
            .map(|at| {
                format!(
                    "{}-{}",
                    char::from(b'A' + u8::try_from(at / 10).unwrap()),
                    at % 10 + 1
                )
            })
            .collect();
        let seats: Vec<&str> = seats.iter().map(String::as_str).collect();
        let body = json!({"holder": "a", "units": units(&seats)});
        app.post(HOLDS).by(&app.sell).json(&body).send().await
    };
    let problem = ask(65).await.refused(400, "too_many_units");
    assert_eq!(problem["limit"], 64);
    ask(64).await.expect(StatusCode::CREATED);
    event["id"] = json!("larger");
    event["policy"] = json!({"units_per_hold_max": 65});
    app.create(&event).await.refused(400, "invalid_request");
}

#[tokio::test]
async fn doubles_in_one_request_count_once() {
    let app = TestApp::open().await.with_hall(1).await;
    let body = json!({"holder": "a", "units": units(&["A-1", "A-1", "A-2"])});
    let held = app
        .post(HOLDS)
        .by(&app.sell)
        .json(&body)
        .send()
        .await
        .expect(StatusCode::CREATED);
    assert_eq!(held.json()["units"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn odd_ids_are_refused_everywhere() {
    let app = TestApp::open().await.with_hall(1).await;
    let long = "x".repeat(65);
    for odd in [
        "",
        " ",
        "A 1",
        "A-1\r\n",
        "A-1\0",
        "{A-1}",
        "A-1'; DROP TABLE units; --",
        "\u{ff21}-1",
        "A\u{2010}1",
        "ａ",
        &long,
    ] {
        let seat = json!({"holder": "a", "units": units(&[odd])});
        let answer = app.post(HOLDS).by(&app.sell).json(&seat).send().await;
        assert!(
            matches!(answer.status.as_u16(), 400 | 404),
            "{odd:?}: {}",
            answer.text()
        );
        let holder = json!({"holder": odd, "units": units(&["A-1"])});
        app.post(HOLDS)
            .by(&app.sell)
            .json(&holder)
            .send()
            .await
            .refused(400, "invalid_request");
        let event = hall(odd, 1);
        app.create(&event).await.refused(400, "invalid_request");
    }
}

#[tokio::test]
async fn what_is_not_there_is_told_apart_from_what_is_not_allowed() {
    let app = TestApp::open().await.with_hall(1).await;
    for path in [
        "/nope",
        "/v1",
        "/v1/events/",
        "/v1/events/hall/holds/",
        "/v2/events",
        "//",
        "/assets/../Cargo.toml",
        "/assets/",
        "/problems/none",
    ] {
        app.get(path).send().await.refused(404, "not_found");
    }
    for (method, path, allow) in [
        (Method::PUT, "/v1/events", "GET,HEAD,POST"),
        (Method::PUT, "/v1/events/hall", "GET,HEAD,PATCH,DELETE"),
        (Method::DELETE, HOLDS, "POST,GET,HEAD"),
        (Method::POST, "/healthz", "GET,HEAD"),
        (Method::OPTIONS, "/v1/events", "GET,HEAD,POST"),
    ] {
        let answer = app.ask(method, path).send().await;
        assert_eq!(answer.header("allow"), allow, "{path}");
        answer.refused(405, "method_not_allowed");
    }
    let head = app
        .ask(Method::HEAD, "/v1/events/hall")
        .send()
        .await
        .expect(StatusCode::OK);
    assert!(head.body.is_empty());
}
