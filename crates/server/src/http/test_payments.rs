//! How bookings are paid here, and the test payments of a demo.

use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::api_request::ApiRequest;
use super::json::{self, Str};
use super::operation::{Tag, get};
use super::problem::{Handled, Problem};
use super::route::Admission::{Buy, Look};
use super::route::{Route, Verb};
use super::table::Table;
use super::{answer, kinds, response};
use crate::test_payments::{
    BankAnswer, CardAnswer, ShownCard, TestIntent, TestPaymentRefusal, TestPayments,
};

pub(super) fn routes(table: &mut Table) {
    table.tag(Tag::Bookings);
    table.add(
        get("/v1/payments", Look)
            .id("read_payments")
            .summary("How bookings are paid here")
            .gives::<PaymentsBody<'_>>(200, "Who takes the money, if a provider does"),
        payments,
    );
}

/// Adds the routes of a demo, which a shop never has: they are no part of the API.
pub(super) fn demo_routes(table: &mut Table) {
    let route = |path| Route {
        needs_body: true,
        ..Route::new(Verb::Post, path, Buy)
    };
    table.push(route("/demo/payments/{intent}"), charge);
    table.push(route("/demo/payments/{intent}/answer"), bank_answer);
}

/// How bookings are paid here.
#[derive(Serialize, ToSchema)]
#[schema(as = Payments)]
struct PaymentsBody<'a> {
    /// The payment provider. Without one holds are confirmed; with one what costs something goes through
    /// checkout.
    provider: Option<&'a str>,
    /// Whether a session may confirm what costs something. Without a provider, and when this is false, it
    /// confirms only what costs nothing, and the shop sells the rest with its key.
    free_sales: bool,
    /// What the page of a demo pays with; a shop has none.
    demo_cards: &'a [ShownCard],
}

async fn payments(req: ApiRequest) -> Handled {
    req.query()?;
    let app = &req.app;
    let payments = app.settings.test_payments.as_ref();
    let body = PaymentsBody {
        provider: app.engine.provider().map(|provider| provider.name()),
        free_sales: app.engine.gives_away(),
        demo_cards: payments.map_or(&[], |payments| payments.cards()),
    };
    Ok(answer::object(app, StatusCode::OK, &body))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ChargeRequest<'a> {
    #[serde(borrow)]
    client_secret: Str<'a>,
    card: Str<'a>,
}

/// Answers `POST /demo/payments/{intent}`, of a demo alone: charges a test card.
async fn charge(mut req: ApiRequest) -> Handled {
    let body = req.json().await?;
    let request: ChargeRequest<'_> = json::parse(&body)?;
    let intent = req.segment(2);
    let of = TestIntent {
        intent: &intent,
        client_secret: &request.client_secret.0,
    };
    let charged = provider(&req)?.charge(of, &request.card.0).await;
    match charged.map_err(refused)? {
        CardAnswer::Taken => Ok(taken()),
        CardAnswer::Declined => Ok(response::json(StatusCode::OK, "{\"taken\":false}")),
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AnswerRequest<'a> {
    #[serde(borrow)]
    client_secret: Str<'a>,
    ok: bool,
}

/// Answers `POST /demo/payments/{intent}/answer`, of a demo alone: passes the bank's answer on.
async fn bank_answer(mut req: ApiRequest) -> Handled {
    let body = req.json().await?;
    let request: AnswerRequest<'_> = json::parse(&body)?;
    let intent = req.segment(2);
    let of = TestIntent {
        intent: &intent,
        client_secret: &request.client_secret.0,
    };
    let says = if request.ok {
        BankAnswer::Yes
    } else {
        BankAnswer::No
    };
    provider(&req)?.answer(of, says).await.map_err(refused)?;
    Ok(taken())
}

fn provider(req: &ApiRequest) -> Result<&dyn TestPayments, Problem> {
    let payments = req.app.settings.test_payments.as_deref();
    payments.ok_or_else(|| Problem::new(&kinds::NOT_FOUND))
}

fn refused(refusal: TestPaymentRefusal) -> Problem {
    match refusal {
        TestPaymentRefusal::Unknown => Problem::new(&kinds::NOT_FOUND),
        TestPaymentRefusal::Card => Problem::invalid("card", "there is no such test card"),
        TestPaymentRefusal::State => Problem::detailed(
            &kinds::PAYMENT_REFUSED,
            "this payment waits for nothing now",
        ),
    }
}

fn taken() -> axum::response::Response {
    response::json(StatusCode::OK, "{\"taken\":true}")
}
