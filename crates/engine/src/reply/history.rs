//! The history of a unit as the API and `soldonce why` show it.

use serde::Serialize;
use soldonce_core::{Actor, Commit, Transition, UnitState};

use super::Rfc3339;

/// One transition of a unit, with the data of its commit.
#[derive(Debug, Serialize)]
pub struct TransitionBody<'a> {
    /// The time, on the ledger's clock.
    pub at: Rfc3339,
    /// The number of the commit of the event.
    pub seq: u64,
    /// The state before.
    pub from: &'static str,
    /// The state after.
    pub to: &'static str,
    pub cause: &'static str,
    /// The API key or session; `system` for the engine itself.
    pub actor: String,
    pub reason: Option<&'a str>,
    /// The hold in whose name it was done.
    pub hold: Option<String>,
    /// The booking that got it or gave it back.
    pub booking: Option<String>,
    /// The unit's fence after.
    pub fence: u64,
    /// The unit's version after.
    pub version: u64,
    /// The id of the request.
    pub request_id: &'a str,
}

impl<'a> TransitionBody<'a> {
    /// Lists every transition of these commits, in their order.
    pub fn of(commits: &'a [Commit]) -> Vec<Self> {
        let steps = commits
            .iter()
            .flat_map(|commit| commit.transitions.iter().map(move |step| (commit, step)));
        let rows = steps.map(|(commit, step)| Self::new(commit, step));
        rows.collect()
    }

    fn new(commit: &'a Commit, step: &Transition) -> Self {
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
            booking: booking_of(step.to).or_else(|| booking_of(step.from)),
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
