//! Money: checkout, giving a payment up, sending money back, exchange.

use bytes::Bytes;
use serde::Deserialize;
use soldonce_core::{Amount, HoldId, Rejection};
use soldonce_engine::{CheckoutAsk, EngineError, ExchangeAsk, GivenAsk};

use utoipa::ToSchema;

use super::address_holds::{AddressHolds, More};
use super::api_request::ApiRequest;
use super::json::{self, Str, Whole};
use super::operation::{BOOKING_SECRET, HOLD_SECRET, Keyed, Tag, post};
use super::problem::{Handled, Problem};
use super::refusals::{ENDED, NO_HOLD, NO_PAYMENT, NO_RETURN};
use super::route::Admission::{Admin, Buy};
use super::shapes::{Booking, Hold};
use super::table::Table;
use super::units::{self, OwnUnitRequest};
use super::{answer, kinds};

pub(super) fn routes(table: &mut Table) {
    table.tag(Tag::Bookings);
    table.add(
        post("/v1/holds/{hold}/checkout", Buy)
            .id("checkout_hold")
            .summary("Pins a hold and opens a payment for the buyer")
            .may_take::<CheckoutRequest<'_>>(
                r#"{"reference": "order-77", "return_url": "https://shop.example/paid"}"#,
            )
            .keyed(Keyed::Required)
            .headers(&[HOLD_SECRET, BOOKING_SECRET])
            .refuses(&[NO_HOLD, NO_RETURN, NO_PAYMENT])
            .gives::<Booking>(201, "The booking, which waits for its payment"),
        checkout,
    );
    table.tag(Tag::Holds);
    table.add(
        post("/v1/holds/{hold}/abandon", Buy)
            .id("abandon_checkout")
            .summary("Gives the payment of a hold up")
            .may_take::<AbandonRequest<'_>>(r#"{"booking": "bkg_01jdf8x0c8e6m7n2v4q5r9st0w"}"#)
            .headers(&[HOLD_SECRET])
            .refuses(&[ENDED, &[&kinds::STALE_FENCE]])
            .gives::<Hold>(200, "The hold"),
        abandon,
    );
    table.tag(Tag::Bookings);
    table.add(
        post("/v1/bookings/{booking}/refunds", Admin)
            .id("refund_booking")
            .summary("Sends money of a booking back that keeps its units")
            .takes::<RefundRequest>(r#"{"amount": 500}"#)
            .keyed(Keyed::Required)
            .refuses(&[&[&kinds::NOTHING_PAID]])
            .gives::<Booking>(200, "The booking"),
        refund,
    );
    table.add(
        post("/v1/exchanges", Buy)
            .id("exchange_units")
            .summary(
                "Swaps lines of a booking for the units of a hold that cost no more; what costs \
                 more is a checkout with `exchange`",
            )
            .takes::<ExchangeRequest<'_>>(
                r#"{"booking": "bkg_01jdf8x0c8e6m7n2v4q5r9st0w", "release": [{"seat": "A-2"}],
                    "hold": "hld_01jdf8x0c8e6m7n2v4q5r9st0x"}"#,
            )
            .keyed(Keyed::Required)
            .headers(&[HOLD_SECRET, BOOKING_SECRET])
            .refuses(&[NO_HOLD, NO_RETURN, &[&kinds::PAYMENT_REQUIRED]])
            .gives::<Booking>(200, "The booking"),
        exchange,
    );
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct CheckoutRequest<'a> {
    #[serde(borrow)]
    #[schema(value_type = Option<String>)]
    reference: Option<Str<'a>>,
    /// Where the buyer goes after a page of the bank. Stripe is told by the buyer's browser.
    #[schema(value_type = Option<String>)]
    return_url: Option<Str<'a>>,
    #[schema(value_type = Option<u64>)]
    fence: Option<Whole<u64>>,
    /// Lines to give back for it: then only the difference is paid.
    exchange: Option<GivenRequest<'a>>,
}

/// Lines of a booking that are given back when the hold is paid.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "a booking and what it gives back")]
struct GivenRequest<'a> {
    /// Whose lines.
    #[serde(borrow)]
    #[schema(value_type = String)]
    booking: Str<'a>,
    /// Which lines.
    release: Vec<OwnUnitRequest<'a>>,
}

