//! A batch: commands that are decided one after the other in memory, and what they did, to be stored together.

use std::sync::Arc;

use soldonce_core::{
    Answer, Applied, BookingId, Command, Commit, EventNo, HoldId, Inventory, Rejection, Seq,
    Timestamp, Transition, UnitState,
};
use tokio::sync::oneshot;

use super::{Done, RequestKey, Transaction};
use crate::limits::BATCH_STEPS_MAX;
use crate::reply::{self, ReplyKind, StoredReply};
use crate::webhook::{Before, Message};

/// Commands decided in memory and not yet stored.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// What those with an effect did, in order.
    pub(crate) applied: Vec<Applied>,
    /// Their idempotency records.
    pub(crate) records: Vec<(RequestKey, StoredReply)>,
    /// Events that are new, with their charts as they were given.
    pub(crate) charts: Vec<(EventNo, Option<Arc<[u8]>>)>,
    /// The webhook messages about them.
    pub(crate) messages: Vec<Message>,
    /// How many transitions they made.
    pub(crate) steps: usize,
    /// How many of these freed a unit from SOLD.
    freed: usize,
}

/// The outcome of a command; its answer is sent when the batch is stored.
pub(crate) enum Outcome {
    /// It is this one of the batch's applied commands.
    Applied(usize),
    /// It needs nothing stored.
    Known(Result<Done, Rejection>),
}

/// The caller of a command.
pub(crate) type Reply<T> = oneshot::Sender<Result<T, Rejection>>;

/// Who writes to the ledger.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Writers {
    /// This server alone: it knows the feed number of each commit, and whether any endpoint hears of it.
    One { is_heard: bool },
    /// Others too: only the database knows.
    Many,
}

impl Batch {
    /// Decides a command at `now` on this inventory and adds what it did. One that is refused changes nothing.
    pub(crate) fn decide(
        &mut self,
        inventory: &mut Inventory,
        now: Timestamp,
        transaction: &Transaction,
        writers: Writers,
    ) -> Outcome {
        let command = &transaction.command;
        let (is_numbered, is_heard) = match writers {
            Writers::One { is_heard } => (true, is_heard),
            Writers::Many => (false, true),
        };
        let before = is_heard.then(|| Before::of(inventory, command));
        let applied = match inventory.apply(now, &transaction.origin, command.clone()) {
            Ok(applied) if applied.has_effect() => applied,
            // An answer without effect is not pinned: the next try may find another state.
            Ok(applied) => return Outcome::Known(Ok(Done::unnumbered(applied.answer))),
            Err(rejection) => return Outcome::Known(Err(rejection)),
        };
        if let Some(key) = transaction.key {
            let event = reply::event_of(&applied.answer).and_then(|no| inventory.event(no));
            let first = applied.commits.first().filter(|_| is_numbered);
            let seq = first.map(|commit| commit.seq);
            let reply = reply::render(event.map(|event| &**event), &applied.answer, seq);
            self.records.extend(reply.map(|mut reply| {
                reply.kind = ReplyKind::kept_for(command).unwrap_or(reply.kind);
                (key, reply)
            }));
        }
        let messages = before.map(|before| before.messages(inventory, &applied, now));
        self.messages.extend(messages.into_iter().flatten());
        if let (Answer::EventCreated(_), Some(event)) = (&applied.answer, applied.event) {
            self.charts.push((event, transaction.chart.clone()));
        }
        self.add(applied);
        Outcome::Applied(self.applied.len() - 1)
    }

    /// Adds what a command did.
    pub(crate) fn add(&mut self, applied: Applied) {
        let steps = applied
            .commits
            .iter()
            .flat_map(|commit| &commit.transitions);
        let frees = |step: &&Transition| {
            matches!((step.from, step.to), (UnitState::Sold(_), UnitState::Free))
        };
        self.steps += steps.clone().count();
        self.freed += steps.filter(frees).count();
        self.applied.push(applied);
    }

    /// Whether it may have one more command. It ends before a unit that it frees from SOLD moves again: each unit is
    /// written once, and the database lets a sold one only become free.
    pub(crate) fn has_room_for(&self, command: &Command) -> bool {
        self.steps < BATCH_STEPS_MAX && (self.freed == 0 || !may_move_free_units(command))
    }

