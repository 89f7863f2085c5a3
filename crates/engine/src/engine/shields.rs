//! Queries both shields before a hold, and notes its outcome in them. Neither grants anything.

use std::sync::Arc;

use soldonce_core::{
    Answer, Conflict, ConflictState, Event, Holder, Rejection, Selection, Span, Timestamp,
    Unavailable,
};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::Engine;
use crate::ledger::Done;
use crate::limits::SHIELD_EARLY_MS;
use crate::live::{Live, LiveEvent};
use crate::metrics::SPANS;
use crate::shield::{
    Belief, Kind, Known, KnownState, Message, Part, Round, SharedShield, Thing, Tried, Who, full,
    parts,
};

/// Most messages that are sent together.
const ROUND_MAX: usize = 256;

/// A request for units, as the shields are queried.
#[derive(Clone, Copy)]
pub(super) struct ShieldQuery<'a> {
    pub(super) live: &'a LiveEvent,
    pub(super) event: &'a Event,
    pub(super) holder: &'a Holder,
    pub(super) selection: &'a Selection,
    pub(super) now: Timestamp,
    pub(super) is_keyed: bool,
}

/// What a request may have claimed in the shared shield. Dropping it, whether the ledger refused or
/// no caller waits for the answer any more, gives the claims up; what is noted meanwhile stays.
pub(super) struct Pass {
    live: Arc<Live>,
    who: Who,
    parts: Vec<Part>,
}

impl Pass {
    /// Keeps the claims: the ledger made a hold of them, or nothing was claimed.
    fn keep(mut self) {
        self.parts.clear();
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        let parts = std::mem::take(&mut self.parts);
        if let Some(shared_shield) = self.live.shared_shield().filter(|_| !parts.is_empty()) {
            shared_shield.messages.send(Message::Drop(self.who, parts));
        }
    }
}