async fn checkout(mut req: ApiRequest) -> Handled {
    let hold = req.hold_id()?;
    let body = req.json().await?;
    let counted = req.held_by_address();
    counted
        .run_to_its_end(|counted| pay(req, counted, hold, body))
        .await
}

async fn pay(req: ApiRequest, counted: AddressHolds, hold: HoldId, body: Bytes) -> Handled {
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
    let call = req.keyed_call(&[&hold.to_string()], &body)?;
    let admitted = counted.admit_on(hold, More::Checkout).await?;
    // The payment may have begun although the provider does not answer.
    counted.doubt(hold);
    match (req.app.engine.checkout(&call, hold, ask).await, of) {
        (Ok(reply), _) => Ok(admitted.answer(&req.app, hold, &reply)),
        (Err(error), Some(of)) => {
            let event = req.app.engine.event_of_booking(of);
            Err(units::refused_owned(&error, event, "booking").await)
        }
        (Err(error), None) => Err(error.into()),
    }
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct AbandonRequest<'a> {
    #[schema(value_type = Option<u64>)]
    fence: Option<Whole<u64>>,
    /// The booking of the payment that is given up. Left out: the one under way, which may be a later one if this
    /// request comes late.
    #[serde(borrow)]
    #[schema(value_type = Option<String>)]
    booking: Option<Str<'a>>,
}

async fn abandon(mut req: ApiRequest) -> Handled {
    let hold = req.hold_id()?;
    let body = req.json().await?;
    let request: AbandonRequest<'_> = json::parse(&body)?;
    let booking = request.booking.map(|id| id.0.parse()).transpose();
    let booking = booking.map_err(|_| Problem::invalid("booking", "it is no id of a booking"))?;
    let call = req.call()?;
    let fence = json::fence(request.fence);
    let reply = req.app.engine.abandon(&call, hold, fence, booking).await?;
    req.held_by_address().doubt(hold);
    Ok(answer::reply(&req.app, &reply))
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct RefundRequest {
    /// In minor units of the event's currency.
    #[schema(value_type = i64)]
    amount: Whole<i64>,
    /// Whether staff settled it elsewhere: all that is still to go back, which the provider is not asked for any more.
    elsewhere: Option<bool>,
}

async fn refund(mut req: ApiRequest) -> Handled {
    let booking = req.booking_id()?;
    let body = req.json().await?;
    let request: RefundRequest = json::parse(&body)?;
    let amount = Amount::from_minor(request.amount.0);
    let call = req.keyed_call(&[&booking.to_string()], &body)?;
    let engine = &req.app.engine;
    let refunded = if request.elsewhere == Some(true) {
        engine.settle_refund(&call, booking, amount).await
    } else {
        engine.refund(&call, booking, amount).await
    };
    match refunded {
        Ok(reply) => Ok(answer::reply(&req.app, &reply)),
        Err(EngineError::Rejected(Rejection::BookingNotConfirmed)) => {
            Err(Problem::new(&kinds::NOTHING_PAID))
        }
        Err(error) => Err(error.into()),
    }
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ExchangeRequest<'a> {
    /// Whose lines.
    #[serde(borrow)]
    #[schema(value_type = String)]
    booking: Str<'a>,
    /// Lines to give back.
    release: Vec<OwnUnitRequest<'a>>,
    /// The hold with the new units.
    #[schema(value_type = String)]
    hold: Str<'a>,
    #[schema(value_type = Option<u64>)]
    fence: Option<Whole<u64>>,
}

async fn exchange(mut req: ApiRequest) -> Handled {
    let body = req.json().await?;
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
    let call = req.keyed_call(&[], &body)?;
    match req.app.engine.exchange(&call, ask).await {
        Ok(reply) => {
            req.held_by_address().ended(hold).await;
            Ok(answer::reply(&req.app, &reply))
        }
        Err(EngineError::Rejected(Rejection::PaymentRequired)) => {
            let detail = "it costs more than what is given back: check the hold out with \
                          `exchange`, which takes the difference";
            Err(Problem::detailed(&kinds::PAYMENT_REQUIRED, detail))
        }
        Err(error) => {
            let event = req.app.engine.event_of_booking(booking);
            Err(units::refused_owned(&error, event, "booking").await)
        }
    }
}

/// Parses lines to give back. `field` names their list in refusals.
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
