//! Money: checkout, giving a payment up, sending money back, exchange.

use serde::Deserialize;
use soldonce_core::{Amount, Rejection};
use soldonce_engine::{EngineError, ExchangeAsk};

use utoipa::ToSchema;

use super::answer;
use super::asked::Asked;
use super::json::{self, Str};
use super::problem::{Handled, Problem};
use super::units::{self, OwnUnitRequest};

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CheckoutRequest<'a> {
    #[serde(borrow)]
    #[schema(value_type = Option<String>)]
    reference: Option<Str<'a>>,
    /// Where the buyer goes after a page of the bank. Stripe is told by the buyer's browser.
    #[serde(borrow)]
    #[schema(value_type = Option<String>)]
    return_url: Option<Str<'a>>,
    fence: Option<u64>,
}

/// `POST /v1/holds/{hold}/checkout`
pub(super) async fn checkout(mut asked: Asked) -> Handled {
    let hold = asked.hold_id()?;
    let body = asked.json_or_nothing().await?;
    let request: CheckoutRequest<'_> = json::parse(&body)?;
    let reference = json::text("reference", request.reference.as_ref())?;
    json::text("return_url", request.return_url.as_ref())?;
    let fence = json::fence(request.fence);
    let call = asked.keyed_call(&[&hold.to_string()], &body)?;
    let engine = &asked.app.engine;
    let reply = engine.checkout(&call, hold, fence, reference).await?;
    Ok(answer::reply(&asked.app, &reply))
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AbandonRequest {
    fence: Option<u64>,
}

/// `POST /v1/holds/{hold}/abandon`
pub(super) async fn abandon(mut asked: Asked) -> Handled {
    let hold = asked.hold_id()?;
    let body = asked.json_or_nothing().await?;
    let request: AbandonRequest = json::parse(&body)?;
    let call = asked.call()?;
    let fence = json::fence(request.fence);
    let reply = asked.app.engine.abandon(&call, hold, fence).await?;
    Ok(answer::reply(&asked.app, &reply))
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RefundRequest {
    /// In minor units of the event's currency.
    amount: i64,
}

/// `POST /v1/bookings/{booking}/refunds`
pub(super) async fn refund(mut asked: Asked) -> Handled {
    let booking = asked.booking_id()?;
    let body = asked.json().await?;
    let request: RefundRequest = json::parse(&body)?;
    let amount = Amount::from_minor(request.amount);
    let call = asked.keyed_call(&[&booking.to_string()], &body)?;
    let reply = asked.app.engine.refund(&call, booking, amount).await?;
    Ok(answer::reply(&asked.app, &reply))
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ExchangeRequest<'a> {
    /// Whose lines.
    #[serde(borrow)]
    #[schema(value_type = String)]
    booking: Str<'a>,
    /// Lines to give back.
    #[serde(borrow)]
    release: Vec<OwnUnitRequest<'a>>,
    /// The hold with the new units.
    #[serde(borrow)]
    #[schema(value_type = String)]
    hold: Str<'a>,
    fence: Option<u64>,
}

/// `POST /v1/exchanges`
pub(super) async fn exchange(mut asked: Asked) -> Handled {
    let body = asked.json().await?;
    let request: ExchangeRequest<'_> = json::parse(&body)?;
    let booking = request.booking.0.parse();
    let booking = booking.map_err(|_| Problem::from(Rejection::BookingNotFound))?;
    let hold = request.hold.0.parse();
    let hold = hold.map_err(|_| Problem::from(Rejection::HoldNotFound))?;
    let ask = ExchangeAsk {
        booking,
        release: units::owned("release", request.release)?,
        hold,
        fence: json::fence(request.fence),
    };
    let call = asked.keyed_call(&[], &body)?;
    let engine = &asked.app.engine;
    match engine.exchange(&call, ask).await {
        Ok(reply) => Ok(answer::reply(&asked.app, &reply)),
        Err(error @ EngineError::Rejected(Rejection::AlreadyCancelled(_))) => {
            let event = engine.event_of_booking(booking).await;
            Err(Problem::of(
                &error,
                event.as_ref().map(|event| &*event.chart),
            ))
        }
        Err(error) => Err(error.into()),
    }
}
