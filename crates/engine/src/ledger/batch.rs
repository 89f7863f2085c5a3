//! A batch: commands decided one after the other in memory, with what they did, for one commit.

use std::sync::Arc;

use soldonce_core::{
    Answer, Applied, BookingId, Command, Commit, EventNo, HoldId, Inventory, Rejection, Seq,
    Timestamp, Transition, UnitState,
};
use tokio::sync::oneshot;

use super::rows::replies::Record;
use super::{Done, RequestKey, Transaction};
use crate::limits::BATCH_STEPS_MAX;
use crate::reply::{self, ReplyKind, StoredReply};
use crate::webhook::{Before, Message};

/// Commands decided in memory and not yet stored.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// What the commands with an effect did, in the order of the commands.
    pub(crate) applied: Vec<Applied>,
    /// The idempotency records of the commands.
    pub(crate) records: Vec<Record>,
    /// New events, each with its chart document as the caller sent it.
    pub(crate) charts: Vec<(EventNo, Option<Arc<[u8]>>)>,
    /// The webhook messages about the commands.
    pub(crate) messages: Vec<Message>,
    /// How many transitions the commands made.
    pub(crate) steps: usize,
    /// How many of these transitions moved a unit from SOLD to FREE.
    freed: usize,
}

/// The outcome of a command; its answer is sent when the batch is stored.
pub(crate) enum Outcome {
    /// An effect: the index into [`Batch::applied`].
    Applied(usize),
    /// A refusal, a replayed answer, or an answer without effect: nothing is stored for it.
    Known(Result<Done, Rejection>),
}

/// The channel on which the caller of a command gets its answer.
pub(crate) type Reply<T> = oneshot::Sender<Result<T, Rejection>>;

/// Which servers write to the ledger.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Writers {
    /// This server alone: it knows the feed number of each commit, and whether an endpoint exists.
    One { is_heard: bool },
    /// Other servers too: only the database knows both.
    Many,
}

impl Batch {
    /// Decides a command at `now` on `inventory` and adds its effect. A refusal changes nothing.
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

    /// Adds the effect of a command.
    pub(crate) fn add(&mut self, applied: Applied) {
        let steps = applied.steps();
        let frees = |step: &&Transition| {
            matches!((step.from, step.to), (UnitState::Sold(_), UnitState::Free))
        };
        self.steps += steps.clone().count();
        self.freed += steps.filter(frees).count();
        self.applied.push(applied);
    }

    /// Tells whether `command` may join. The batch ends before a unit that it freed from SOLD may
    /// move again: each unit is written once, and the database lets a sold one only become free.
    pub(crate) fn has_room_for(&self, command: &Command) -> bool {
        self.steps < BATCH_STEPS_MAX && (self.freed == 0 || !may_move_free_units(command))
    }

    /// Finds the answer of an earlier command of this batch to the same key, if there is one.
    pub(crate) fn replay(&self, key: RequestKey) -> Option<Result<StoredReply, Rejection>> {
        replay_among(&self.records, key)
    }

    pub(crate) fn commits(&self) -> impl Iterator<Item = &Commit> {
        self.applied.iter().flat_map(|applied| &applied.commits)
    }

    /// Lists every transition, in the order in which they were made.
    pub(crate) fn steps(&self) -> impl Iterator<Item = &Transition> {
        self.applied.iter().flat_map(Applied::steps)
    }

    /// Takes the commits out of the batch, to publish them.
    pub(crate) fn take_commits(&mut self) -> impl Iterator<Item = Commit> {
        let applied = self.applied.iter_mut();
        applied.flat_map(|applied| std::mem::take(&mut applied.commits))
    }

    /// Tells whether a command made an event or changed it.
    pub(crate) fn renews_event(&self) -> bool {
        self.applied.iter().any(|applied| applied.event.is_some())
    }

    /// Lists every hold that changed, each once, sorted by id.
    pub(crate) fn holds(&self) -> Vec<HoldId> {
        distinct(self.applied.iter().flat_map(|done| &done.holds).copied())
    }

    /// Lists the holds that the batch creates, sorted by id.
    pub(crate) fn new_holds(&self) -> Vec<HoldId> {
        distinct(self.applied.iter().filter_map(|applied| {
            let Answer::Held(hold) = &applied.answer else {
                return None;
            };
            Some(hold.id)
        }))
    }

