//! What staff does with units: block, unblock, and look at the history of one.

use serde::{Deserialize, Serialize};
use soldonce_core::{Actor, Commit, Transition, UnitState};
use soldonce_engine::reply::Rfc3339;

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
        Ok(reply) => Ok(answer::reply(&asked.app, &reply)),
        Err(error) => {
            let event = engine.find_event(&event).ok();
            Err(Problem::of(
                &error,
                event.as_ref().map(|event| &*event.chart),
            ))
        }
    }
}

#[derive(Serialize)]
struct History<'a> {
    unit: &'a str,
    transitions: Vec<TransitionRow<'a>>,
}

#[derive(Serialize)]
struct TransitionRow<'a> {
    at: Rfc3339,
    seq: u64,
    from: &'static str,
    to: &'static str,
    cause: &'static str,
    actor: String,
    reason: Option<&'a str>,
    hold: Option<String>,
    booking: Option<String>,
    fence: u64,
    version: u64,
    request_id: &'a str,
}

/// `GET /v1/events/{event}/units/{unit}/history`
pub(super) async fn history(asked: Asked) -> Handled {
    asked.query(&[])?;
    let event = asked.event_id()?;
    let unit = asked.segment(4);
    let (_, commits) = asked.app.engine.unit_history(&event, &unit).await?;
    let rows = commits.iter().flat_map(|commit| {
        let steps = commit.transitions.iter();
        steps.map(|step| TransitionRow::new(commit, step))
    });
    let history = History {
        unit: &unit,
        transitions: rows.collect(),
    };
    Ok(answer::object(&asked.app, StatusCode::OK, &history))
}

impl<'a> TransitionRow<'a> {
    fn new(commit: &'a Commit, step: &Transition) -> Self {
        let booking = booking_of(step.to).or_else(|| booking_of(step.from));
        Self {
            at: Rfc3339(commit.at),
            seq: commit.seq.0,
            from: step.from.kind().as_str(),
            to: step.to.kind().as_str(),
            cause: step.cause.as_str(),
            actor: match commit.origin.actor {
                Actor::Caller(caller) => caller.to_string(),
                Actor::System => "system".to_owned(),
            },
            reason: commit.reason.as_ref().map(soldonce_core::Text::as_str),
            hold: step.hold.map(|hold| hold.to_string()),
            booking,
            fence: step.fence.0,
            version: step.version.0,
            request_id: &commit.origin.request,
        }
    }
}

fn booking_of(state: UnitState) -> Option<String> {
    match state {
        UnitState::Sold(booking) => Some(booking.to_string()),
        UnitState::Free | UnitState::Held { .. } | UnitState::Blocked => None,
    }
}
