//! What staff does with units: block, unblock, and look at the history of one.

use serde::{Deserialize, Serialize};
use soldonce_core::{Advice, Chart, Rejection, Unavailable};
use soldonce_engine::EngineError;
use soldonce_engine::reply::TransitionBody;
use utoipa::ToSchema;

use super::answer;
use super::api_request::ApiRequest;
use super::json::{self, Str};
use super::operation::{Keyed, Tag, get, post};
use super::problem::{Handled, Problem};
use super::refusals::NO_CHOICE;
use super::route::Admission::Admin;
use super::route::BodySize;
use super::shapes::{BlockedUnits, Transition, UnblockedUnits};
use super::table::Table;
use super::units::{self, UnitRequest};
use axum::http::StatusCode;

pub(super) fn routes(table: &mut Table) {
    table.tag(Tag::Seats);
    table.add(
        post("/v1/events/{event}/block", Admin)
            .id("block")
            .summary("Takes free units out of sale, all or none")
            .takes::<BlockRequest<'_>>(
                r#"{"units": [{"seat": "B-1"}], "reason": "A camera is there"}"#,
            )
            .sized(BodySize::Units)
            .keyed(Keyed::Optional)
            .refuses(&[NO_CHOICE])
            .gives::<BlockedUnits>(200, "The units"),
        |req| set(req, Block::On),
    );
    table.add(
        post("/v1/events/{event}/unblock", Admin)
            .id("unblock")
            .summary("Puts blocked units back on sale, all or none")
            .takes::<BlockRequest<'_>>(
                r#"{"units": [{"seat": "B-1"}], "reason": "A camera is there"}"#,
            )
            .sized(BodySize::Units)
            .keyed(Keyed::Optional)
            .refuses(&[NO_CHOICE])
            .gives::<UnblockedUnits>(200, "The units"),
        |req| set(req, Block::Off),
    );
    table.add(
        get("/v1/events/{event}/units/{unit}/history", Admin)
            .id("read_history")
            .summary("Every transition of a unit, oldest first")
            .gives::<History<'_>>(200, "The history"),
        history,
    );
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct BlockRequest<'a> {
    #[serde(borrow)]
    units: Vec<UnitRequest<'a>>,
    #[schema(value_type = Option<String>)]
    reason: Option<Str<'a>>,
}

/// Into which state units are put.
#[derive(Clone, Copy)]
enum Block {
    On,
    Off,
}

async fn set(mut req: ApiRequest, to: Block) -> Handled {
    let event = req.event_id()?;
    let body = req.json().await?;
    let request: BlockRequest<'_> = json::parse(&body)?;
    let units = units::wanted("units", request.units)?;
    let reason = json::reason(request.reason.as_ref())?;
    let call = req.keyed_call(&[event.as_str()], &body)?;
    let engine = &req.app.engine;
    let done = match to {
        Block::On => engine.block(&call, &event, &units, reason).await,
        Block::Off => engine.unblock(&call, &event, &units, reason).await,
    };
    match done {
        Err(EngineError::Rejected(Rejection::UnitUnavailable(refusal))) => {
            let event = engine.find_event(&event).await?;
            Err(in_the_way(*refusal, to, &event.chart))
        }
        done => answer::about(&req.app, &event, done),
    }
}

/// Builds the refusal. Staff means these units and no others, so none are offered instead.
fn in_the_way(refusal: Unavailable, to: Block, chart: &Chart) -> Problem {
    let refusal = Unavailable {
        alternatives: Vec::new(),
        ..refusal
    };
    let problem = Problem::rejected(&Rejection::UnitUnavailable(Box::new(refusal)), Some(chart));
    let (rule, problem) = match to {
        Block::On => ("free can be blocked", problem),
        Block::Off => (
            "blocked can be unblocked",
            problem.advising(Advice::DoNotRetry),
        ),
    };
    let more = "`conflicts` names what is not, and nothing was changed";
    problem.saying(format!("only what is {rule}; {more}"))
}

/// What happened to a unit.
#[derive(Serialize, ToSchema)]
struct History<'a> {
    unit: &'a str,
    #[schema(value_type = Vec<Transition>)]
    transitions: Vec<TransitionBody<'a>>,
}

async fn history(req: ApiRequest) -> Handled {
    req.query()?;
    let event = req.event_id()?;
    let unit = req.segment(4);
    let (_, commits) = req.app.engine.unit_history(&event, &unit).await?;
    let history = History {
        unit: &unit,
        transitions: TransitionBody::of(&commits),
    };
    Ok(answer::object(&req.app, StatusCode::OK, &history))
}