impl Engine {
    /// Queries the shield in process. A sold unit may have been sold to this caller: with a key, the ledger
    /// decides.
    ///
    /// # Errors
    /// `UnitUnavailable` with every conflict, as the ledger would say.
    pub(super) fn pass_own_shield(&self, query: ShieldQuery<'_>) -> Result<(), Rejection> {
        let (chart, seats) = (&query.event.chart, query.selection.seats());
        let shield = &query.live.shield;
        match shield.try_seats(chart, seats, query.holder, query.now) {
            Some(refusal) if !query.is_keyed || !refusal.conflicts.iter().any(is_sold) => {
                Err(self.refused_by("local", refusal))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Queries the shield between servers, if there is one; `None` leaves the units to the ledger.
    ///
    /// # Errors
    /// As [`Engine::pass_own_shield`].
    pub(super) async fn pass_shared_shield(
        &self,
        query: ShieldQuery<'_>,
    ) -> Result<Option<Pass>, Rejection> {
        let Some(shared_shield) = self.parts.live.shared_shield() else {
            return Ok(None);
        };
        let of = (self.parts.secrets.ledger(), query.event.no);
        let pass = Pass {
            live: Arc::clone(&self.parts.live),
            who: Who::of(query.holder),
            parts: parts(of, &query.event.chart, query.selection),
        };
        let span = tracing::info_span!(target: SPANS, "shield.try_units");
        let tried = shared_shield.shield.try_units(pass.who, &pass.parts);
        match tried.instrument(span).await {
            Tried::Passed => Ok(Some(pass)),
            Tried::Missed => {
                self.parts.metrics.shield_misses.inc();
                Ok(Some(pass))
            }
            Tried::Refused(beliefs) => {
                pass.keep();
                match believed(shared_shield, query, &beliefs) {
                    Some(refusal) => Err(self.refused_by("redis", Box::new(refusal))),
                    None => Ok(None),
                }
            }
        }
    }

    fn refused_by(&self, shield: &'static str, refusal: Box<Unavailable>) -> Rejection {
        let (metrics, label) = (&self.parts.metrics, [("shield", shield)]);
        metrics.shield_refusals.get_or_create(&label).inc();
        let rejection = Rejection::UnitUnavailable(refusal);
        metrics.refused(&rejection);
        rejection
    }

    /// Notes the outcome of a request that had passed in the shield between servers: claims without
    /// a hold are given up, and refusals that it did not know are added.
    pub(super) fn note_outcome(
        &self,
        live: &LiveEvent,
        pass: Option<Pass>,
        done: &Result<Done, Rejection>,
    ) {
        match done {
            Ok(Done::Fresh {
                answer: Answer::Held(_),
                ..
            }) => {
                if let Some(pass) = pass {
                    pass.keep();
                }
            }
            Err(Rejection::UnitUnavailable(refusal)) => self.note_refusal(live, refusal),
            Ok(_) | Err(_) => {}
        }
    }

    fn note_refusal(&self, live: &LiveEvent, refusal: &Unavailable) {
        let Some(shared_shield) = self.parts.live.shared_shield() else {
            return;
        };
        let known = |conflict: &Conflict| match conflict {
            Conflict::Seat { unit, .. } => live.shield.known(*unit),
            Conflict::Area { area, free: 0 } => Some(full(*area)),
            // Enough for a request that wants less.
            Conflict::Area { .. } => None,
        };
        let known: Vec<Known> = refusal.conflicts.iter().filter_map(known).collect();
        if !known.is_empty() {
            shared_shield
                .messages
                .send(Message::Known(live.event().no, known));
        }
    }

    fn add(&self, round: &mut Round, message: Message) {
        match message {
            Message::Drop(who, parts) => round.drop_claims(who, parts),
            Message::Known(no, known) => {
                if let Ok(event) = self.event_of(no) {
                    round.add((self.parts.secrets.ledger(), no), &event.chart, known);
                }
            }
        }
    }

    /// Sends some messages to the shield between servers.
    async fn deliver(&self, shared_shield: &SharedShield, messages: Vec<Message>) {
        let mut round = Round::default();
        for message in messages {
            self.add(&mut round, message);
        }
        for (zone, notes) in round.notes(self.now()) {
            if !shared_shield.shield.note(zone, &notes).await {
                shared_shield.messages.lost(notes.len());
            }
        }
        for (who, part) in round.drops {
            // If it gets lost, the claim expires by itself.
            shared_shield.shield.drop_claims(who, &part).await;
        }
    }
}

fn is_sold(conflict: &Conflict) -> bool {
    matches!(
        conflict,
        Conflict::Seat {
            state: ConflictState::Sold,
            ..
        }
    )
}

/// Sends what the ledger did to the shield between servers, until `shutdown`. Waits if there is no such
/// shield.
///
/// # Cancel safety
/// Dropped, what was not sent is lost: more requests reach the ledger.
pub async fn run_shield_messages(engine: Engine, shutdown: CancellationToken) {
    let live = Arc::clone(&engine.parts.live);
    let work = async {
        let Some((shared_shield, mut queue)) =
            live.shared_shield().and_then(|it| Some((it, it.queue()?)))
        else {
            return std::future::pending().await;
        };
        loop {
            let mut messages = Vec::new();
            if queue.recv_many(&mut messages, ROUND_MAX).await == 0 {
                return;
            }
            engine.deliver(shared_shield, messages).await;
        }
    };
    shutdown.run_until_cancelled(work).await;
}

/// Returns a refusal for what other servers know and this one does not. What this server knows as well or better
/// is no reason: it is sent to the shield, and if no other reason remains, the ledger decides.
fn believed(
    shared_shield: &SharedShield,
    query: ShieldQuery<'_>,
    beliefs: &[Belief],
) -> Option<Unavailable> {
    let (mut conflicts, mut better) = (Vec::new(), Vec::new());
    for belief in beliefs {
        let known = match belief.thing {
            Thing::Seat(unit) if belief.kind != Kind::Claimed => query.live.shield.known(unit),
            Thing::Seat(_) | Thing::Area(_) => None,
        };
        match known {
            Some(known) if known.version >= belief.version && may_have(known, query) => {
                better.push(known);
            }
            Some(_) | None => conflicts.extend(conflict(belief)),
        }
    }
    if !better.is_empty() {
        shared_shield
            .messages
            .send(Message::Known(query.event.no, better));
    }
    let shield = &query.live.shield;
    let (chart, seats) = (&query.event.chart, query.selection.seats());
    (!conflicts.is_empty()).then(|| shield.refusal(chart, seats, conflicts, query.now))
}

/// Tells whether the ledger may give this seat to the caller, by what this server knows.
fn may_have(known: Known, query: ShieldQuery<'_>) -> bool {
    match known.state {
        KnownState::Free => true,
        KnownState::Held { until, who } => until <= query.now || who == Who::of(query.holder),
        KnownState::Sold => false,
    }
}

/// Returns the conflict that the ledger would name; `None` for a free unit.
fn conflict(belief: &Belief) -> Option<Conflict> {
    let (state, early_ms) = match belief.kind {
        Kind::Claimed => (ConflictState::Held, Some(0)),
        Kind::Held => (ConflictState::Held, Some(SHIELD_EARLY_MS)),
        Kind::Sold => (ConflictState::Sold, None),
        Kind::Free => return None,
    };
    Some(match belief.thing {
        Thing::Seat(unit) => Conflict::Seat {
            unit,
            state,
            retry_after: early_ms.map(|early| Span::from_ms(belief.left.ms() + early)),
        },
        Thing::Area(area) => Conflict::Area { area, free: 0 },
    })
}
