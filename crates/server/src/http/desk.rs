//! How bookings are paid here, and the payment desk of a demo.

use axum::http::StatusCode;
use serde::{Deserialize, Serialize};

use super::answer;
use super::asked::Asked;
use super::json::{self, Str};
use super::kinds;
use super::problem::{Handled, Problem};
use crate::desk::{BankAnswer, CardAnswer, DeskCard, DeskIntent, DeskRefusal};

#[derive(Serialize)]
struct PaymentsBody<'a> {
    provider: Option<&'a str>,
    free_sales: bool,
    demo_cards: Vec<CardBody>,
}

#[derive(Serialize)]
struct CardBody {
    card: &'static str,
    name: &'static str,
    about: &'static str,
}

/// `GET /v1/payments`
pub(super) async fn payments(asked: Asked) -> Handled {
    asked.query(&[])?;
    let app = &asked.app;
    let desk = app.settings.demo_desk.as_ref();
    let cards: &[DeskCard] = desk.map_or(&[], |desk| desk.cards());
    let card = |card: &DeskCard| CardBody {
        card: card.card,
        name: card.name,
        about: card.about,
    };
    let body = PaymentsBody {
        provider: app.engine.provider().map(|provider| provider.name()),
        free_sales: app.engine.gives_away(),
        demo_cards: cards.iter().map(card).collect(),
    };
    Ok(answer::object(app, StatusCode::OK, &body))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ChargeRequest<'a> {
    #[serde(borrow)]
    client_secret: Str<'a>,
    #[serde(borrow)]
    card: Str<'a>,
}

/// `POST /demo/payments/{intent}`, of a demo alone
pub(super) async fn charge(mut asked: Asked) -> Handled {
    let body = asked.json().await?;
    let request: ChargeRequest<'_> = json::parse(&body)?;
    let intent = asked.segment(2);
    let of = DeskIntent {
        intent: &intent,
        client_secret: &request.client_secret.0,
    };
    let desk = asked.app.settings.demo_desk.as_ref();
    let desk = desk.ok_or_else(|| Problem::new(&kinds::NOT_FOUND))?;
    match desk.charge(of, &request.card.0).await.map_err(refused)? {
        CardAnswer::Taken => Ok(taken()),
        CardAnswer::Declined => Ok(answer::json(StatusCode::OK, "{\"taken\":false}")),
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AnswerRequest<'a> {
    #[serde(borrow)]
    client_secret: Str<'a>,
    ok: bool,
}

/// `POST /demo/payments/{intent}/answer`, of a demo alone
pub(super) async fn bank_answer(mut asked: Asked) -> Handled {
    let body = asked.json().await?;
    let request: AnswerRequest<'_> = json::parse(&body)?;
    let intent = asked.segment(2);
    let of = DeskIntent {
        intent: &intent,
        client_secret: &request.client_secret.0,
    };
    let says = if request.ok {
        BankAnswer::Yes
    } else {
        BankAnswer::No
    };
    let desk = asked.app.settings.demo_desk.as_ref();
    let desk = desk.ok_or_else(|| Problem::new(&kinds::NOT_FOUND))?;
    desk.answer(of, says).await.map_err(refused)?;
    Ok(taken())
}

fn refused(refusal: DeskRefusal) -> Problem {
    match refusal {
        DeskRefusal::Unknown => Problem::new(&kinds::NOT_FOUND),
        DeskRefusal::Card => Problem::invalid("card", "there is no such test card"),
        DeskRefusal::State => Problem::detailed(
            &kinds::PAYMENT_REFUSED,
            "this payment waits for nothing now",
        ),
    }
}

fn taken() -> axum::response::Response {
    answer::json(StatusCode::OK, "{\"taken\":true}")
}
