//! Holds: hold, look, change, extend, release, revoke.

use bytes::Bytes;
use serde::Deserialize;
use soldonce_core::{EventId, HoldId, Together};
use soldonce_engine::{ChangeAsk, ExtendAsk, HoldAsk, WishAsk};

use utoipa::ToSchema;

use super::address_holds::{AddressHolds, More};
use super::answer;
use super::api_request::ApiRequest;
use super::json::{self, Str, Whole};
use super::kinds::{self, Kind};
use super::operation::{HOLD_SECRET, Keyed, Tag, delete, get, patch, post};
use super::problem::{Handled, Problem};
use super::refusals::{NO_CHOICE, NO_HOLD, NO_SALE};
use super::route::Admission::{Admin, Buy};
use super::shapes::Hold;
use super::table::Table;
use super::units::{self, OwnUnitRequest, UnitRequest};

const NO_RELEASE: &[&Kind] = &[
    &kinds::HOLD_EXPIRED,
    &kinds::HOLD_CONSUMED,
    &kinds::HOLD_REVOKED,
    &kinds::STALE_FENCE,
];
const NO_REVOKE: &[&Kind] = &[
    &kinds::HOLD_EXPIRED,
    &kinds::HOLD_RELEASED,
    &kinds::HOLD_CONSUMED,
];

pub(super) fn routes(table: &mut Table) {
    table.tag(Tag::Holds);
    table.add(
        post("/v1/events/{event}/holds", Buy)
            .id("hold")
            .summary(
                "Holds units, all or none. `best` and areas choose anew each time: without an \
                 Idempotency-Key a request that is repeated because its answer was lost may hold \
                 twice",
            )
            .takes::<HoldRequest<'_>>(
                r#"{"holder": "ann", "units": [{"seat": "A-4"}, {"seat": "A-5"}]}"#,
            )
            .keyed(Keyed::Optional)
            .refuses(&[NO_CHOICE, NO_SALE])
            .gives::<Hold>(201, "The new hold, with its secret")
            .gives::<Hold>(200, "The holder's own hold of exactly these seats"),
        create,
    );
    table.add(
        get("/v1/holds/{hold}", Buy)
            .id("read_hold")
            .summary("Reads a hold; never with its secret")
            .headers(&[HOLD_SECRET])
            .gives::<Hold>(200, "The hold"),
        read,
    );
    table.add(
        patch("/v1/holds/{hold}", Buy)
            .id("change_hold")
            .summary("Adds units and drops units, all or nothing")
            .takes::<ChangeRequest<'_>>(r#"{"add": [{"seat": "A-3"}], "drop": [{"seat": "A-1"}]}"#)
            .keyed(Keyed::Optional)
            .headers(&[HOLD_SECRET])
            .refuses(&[NO_CHOICE, NO_SALE, NO_HOLD])
            .gives::<Hold>(200, "The hold"),
        change,
    );
    table.add(
        delete("/v1/holds/{hold}", Buy)
            .id("release_hold")
            .summary("Gives a hold up; repeating gives the same answer")
            .query(&[("fence", "Refuse unless this is the hold's fence", "integer")])
            .headers(&[HOLD_SECRET])
            .refuses(&[NO_RELEASE])
            .gives::<Hold>(200, "The hold"),
        release,
    );
    table.add(
        post("/v1/holds/{hold}/extend", Buy)
            .id("extend_hold")
            .summary("Pushes a hold's end later, never beyond its cap")
            .may_take::<ExtendRequest>(r#"{"ttl_ms": 300000}"#)
            .keyed(Keyed::Optional)
            .headers(&[HOLD_SECRET])
            .refuses(&[NO_HOLD, &[&kinds::CAP_REACHED]])
            .gives::<Hold>(200, "The hold"),
        extend,
    );
    table.add(
        post("/v1/holds/{hold}/revoke", Admin)
            .id("revoke_hold")
            .summary("Ends a hold by staff")
            .may_take::<RevokeRequest<'_>>(r#"{"reason": "The row is under repair"}"#)
            .refuses(&[NO_REVOKE])
            .gives::<Hold>(200, "The hold"),
        revoke,
    );
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct HoldRequest<'a> {
    #[serde(borrow)]
    #[schema(value_type = Option<String>)]
    holder: Option<Str<'a>>,
    units: Option<Vec<UnitRequest<'a>>>,
    best: Option<BestRequest<'a>>,
    #[schema(value_type = Option<u64>)]
    ttl_ms: Option<Whole<u64>>,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(
    deny_unknown_fields,
    expecting = r#"a choice, such as {"quantity": 2}"#
)]
struct BestRequest<'a> {
    #[schema(value_type = u32)]
    quantity: Whole<u32>,
    #[serde(borrow)]
    #[schema(value_type = Option<String>)]
    category: Option<Str<'a>>,
    #[serde(default)]
    together: TogetherWord,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum TogetherWord {
    #[default]
    Preferred,
    Required,
}