    /// What an earlier command of the batch answers to this key.
    pub(crate) fn replay(&self, key: RequestKey) -> Option<Result<StoredReply, Rejection>> {
        let mut records = self.records.iter();
        let (known, reply) = records.find(|(known, _)| known.scoped == key.scoped)?;
        Some(replay(*known, reply, key))
    }

    pub(crate) fn commits(&self) -> impl Iterator<Item = &Commit> {
        self.applied.iter().flat_map(|applied| &applied.commits)
    }

    /// Every transition, in order.
    pub(crate) fn steps(&self) -> impl Iterator<Item = &Transition> {
        self.commits().flat_map(|commit| &commit.transitions)
    }

    /// Takes the commits out, to show them.
    pub(crate) fn take_commits(&mut self) -> impl Iterator<Item = Commit> {
        let applied = self.applied.iter_mut();
        applied.flat_map(|applied| std::mem::take(&mut applied.commits))
    }

    /// Whether an event itself changed.
    pub(crate) fn renews_event(&self) -> bool {
        self.applied.iter().any(|applied| applied.event.is_some())
    }

    /// Every hold that changed, once, in order.
    pub(crate) fn holds(&self) -> Vec<HoldId> {
        distinct(self.applied.iter().flat_map(|done| &done.holds).copied())
    }

    /// The holds that it makes, in order.
    pub(crate) fn new_holds(&self) -> Vec<HoldId> {
        distinct(self.applied.iter().filter_map(|applied| {
            let Answer::Held(hold) = &applied.answer else {
                return None;
            };
            Some(hold.id)
        }))
    }

    /// Every booking that changed, once, in order.
    pub(crate) fn bookings(&self) -> Vec<BookingId> {
        distinct(self.applied.iter().flat_map(|done| &done.bookings).copied())
    }
}

/// Answers the callers of a batch that is stored. `seq` returns the feed number of a command, where it has one.
pub(crate) fn answer_all(
    applied: Vec<Applied>,
    waiting: impl IntoIterator<Item = (Reply<Done>, Outcome)>,
    seq: fn(&Applied) -> Option<Seq>,
) {
    let fresh = |applied: Applied| {
        let seq = seq(&applied);
        let answer = applied.answer;
        Some(Done::Fresh { answer, seq })
    };
    let mut fresh: Vec<_> = applied.into_iter().map(fresh).collect();
    for (reply, outcome) in waiting {
        let done = match outcome {
            Outcome::Known(done) => done,
            Outcome::Applied(at) => {
                let fresh = fresh.get_mut(at).and_then(Option::take);
                fresh.ok_or(Rejection::OutcomeUnknown)
            }
        };
        answer(reply, done);
    }
}

/// Sends an answer. A caller that has gone away gets none: the command is carried out all the same.
pub(crate) fn answer<T>(reply: Reply<T>, done: Result<T, Rejection>) {
    if reply.send(done).is_err() {
        tracing::trace!("no caller waits for the answer");
    }
}

/// Of these, each once and in order.
pub(crate) fn distinct<T: Ord>(ids: impl Iterator<Item = T>) -> Vec<T> {
    let mut ids: Vec<T> = ids.collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

/// What a record says to a request with its key.
///
/// # Errors
/// `IdempotencyKeyReused` when it is of another request.
pub(crate) fn replay(
    known: RequestKey,
    reply: &StoredReply,
    asked: RequestKey,
) -> Result<StoredReply, Rejection> {
    if known.fingerprint == asked.fingerprint {
        return Ok(reply.clone());
    }
    Err(Rejection::IdempotencyKeyReused)
}

/// Whether a command may move units that are free.
const fn may_move_free_units(command: &Command) -> bool {
    match command {
        Command::Hold(_)
        | Command::Change(_)
        | Command::Sell { .. }
        | Command::Block { .. }
        | Command::Payment(_) => true,
        Command::CreateEvent(_)
        | Command::UpdatePolicy { .. }
        | Command::CancelEvent { .. }
        | Command::Extend { .. }
        | Command::Abandon { .. }
        | Command::Release { .. }
        | Command::Revoke { .. }
        | Command::Confirm { .. }
        | Command::ConfirmFree { .. }
        | Command::Checkout { .. }
        | Command::Exchange { .. }
        | Command::Cancel { .. }
        | Command::Refund { .. }
        | Command::Sweep { .. }
        | Command::Unblock { .. } => false,
    }
}
