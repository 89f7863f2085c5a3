//! Holds: hold, look, change, extend, release, revoke.

use serde::Deserialize;
use soldonce_core::{HoldId, Together};
use soldonce_engine::{ChangeAsk, Engine, EngineError, ExtendAsk, HoldAsk, WishAsk};

use utoipa::ToSchema;

use super::answer;
use super::asked::Asked;
use super::hoarding::More;
use super::json::{self, Str, Whole};
use super::problem::{Handled, Problem};
use super::units::{self, OwnUnitRequest, UnitRequest};

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct HoldRequest<'a> {
    #[serde(borrow)]
    #[schema(value_type = Option<String>)]
    holder: Option<Str<'a>>,
    #[serde(borrow)]
    units: Option<Vec<UnitRequest<'a>>>,
    #[serde(borrow)]
    best: Option<BestRequest<'a>>,
    #[schema(value_type = Option<u64>)]
    ttl_ms: Option<Whole<u64>>,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct BestRequest<'a> {
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
pub(super) enum TogetherWord {
    #[default]
    Preferred,
    Required,
}

/// `POST /v1/events/{event}/holds`
pub(super) async fn create(mut asked: Asked) -> Handled {
    let event = asked.event_id()?;
    let body = asked.json().await?;
    let request: HoldRequest<'_> = json::parse(&body)?;
    let ask = HoldAsk {
        holder: json::holder(request.holder.as_ref())?,
        wish: match (request.units, &request.best) {
            (Some(units), None) => WishAsk::Named(units::wanted("units", units)?),
            (
                None,
                Some(BestRequest {
                    quantity: Whole(0), ..
                }),
            ) => {
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
    let call = asked.keyed_call(&[event.as_str()], &body)?;
    let units = match &ask.wish {
        WishAsk::Named(units) => units.count(),
        WishAsk::Best { quantity, .. } => *quantity,
    };
    let admitted = asked.hoarder().admit(&event, units).await?;
    match asked.app.engine.hold(&call, &event, ask).await {
        Ok(reply) => {
            let hold = HoldId::from_bytes(reply.stored.subject);
            let answer = answer::reply(&asked.app, &reply);
            Ok(admitted.settle(&asked.app, hold, answer))
        }
        Err(error) => answer::about(&asked.app, &event, Err(error)),
    }
}

/// `GET /v1/holds/{hold}`
pub(super) async fn read(asked: Asked) -> Handled {
    asked.query(&[])?;
    let hold = asked.hold_id()?;
    let found = asked.app.engine.hold_now(&asked.call()?, hold).await?;
    Ok(answer::stored(&asked.app, &found))
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ChangeRequest<'a> {
    #[serde(borrow, default)]
    add: Vec<UnitRequest<'a>>,
    #[serde(borrow, default)]
    drop: Vec<OwnUnitRequest<'a>>,
    #[schema(value_type = Option<u64>)]
    fence: Option<Whole<u64>>,
}

/// `PATCH /v1/holds/{hold}`
pub(super) async fn change(mut asked: Asked) -> Handled {
    let hold = asked.hold_id()?;
    let body = asked.json().await?;
    let request: ChangeRequest<'_> = json::parse(&body)?;
    let ask = ChangeAsk {
        add: units::wanted("add", request.add)?,
        drop: units::owned("drop", request.drop)?,
        fence: json::fence(request.fence),
    };
    let call = asked.keyed_call(&[&hold.to_string()], &body)?;
    let more = More::Units(ask.add.count().saturating_sub(ask.drop.count()));
    let admitted = asked.hoarder().admit_on(hold, more).await?;
    match asked.app.engine.change(&call, hold, ask).await {
        Ok(reply) => {
            let answer = answer::reply(&asked.app, &reply);
            Ok(admitted.settle(&asked.app, hold, answer))
        }
        Err(error) => Err(refused(&asked.app.engine, hold, error).await),
    }
}

/// A refusal with its units named by the hold's event.
async fn refused(engine: &Engine, hold: HoldId, error: EngineError) -> Problem {
    let event = if units::are_named_by(&error) {
        engine.event_of_hold(hold).await
    } else {
        None
    };
    units::refused_owned(&error, event.as_ref().map(|event| &*event.chart), "hold")
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ExtendRequest {
    #[schema(value_type = Option<u64>)]
    ttl_ms: Option<Whole<u64>>,
    #[schema(value_type = Option<u64>)]
    fence: Option<Whole<u64>>,
}

/// `POST /v1/holds/{hold}/extend`
pub(super) async fn extend(mut asked: Asked) -> Handled {
    let hold = asked.hold_id()?;
    let body = asked.json_or_nothing().await?;
    let request: ExtendRequest = json::parse(&body)?;
    let ask = ExtendAsk {
        ttl: json::ttl(request.ttl_ms),
        fence: json::fence(request.fence),
    };
    let call = asked.keyed_call(&[&hold.to_string()], &body)?;
    let reply = asked.app.engine.extend(&call, hold, ask).await?;
    Ok(answer::reply(&asked.app, &reply))
}

/// `DELETE /v1/holds/{hold}`
pub(super) async fn release(asked: Asked) -> Handled {
    let fence = asked.query(&["fence"])?.fence()?;
    let hold = asked.hold_id()?;
    let call = asked.call()?;
    let reply = asked.app.engine.release(&call, hold, fence).await?;
    asked.hoarder().ended(hold).await;
    Ok(answer::reply(&asked.app, &reply))
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RevokeRequest<'a> {
    #[serde(borrow)]
    #[schema(value_type = Option<String>)]
    reason: Option<Str<'a>>,
}

/// `POST /v1/holds/{hold}/revoke`
pub(super) async fn revoke(mut asked: Asked) -> Handled {
    let hold = asked.hold_id()?;
    let body = asked.json_or_nothing().await?;
    let request: RevokeRequest<'_> = json::parse(&body)?;
    let reason = json::reason(request.reason.as_ref())?;
    let call = asked.call()?;
    let reply = asked.app.engine.revoke(&call, hold, reason).await?;
    Ok(answer::reply(&asked.app, &reply))
}
