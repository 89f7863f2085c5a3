//! A shop that sells seats with Stripe Elements: its server holds a seat and begins payment, its page takes the card.
//! ```text
//! cargo run --example sell_with_stripe -- 127.0.0.1:3000 http://127.0.0.1:8080 sk_.. hamlet pk_test_..
//! ```
//! Soldonce runs with the secret key of the same Stripe account, see docs/payments.md.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::{error::Error, sync::Arc};

use axum::extract::{Path, State};
use axum::http::{Method, StatusCode};
use axum::response::Html;
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::{Value, json};
use soldonce_server::{Client, ClientError, Response};

const USAGE: &str = "usage: sell_with_stripe ADDRESS SOLDONCE SELL_KEY EVENT PUBLISHABLE_KEY";

struct Shop {
    soldonce: Client,
    event: String,
    publishable_key: String,
}

#[derive(Deserialize)]
struct Wanted {
    seat: String,
    buyer: String, // in a real shop: from the session of the buyer
}

type Answer = Result<Json<Value>, (StatusCode, String)>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let mut next = || args.next().ok_or(USAGE);
    let (address, url, key) = (next()?, next()?, next()?);
    let (event, publishable_key) = (next()?, next()?);
    let soldonce = Client::new(&url, &key)?;
    let shop = Arc::new(Shop {
        soldonce,
        event,
        publishable_key,
    });
    let app = Router::new()
        .route("/", get(page))
        .route("/purchases", post(buy))
        .route("/purchases/{booking}", get(outcome))
        .with_state(shop);
    let listener = tokio::net::TcpListener::bind(address).await?;
    println!("http://{}", listener.local_addr()?);
    Ok(axum::serve(listener, app).await?)
}

async fn page(State(shop): State<Arc<Shop>>) -> Html<String> {
    Html(include_str!("sell_with_stripe.html").replace("PUBLISHABLE_KEY", &shop.publishable_key))
}

/// Holds the seat and begins payment. The page gets what it pays with, not the key of the shop.
async fn buy(State(shop): State<Arc<Shop>>, Json(wanted): Json<Wanted>) -> Answer {
    let wish = json!({"holder": wanted.buyer, "units": [{"seat": wanted.seat}]});
    let path = format!("/v1/events/{}/holds", shop.event);
    let hold = body(shop.soldonce.send(Method::POST, &path, Some(&wish)).await)?;
    let path = format!("/v1/holds/{}/checkout", text(&hold, "id"));
    // A double click names the same hold, and so gets the same payment.
    let begun = body(shop.soldonce.post_once(&path, &json!({}), &path).await)?;
    let client_secret = begun.pointer("/payment/client_secret");
    Ok(Json(
        json!({"booking": text(&begun, "id"), "client_secret": client_secret}),
    ))
}

/// Says what became of a purchase: the seat is sold when the notice of Stripe has come, not when the page says so.
async fn outcome(State(shop): State<Arc<Shop>>, Path(booking): Path<String>) -> Answer {
    let path = format!("/v1/bookings/{booking}");
    let found = body(shop.soldonce.send(Method::GET, &path, None).await)?;
    Ok(Json(json!({"state": text(&found, "state")})))
}

fn text<'a>(body: &'a Value, member: &str) -> &'a str {
    body.get(member).and_then(Value::as_str).unwrap_or_default()
}

/// Takes the body of a success; a refusal goes on to the page as it is.
fn body(answer: Result<Response, ClientError>) -> Result<Value, (StatusCode, String)> {
    answer.and_then(Response::into_success).map_err(|error| {
        let mut status = StatusCode::BAD_GATEWAY;
        if let ClientError::Problem(refused, ..) = &error {
            status = *refused;
        }
        (status, error.to_string())
    })
}
