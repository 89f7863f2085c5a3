//! Bookings: confirm, box-office sale, cancel, look.

use serde::Deserialize;
use soldonce_core::Rejection;
use soldonce_engine::{EngineError, SellAsk};

use utoipa::ToSchema;

use super::api_request::ApiRequest;
use super::json::{self, Str, Whole};
use super::operation::{BOOKING_SECRET, HOLD_SECRET, Keyed, Tag, get, post};
use super::problem::{Handled, Problem};
use super::refusals::{NO_CHOICE, NO_HOLD, NO_RETURN, NO_SALE};
use super::route::Admission::{Buy, Sell};
use super::route::BodySize;
use super::shapes::Booking;
use super::table::Table;
use super::units::{self, OwnUnitRequest, UnitRequest};
use super::{answer, kinds};

pub(super) fn routes(table: &mut Table) {
    table.tag(Tag::Bookings);
    table.add(
        post("/v1/holds/{hold}/confirm", Buy)
            .id("confirm_hold")
            .summary("Turns a hold into a booking")
            .may_take::<ConfirmRequest<'_>>(r#"{"reference": "order-77"}"#)
            .keyed(Keyed::Required)
            .headers(&[HOLD_SECRET])
            .refuses(&[NO_HOLD])
            .gives::<Booking>(201, "The booking"),
        confirm,
    );
    table.add(
        post("/v1/events/{event}/sales", Sell)
            .id("sell")
            .summary("Sells free units at once, as a box office does")
            .takes::<SaleRequest<'_>>(
                r#"{"holder": "ann", "units": [{"seat": "B-1"}], "reference": "till-4"}"#,
            )
            .sized(BodySize::Units)
            .keyed(Keyed::Required)
            .refuses(&[NO_CHOICE, NO_SALE])
            .gives::<Booking>(201, "The booking"),
        sell,
    );
    table.add(
        get("/v1/bookings/{booking}", Buy)
            .id("read_booking")
            .summary("Reads a booking")
            .headers(&[HOLD_SECRET, BOOKING_SECRET])
            .gives::<Booking>(200, "The booking"),
        read,
    );
    table.add(
        post("/v1/bookings/{booking}/cancel", Buy)
            .id("cancel_booking")
            .summary("Gives back lines of a booking, or all of them")
            .may_take::<CancelRequest<'_>>(r#"{"units": [{"seat": "A-2"}]}"#)
            .keyed(Keyed::Required)
            .headers(&[HOLD_SECRET, BOOKING_SECRET])
            .refuses(&[NO_RETURN])
            .gives::<Booking>(200, "The booking"),
        cancel,
    );
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ConfirmRequest<'a> {
    #[serde(borrow)]
    #[schema(value_type = Option<String>)]
    reference: Option<Str<'a>>,
    #[schema(value_type = Option<u64>)]
    fence: Option<Whole<u64>>,
}

async fn confirm(mut req: ApiRequest) -> Handled {
    let hold = req.hold_id()?;
    let body = req.json().await?;
    let request: ConfirmRequest<'_> = json::parse(&body)?;
    let reference = json::text("reference", request.reference.as_ref())?;
    let fence = json::fence(request.fence);
    let call = req.keyed_call(&[&hold.to_string()], &body)?;
    let engine = &req.app.engine;
    match engine.confirm(&call, hold, fence, reference).await {
        Ok(reply) => {
            req.held_by_address().ended(hold).await;
            Ok(answer::reply(&req.app, &reply))
        }
        Err(EngineError::Rejected(Rejection::PaymentRequired)) => {
            let detail = if req.app.engine.provider().is_some() {
                "what costs something is paid by checkout"
            } else {
                "no provider takes money here, and the server sells nothing for nothing: start it with a \
                 payment provider or `--free-sales=on`, or confirm with an API key"
            };
            Err(Problem::detailed(&kinds::FORBIDDEN, detail))
        }
        Err(error) => Err(error.into()),
    }
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct SaleRequest<'a> {
    #[serde(borrow)]
    units: Vec<UnitRequest<'a>>,
    /// For whom: the caller's own id of the buyer.
    #[schema(value_type = String, required = true)]
    holder: Option<Str<'a>>,
    #[schema(value_type = Option<String>)]
    reference: Option<Str<'a>>,
}

async fn sell(mut req: ApiRequest) -> Handled {
    let event = req.event_id()?;
    let body = req.json().await?;
    let request: SaleRequest<'_> = json::parse(&body)?;
    let ask = SellAsk {
        units: units::wanted("units", request.units)?,
        holder: json::holder(request.holder.as_ref())?,
        reference: json::text("reference", request.reference.as_ref())?,
    };
    let call = req.keyed_call(&[event.as_str()], &body)?;
    let said = req.app.engine.sell(&call, &event, ask).await;
    answer::about(&req.app, &event, said)
}

async fn read(req: ApiRequest) -> Handled {
    req.query()?;
    let booking = req.booking_id()?;
    let found = req.app.engine.booking(&req.call()?, booking).await?;
    Ok(answer::reply(&req.app, &found))
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct CancelRequest<'a> {
    #[serde(borrow)]
    units: Option<Vec<OwnUnitRequest<'a>>>,
}

async fn cancel(mut req: ApiRequest) -> Handled {
    let booking = req.booking_id()?;
    let body = req.json().await?;
    let request: CancelRequest<'_> = json::parse(&body)?;
    // All lines are meant when none are asked for, never when an empty list is.
    if request.units.as_ref().is_some_and(Vec::is_empty) {
        return Err(Problem::invalid(
            "units",
            "name at least one, or leave it out for all (over gRPC: all_lines)",
        ));
    }
    let units = units::owned("units", request.units.unwrap_or_default())?;
    let call = req.keyed_call(&[&booking.to_string()], &body)?;
    match req.app.engine.cancel(&call, booking, &units).await {
        Ok(reply) => Ok(answer::reply(&req.app, &reply)),
        Err(error) => {
            let event = req.app.engine.event_of_booking(booking);
            Err(units::refused_owned(&error, event, "booking").await)
        }
    }
}
