//! What staff does with units: block, unblock, and look at the history of one.

use serde::{Deserialize, Serialize};
use soldonce_core::{Chart, Conflict, ConflictState, Rejection, Unavailable};
use soldonce_engine::EngineError;
use soldonce_engine::reply::TransitionBody;
use utoipa::ToSchema;

use super::answer;
use super::asked::Asked;
use super::json::{self, Str};
use super::problem::{Handled, Problem};
use super::units::{self, UnitRequest};
use axum::http::StatusCode;

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct BlockRequest<'a> {
    #[serde(borrow)]
    units: Vec<UnitRequest<'a>>,
    #[serde(borrow)]
    #[schema(value_type = Option<String>)]
    reason: Option<Str<'a>>,
}

/// Into which state units are put.
#[derive(Clone, Copy)]
enum Block {
    On,
    Off,
}

/// `POST /v1/events/{event}/block`
pub(super) async fn block(asked: Asked) -> Handled {
    set(asked, Block::On).await
}

/// `POST /v1/events/{event}/unblock`
pub(super) async fn unblock(asked: Asked) -> Handled {
    set(asked, Block::Off).await
}

async fn set(mut asked: Asked, to: Block) -> Handled {
    let event = asked.event_id()?;
    let body = asked.json().await?;
    let request: BlockRequest<'_> = json::parse(&body)?;
    let units = units::wanted("units", request.units)?;
    let reason = json::reason(request.reason.as_ref())?;
    let call = asked.call()?;
    let engine = &asked.app.engine;
    let done = match to {
        Block::On => engine.block(&call, &event, &units, reason).await,
        Block::Off => engine.unblock(&call, &event, &units, reason).await,
    };
    match done {
        Err(EngineError::Rejected(Rejection::UnitUnavailable(refusal))) => {
            let event = engine.find_event(&event).await?;
            Err(in_the_way(*refusal, to, &event.chart))
        }
        done => answer::about(&asked.app, &event, done),
    }
}

/// Staff means these units and no others, so none are offered instead.
fn in_the_way(refusal: Unavailable, to: Block, chart: &Chart) -> Problem {
    let refusal = Unavailable {
        alternatives: Vec::new(),
        ..refusal
    };
    let may_change = refusal.conflicts.iter().any(|conflict| match conflict {
        Conflict::Seat { state, .. } => *state == ConflictState::Held,
        Conflict::Area { .. } => false,
    });
    let detail = match to {
        Block::On => {
            "only what is free can be blocked; `conflicts` names what is not, and nothing was changed"
        }
        Block::Off => {
            "only what is blocked can be unblocked; `conflicts` names what is not, and nothing was \
             changed"
        }
    };
    let problem = Problem::rejected(&Rejection::UnitUnavailable(Box::new(refusal)), Some(chart));
    match (to, may_change) {
        (Block::On, true) => problem.saying(detail),
        (Block::On, false) | (Block::Off, _) => problem.never_again().saying(detail),
    }
}

#[derive(Serialize)]
struct History<'a> {
    unit: &'a str,
    transitions: Vec<TransitionBody<'a>>,
}

/// `GET /v1/events/{event}/units/{unit}/history`
pub(super) async fn history(asked: Asked) -> Handled {
    asked.query(&[])?;
    let event = asked.event_id()?;
    let unit = asked.segment(4);
    let (_, commits) = asked.app.engine.unit_history(&event, &unit).await?;
    let history = History {
        unit: &unit,
        transitions: TransitionBody::of(&commits),
    };
    Ok(answer::object(&asked.app, StatusCode::OK, &history))
}
