//! Money: checkout, giving a payment up, sending money back, exchange.

use serde::Deserialize;
use soldonce_core::{Amount, BookingId, Rejection};
use soldonce_engine::{CheckoutAsk, EngineError, ExchangeAsk, GivenAsk};

use utoipa::ToSchema;

use super::App;
use super::answer;
use super::asked::Asked;
use super::hoarding::More;
use super::json::{self, Str, Whole};
use super::kinds;
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
    #[schema(value_type = Option<u64>)]
    fence: Option<Whole<u64>>,
    /// Lines to give back for it: then only the difference is paid.
    #[serde(borrow)]
    exchange: Option<GivenRequest<'a>>,
}

/// Lines of a booking that are given back when the hold is paid.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct GivenRequest<'a> {
    /// Whose lines.
    #[serde(borrow)]
    #[schema(value_type = String)]
    booking: Str<'a>,
    /// Which lines.
    #[serde(borrow)]
    release: Vec<OwnUnitRequest<'a>>,
}

/// `POST /v1/holds/{hold}/checkout`
pub(super) async fn checkout(mut asked: Asked) -> Handled {
    let hold = asked.hold_id()?;
    let body = asked.json_or_nothing().await?;
    let request: CheckoutRequest<'_> = json::parse(&body)?;
    let reference = json::text("reference", request.reference.as_ref())?;
    json::url("return_url", request.return_url.as_ref())?;
    let exchange = request.exchange;
    let exchange =
        exchange.map(|given| given_lines("exchange.release", &given.booking, given.release));
    let ask = CheckoutAsk {
        fence: json::fence(request.fence),
        reference,
        exchange: exchange.transpose()?,
    };
    let of = ask.exchange.as_ref().map(|given| given.booking);
    let call = asked.keyed_call(&[&hold.to_string()], &body)?;
    let admitted = asked.hoarder().admit_on(hold, More::Checkout).await?;
    // The payment may have begun although the provider does not answer.
    asked.hoarder().doubt(hold);
    match (asked.app.engine.checkout(&call, hold, ask).await, of) {
        (Ok(reply), _) => {
            let answer = answer::reply(&asked.app, &reply);
            Ok(admitted.settle(&asked.app, hold, answer))
        }
        (Err(error), Some(of)) => Err(about_lines(&asked.app, of, &error).await),
        (Err(error), None) => Err(error.into()),
    }
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AbandonRequest {
    #[schema(value_type = Option<u64>)]
    fence: Option<Whole<u64>>,
}

/// `POST /v1/holds/{hold}/abandon`
pub(super) async fn abandon(mut asked: Asked) -> Handled {
    let hold = asked.hold_id()?;
    let body = asked.json_or_nothing().await?;
    let request: AbandonRequest = json::parse(&body)?;
    let call = asked.call()?;
    let fence = json::fence(request.fence);
    let reply = asked.app.engine.abandon(&call, hold, fence).await?;
    asked.hoarder().doubt(hold);
    Ok(answer::reply(&asked.app, &reply))
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RefundRequest {
    /// In minor units of the event's currency.
    #[schema(value_type = i64)]
    amount: Whole<i64>,
}

/// `POST /v1/bookings/{booking}/refunds`
pub(super) async fn refund(mut asked: Asked) -> Handled {
    let booking = asked.booking_id()?;
    let body = asked.json().await?;
    let request: RefundRequest = json::parse(&body)?;
    let amount = Amount::from_minor(request.amount.0);
    let call = asked.keyed_call(&[&booking.to_string()], &body)?;
    match asked.app.engine.refund(&call, booking, amount).await {
        Ok(reply) => Ok(answer::reply(&asked.app, &reply)),
        Err(EngineError::Rejected(Rejection::BookingNotConfirmed)) => {
            Err(Problem::new(&kinds::NOTHING_PAID))
        }
        Err(error) => Err(error.into()),
    }
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
    #[schema(value_type = Option<u64>)]
    fence: Option<Whole<u64>>,
}

/// `POST /v1/exchanges`
pub(super) async fn exchange(mut asked: Asked) -> Handled {
    let body = asked.json().await?;
    let request: ExchangeRequest<'_> = json::parse(&body)?;
    let given = given_lines("release", &request.booking, request.release)?;
    let booking = given.booking;
    let hold = request.hold.0.parse();
    let hold = hold.map_err(|_| Problem::from(Rejection::HoldNotFound))?;
    let ask = ExchangeAsk {
        given,
        hold,
        fence: json::fence(request.fence),
    };
    let call = asked.keyed_call(&[], &body)?;
    match asked.app.engine.exchange(&call, ask).await {
        Ok(reply) => {
            asked.hoarder().ended(hold).await;
            Ok(answer::reply(&asked.app, &reply))
        }
        Err(EngineError::Rejected(Rejection::PaymentRequired)) => {
            let detail = "it costs more than what is given back: check the hold out with \
                          `exchange`, which takes the difference";
            Err(Problem::detailed(&kinds::PAYMENT_REQUIRED, detail))
        }
        Err(error) => Err(about_lines(&asked.app, booking, &error).await),
    }
}

/// `field` names the list of lines in refusals.
fn given_lines<'a>(
    field: &str,
    booking: &Str<'_>,
    release: Vec<OwnUnitRequest<'a>>,
) -> Result<GivenAsk<'a>, Problem> {
    let booking = booking.0.parse();
    if release.is_empty() {
        return Err(Problem::invalid(field, "name at least one"));
    }
    Ok(GivenAsk {
        booking: booking.map_err(|_| Problem::from(Rejection::BookingNotFound))?,
        release: units::owned(field, release)?,
    })
}

/// A refusal that may name lines of a booking.
async fn about_lines(app: &App, booking: BookingId, error: &EngineError) -> Problem {
    let EngineError::Rejected(Rejection::AlreadyCancelled(_) | Rejection::UnknownUnit(_)) = error
    else {
        return Problem::of(error, None);
    };
    let event = app.engine.event_of_booking(booking).await;
    units::refused_owned(error, event.as_ref().map(|event| &*event.chart), "booking")
}