async fn create(mut req: ApiRequest) -> Handled {
    let event = req.event_id()?;
    let body = req.json().await?;
    let counted = req.held_by_address();
    counted
        .run_to_its_end(|counted| hold(req, counted, event, body))
        .await
}

async fn hold(req: ApiRequest, counted: AddressHolds, event: EventId, body: Bytes) -> Handled {
    let request: HoldRequest<'_> = json::parse(&body)?;
    let ask = HoldAsk {
        holder: json::holder(request.holder.as_ref())?,
        wish: match (request.units, &request.best) {
            (Some(units), None) => WishAsk::Named(units::wanted("units", units)?),
            (None, Some(best)) if best.quantity.0 == 0 => {
                return Err(Problem::invalid("best.quantity", "ask for at least 1"));
            }
            (None, Some(best)) => WishAsk::Best {
                quantity: best.quantity.0,
                category: best.category.as_ref().map(|category| &*category.0),
                together: match best.together {
                    TogetherWord::Preferred => Together::Preferred,
                    TogetherWord::Required => Together::Required,
                },
            },
            (None, None) | (Some(_), Some(_)) => {
                return Err(Problem::invalid("body", "send either `units` or `best`"));
            }
        },
        ttl: json::ttl(request.ttl_ms),
    };
    let call = req.keyed_call(&[event.as_str()], &body)?;
    let units = match &ask.wish {
        WishAsk::Named(units) => units.count(),
        WishAsk::Best { quantity, .. } => *quantity,
    };
    let admitted = counted.admit(&event, units, ask.ttl).await?;
    match req.app.engine.hold(&call, &event, ask).await {
        Ok(reply) => {
            let hold = HoldId::from_bytes(reply.stored.subject);
            Ok(admitted.answer(&req.app, hold, &reply))
        }
        Err(error) => answer::about(&req.app, &event, Err(error)),
    }
}

async fn read(req: ApiRequest) -> Handled {
    req.query()?;
    let hold = req.hold_id()?;
    let found = req.app.engine.hold_now(&req.call()?, hold).await?;
    Ok(answer::current(&req.app, &found))
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ChangeRequest<'a> {
    #[serde(borrow, default)]
    add: Vec<UnitRequest<'a>>,
    #[serde(default)]
    drop: Vec<OwnUnitRequest<'a>>,
    #[schema(value_type = Option<u64>)]
    fence: Option<Whole<u64>>,
}

async fn change(mut req: ApiRequest) -> Handled {
    let hold = req.hold_id()?;
    let body = req.json().await?;
    let counted = req.held_by_address();
    counted
        .run_to_its_end(|counted| change_units(req, counted, hold, body))
        .await
}

async fn change_units(
    req: ApiRequest,
    counted: AddressHolds,
    hold: HoldId,
    body: Bytes,
) -> Handled {
    let request: ChangeRequest<'_> = json::parse(&body)?;
    let ask = ChangeAsk {
        add: units::wanted("add", request.add)?,
        drop: units::owned("drop", request.drop)?,
        fence: json::fence(request.fence),
    };
    let call = req.keyed_call(&[&hold.to_string()], &body)?;
    let more = More::Units(ask.add.count().saturating_sub(ask.drop.count()));
    let admitted = counted.admit_on(hold, more).await?;
    match req.app.engine.change(&call, hold, ask).await {
        Ok(reply) => Ok(admitted.answer(&req.app, hold, &reply)),
        Err(error) => {
            let event = req.app.engine.event_of_hold(hold);
            Err(units::refused_owned(&error, event, "hold").await)
        }
    }
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ExtendRequest {
    #[schema(value_type = Option<u64>)]
    ttl_ms: Option<Whole<u64>>,
    #[schema(value_type = Option<u64>)]
    fence: Option<Whole<u64>>,
}

async fn extend(mut req: ApiRequest) -> Handled {
    let hold = req.hold_id()?;
    let body = req.json().await?;
    let request: ExtendRequest = json::parse(&body)?;
    let ask = ExtendAsk {
        ttl: json::ttl(request.ttl_ms),
        fence: json::fence(request.fence),
    };
    let call = req.keyed_call(&[&hold.to_string()], &body)?;
    let reply = req.app.engine.extend(&call, hold, ask).await?;
    Ok(answer::reply(&req.app, &reply))
}

async fn release(req: ApiRequest) -> Handled {
    let fence = req.query()?.fence()?;
    let hold = req.hold_id()?;
    let reply = req.app.engine.release(&req.call()?, hold, fence).await?;
    req.held_by_address().ended(hold).await;
    Ok(answer::reply(&req.app, &reply))
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct RevokeRequest<'a> {
    #[serde(borrow)]
    #[schema(value_type = Option<String>)]
    reason: Option<Str<'a>>,
}

async fn revoke(mut req: ApiRequest) -> Handled {
    let hold = req.hold_id()?;
    let body = req.json().await?;
    let request: RevokeRequest<'_> = json::parse(&body)?;
    let reason = json::reason(request.reason.as_ref())?;
    let reply = req.app.engine.revoke(&req.call()?, hold, reason).await?;
    Ok(answer::reply(&req.app, &reply))
}
