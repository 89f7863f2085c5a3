//! The payment desk of a demo: its routes are there only where a desk is, and for buyers alone.

use std::sync::{Arc, Mutex};

use axum::http::StatusCode;
use serde_json::json;
use soldonce_server::{
    Access, AdminRoutes, BankAnswer, DeskCard, DeskFuture, DeskIntent, DeskRefusal, PaymentDesk,
    ServerSettings, route_table,
};

use crate::harness::{Store, TestApp};

const CHARGE: &str = "/demo/payments/pi_1";
const ANSWER: &str = "/demo/payments/pi_1/answer";

/// Writes down what it is asked; knows one payment and one card.
#[derive(Debug, Default)]
struct Desk(Mutex<Vec<String>>);

impl Desk {
    fn note(&self, of: DeskIntent<'_>, what: &str) -> Result<(), DeskRefusal> {
        if of.intent != "pi_1" || of.client_secret != "sesame" {
            return Err(DeskRefusal::Unknown);
        }
        self.0.lock().unwrap().push(what.to_owned());
        Ok(())
    }
}

impl PaymentDesk for Desk {
    fn cards(&self) -> &[DeskCard] {
        &[DeskCard {
            card: "good",
            name: "Card that works",
            about: "Says yes.",
        }]
    }

    fn charge<'a>(&'a self, of: DeskIntent<'a>, card: &'a str) -> DeskFuture<'a> {
        Box::pin(async move {
            self.note(of, card)?;
            if card == "good" {
                Ok(())
            } else {
                Err(DeskRefusal::Card)
            }
        })
    }

    fn answer<'a>(&'a self, of: DeskIntent<'a>, answer: BankAnswer) -> DeskFuture<'a> {
        Box::pin(async move {
            self.note(of, &format!("{answer:?}"))?;
            Err(DeskRefusal::State)
        })
    }
}

async fn demo(desk: &Arc<Desk>) -> TestApp {
    let settings = ServerSettings {
        shoppers: Access::Open,
        demo_desk: Some(Arc::clone(desk) as Arc<dyn PaymentDesk>),
        ..ServerSettings::default()
    };
    TestApp::start(Store::Memory, settings, AdminRoutes::Public).await
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
    let desk = Arc::new(Desk::default());
    let app = demo(&desk).await;
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
    paid.expect(StatusCode::OK);
    let no = json!({"client_secret": "sesame", "ok": false});
    let late = app.post(ANSWER).by(&app.sell).json(&no).send().await;
    late.refused(409, "payment_refused");
    assert_eq!(*desk.0.lock().unwrap(), ["gold", "good", "No"]);
}
