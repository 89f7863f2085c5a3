//! The test payments of a demo: their routes exist only where these are set, and for buyers only.

use std::sync::{Arc, Mutex};

use axum::http::StatusCode;
use serde_json::json;
use soldonce_server::{
    Access, BankAnswer, CardAnswer, ServerSettings, ShownCard, TestIntent, TestPaymentFuture,
    TestPaymentRefusal, TestPayments, route_table,
};
use soldonce_testkit::log;

use crate::frames::{self, Client, END_HEADERS, END_STREAM_AND_HEADERS, HEADERS};
use crate::harness::TestApp;
use crate::served::{ask, ask_on, get, served_with};

const CHARGE: &str = "/demo/payments/pi_1";
const ANSWER: &str = "/demo/payments/pi_1/answer";

/// Writes down what it is asked; knows one payment and one card.
#[derive(Debug, Default)]
struct Recorder(Mutex<Vec<String>>);

impl Recorder {
    fn note(&self, of: TestIntent<'_>, what: &str) -> Result<(), TestPaymentRefusal> {
        if of.intent != "pi_1" || of.client_secret != "sesame" {
            return Err(TestPaymentRefusal::Unknown);
        }
        self.0.lock().unwrap().push(what.to_owned());
        Ok(())
    }
}

impl TestPayments for Recorder {
    fn cards(&self) -> &[ShownCard] {
        &[ShownCard {
            card: "good",
            name: "Card that works",
            about: "Says yes.",
        }]
    }

    fn charge<'a>(
        &'a self,
        of: TestIntent<'a>,
        card: &'a str,
    ) -> TestPaymentFuture<'a, CardAnswer> {
        Box::pin(async move {
            self.note(of, card)?;
            assert_ne!(card, "panics", "on purpose");
            match card {
                "good" => Ok(CardAnswer::Taken),
                "declined" => Ok(CardAnswer::Declined),
                _ => Err(TestPaymentRefusal::Card),
            }
        })
    }

    fn answer<'a>(&'a self, of: TestIntent<'a>, answer: BankAnswer) -> TestPaymentFuture<'a> {
        Box::pin(async move {
            self.note(of, &format!("{answer:?}"))?;
            Err(TestPaymentRefusal::State)
        })
    }
}

async fn demo(payments: &Arc<Recorder>) -> TestApp {
    let payments = Arc::clone(payments);
    TestApp::open_with(|settings| settings.test_payments = Some(payments)).await
}

#[tokio::test]
async fn a_shop_has_no_desk() {
    let app = TestApp::open().await;
    let body = json!({"client_secret": "sesame", "card": "good"});
    for path in [CHARGE, ANSWER] {
        let asked = app.post(path).by(&app.sell).json(&body).send().await;
        asked.refused(404, "not_found");
    }
    assert!(
        route_table()
            .iter()
            .all(|route| !route.path.contains("demo"))
    );
    let told = app.get("/v1/payments").send().await.expect(StatusCode::OK);
    assert_eq!(told.json()["provider"], json!(null));
    assert_eq!(told.json()["demo_cards"], json!([]));
}

#[tokio::test]
async fn the_desk_is_for_buyers_who_have_the_secret() {
    let payments = Arc::new(Recorder::default());
    let app = demo(&payments).await;
    let told = app.get("/v1/payments").send().await.expect(StatusCode::OK);
    assert_eq!(told.json()["demo_cards"][0]["card"], "good");
    let body = json!({"client_secret": "sesame", "card": "good"});
    let stranger = app.post(CHARGE).json(&body).send().await;
    stranger.refused(401, "unauthenticated");
    let wrong = json!({"client_secret": "guess", "card": "good"});
    let guessed = app.post(CHARGE).by(&app.sell).json(&wrong).send().await;
    guessed.refused(404, "not_found");
    let other = app.post("/demo/payments/pi_2").by(&app.sell).json(&body);
    other.send().await.refused(404, "not_found");
    let none = json!({"client_secret": "sesame", "card": "gold"});
    let none = app.post(CHARGE).by(&app.sell).json(&none).send().await;
    none.refused(400, "invalid_request");
    let paid = app.post(CHARGE).by(&app.sell).json(&body).send().await;
    assert_eq!(paid.expect(StatusCode::OK).json(), json!({"taken": true}));
    let bad = json!({"client_secret": "sesame", "card": "declined"});
    let declined = app.post(CHARGE).by(&app.sell).json(&bad).send().await;
    let declined = declined.expect(StatusCode::OK);
    assert_eq!(declined.json(), json!({"taken": false}));
    let no = json!({"client_secret": "sesame", "ok": false});
    let late = app.post(ANSWER).by(&app.sell).json(&no).send().await;
    late.refused(409, "payment_refused");
    assert_eq!(
        *payments.0.lock().unwrap(),
        ["gold", "good", "declined", "No"]
    );
}

#[tokio::test]
async fn a_handler_that_panics_is_a_problem_a_line_and_a_count() {
    let settings = ServerSettings {
        shoppers: Access::Open,
        test_payments: Some(Arc::new(Recorder::default())),
        ..ServerSettings::default()
    };
    let served = served_with(settings).await;
    log::capture();
    let body = r#"{"client_secret": "sesame", "card": "panics"}"#;
    let bearer = format!("Bearer {}", served.key);
    let request = format!(
        "POST {CHARGE} HTTP/1.1\r\nhost: here\r\nauthorization: {bearer}\r\nrequest-id: over-1\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let (mut stream, answer) = ask(served.public, &request, "internal_error").await;
    assert!(answer.starts_with("HTTP/1.1 500 "), "{answer}");
    assert!(answer.contains("application/problem+json"), "{answer}");
    let again = ask_on(&mut stream, &get("/readyz"), "ready").await;
    assert!(again.starts_with("HTTP/1.1 200 "), "{again}");

    let mut client = Client::connect(served.public, b"").await;
    let fields = [
        ("authorization", &*bearer),
        ("content-type", "application/json"),
        ("request-id", "over-2"),
    ];
    let asks = frames::head("POST", CHARGE, &fields);
    client.send(HEADERS, END_HEADERS, 1, &asks).await;
    client.send_body(1, body.as_bytes()).await;
    let problem = String::from_utf8(client.body_of(1).await).unwrap();
    assert!(problem.contains("internal_error"), "{problem}");
    let ready = frames::head("GET", "/readyz", &[]);
    client
        .send(HEADERS, END_STREAM_AND_HEADERS, 3, &ready)
        .await;
    assert!(!client.body_of(3).await.is_empty());

    for id in ["over-1", "over-2"] {
        let is_told = |line: &String| {
            line.starts_with("ERROR")
                && line.contains(id)
                && line.contains("/demo/payments/{intent}")
        };
        assert!(log::lines().iter().any(is_told), "{id}");
    }
    let counted = r#"route="POST /demo/payments/{intent}",status="500"} 2"#;
    ask(served.admin, &get("/metrics"), counted).await;
}