    /// Lists every booking that changed, each once, sorted by id.
    pub(crate) fn bookings(&self) -> Vec<BookingId> {
        distinct(self.applied.iter().flat_map(|done| &done.bookings).copied())
    }
}

/// Answers the callers of a stored batch. `seq` returns the feed number of a command, if any.
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

/// Sends an answer. A caller that has hung up gets none; its command is carried out all the same.
pub(crate) fn answer<T>(reply: Reply<T>, done: Result<T, Rejection>) {
    if reply.send(done).is_err() {
        tracing::trace!("no caller waits for the answer");
    }
}

/// Returns `ids` sorted and without duplicates.
pub(crate) fn distinct<T: Ord>(ids: impl Iterator<Item = T>) -> Vec<T> {
    let mut ids: Vec<T> = ids.collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

/// Finds the reply of the record that has the key of this request, if one of `records` has.
pub(crate) fn replay_among(
    records: &[Record],
    asked: RequestKey,
) -> Option<Result<StoredReply, Rejection>> {
    let mut records = records.iter();
    let (known, reply) = records.find(|(known, _)| known.scoped == asked.scoped)?;
    Some(replay(*known, reply, asked))
}

/// Compares a stored record with a request that has the same key, and returns the stored reply.
///
/// # Errors
/// `IdempotencyKeyReused` when the record is of another request: the fingerprints differ.
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

/// Tells whether a command may move units that are free.
const fn may_move_free_units(command: &Command) -> bool {
    match command {
        Command::Hold(_)
        | Command::Change(_)
        | Command::Sell { .. }
        | Command::Block { .. }
        | Command::Payment(_) => true,
        Command::CreateEvent(_)
        | Command::UpdateEvent { .. }
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
        | Command::SettleRefund { .. }
        | Command::Sweep { .. }
        | Command::Unblock { .. } => false,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use soldonce_core::{Answer, Cause, Fence, Origin, Transition, UnitNo, Version};

    use super::*;
    use crate::ledger::{Fingerprint, ScopedKey};

    /// Makes a commit that blocks so many units.
    pub(crate) fn commit(units: usize) -> Commit {
        let step = |unit| Transition {
            unit: UnitNo(unit),
            from: UnitState::Free,
            to: UnitState::Blocked,
            fence: Fence(1),
            version: Version(1),
            cause: Cause::Blocked,
            hold: None,
        };
        Commit {
            event: EventNo(0),
            seq: Seq(1),
            at: Timestamp::MIN,
            origin: Origin::system("test"),
            reason: None,
            transitions: (0..).map(step).take(units).collect(),
        }
    }

    #[test]
    fn a_batch_is_full_when_its_commands_made_so_many_steps() {
        let blocked = Applied {
            commits: vec![commit(BATCH_STEPS_MAX / 2)],
            ..Applied::unchanged(Answer::Swept(0))
        };
        let (mut batch, next) = (Batch::default(), Command::Sweep { limit: 1 });
        let has_room = [blocked.clone(), blocked].map(|blocked| {
            batch.add(blocked);
            batch.has_room_for(&next)
        });
        assert_eq!(has_room, [true, false]);
    }

    #[test]
    fn a_key_that_was_used_in_the_batch_has_its_answer_or_is_refused() {
        let key = |scoped, fingerprint| RequestKey {
            scoped: ScopedKey([scoped; 16]),
            fingerprint: Fingerprint([fingerprint; 16]),
        };
        let reply = StoredReply {
            kind: ReplyKind::Units,
            subject: [0; 16],
            body: Arc::from(&b"{"[..]),
        };
        let batch = Batch {
            records: vec![(key(1, 1), reply)],
            ..Batch::default()
        };
        assert!(batch.replay(key(1, 1)).unwrap().is_ok());
        let reused = batch.replay(key(1, 2)).unwrap();
        assert!(matches!(reused, Err(Rejection::IdempotencyKeyReused)));
        assert!(batch.replay(key(2, 1)).is_none());
    }

    #[test]
    fn an_event_is_renewed_by_a_command_that_changes_it() {
        let mut batch = Batch::default();
        batch.add(Applied::unchanged(Answer::Swept(1)));
        assert!(!batch.renews_event(), "the event's row would be written");
        let event = Some(EventNo(0));
        batch.add(Applied {
            event,
            ..Applied::unchanged(Answer::Swept(1))
        });
        assert!(batch.renews_event());
    }
}
