//! The queue of an event: commands that arrive while a statement runs, and right after it, are stored
//! together by the next one. One commit acknowledges many; commands for the same unit are decided in memory
//! before the database sees them. A bug here sells no unit twice: the statement and the database's own keys
//! refuse.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use soldonce_clock::BootTime;
use soldonce_core::{Command, Rejection, Span, Timestamp, Wish};
use tokio::sync::mpsc;

use super::context::{BatchOutcome, Context};
use super::database::Connection;
use super::event_slot::{EventSlot, Job};
use super::failure::Failure;
use super::limits::{
    ANSWER_MS, BATCH_MAX, BELIEVED_TRIES_MAX, CANCEL_AHEAD_MS_MAX, GATHER_TURNS_MAX, QUEUE_MAX,
    TRIES_MAX,
};
use super::replica::{Replica, ToLoad};
use crate::catch_panic::catch_panic;
use crate::ledger::batch::{Batch, Outcome, Writers, answer_all, replay_among};
use crate::ledger::{Done, RequestKey, Transaction};

/// Carries out the commands of one event until its queue is closed.
pub(super) async fn run(
    context: Arc<Context>,
    slot: Arc<EventSlot>,
    mut jobs: mpsc::Receiver<Job>,
) {
    let (mut taken, mut connection) = (Vec::with_capacity(BATCH_MAX), None);
    let patience = Duration::from_millis(ANSWER_MS);
    while next(&mut jobs, &mut taken, &mut connection).await {
        let mut replica = if let Ok(replica) = slot.replica.try_lock() {
            replica
        } else {
            // Given back before the wait: the task that has the cache may be waiting for a connection.
            connection = None;
            slot.replica.lock().await
        };
        // A change of the event rests on its row alone. Behind holds of units that other servers never leave at
        // rest it would be refused with them.
        taken.sort_by_key(|job| !changes_event(job));
        let mut round = Round {
            context: &context,
            slot: &slot,
            replica: &mut replica,
            connection: &mut connection,
            waiting: taken.drain(..).collect(),
            is_fresh: false,
            place: 0,
            most: BATCH_MAX,
            ahead: Span::default(),
        };
        let begun = context.clock.boot();
        let done = catch_panic(round.work()).await;
        if done.is_none() {
            // A panic drops the jobs: their callers get `OutcomeUnknown`. The cache may be half changed.
            replica.forget();
        }
        if replica.is_cold() {
            context.note_cold(slot.no);
        }
        drop(replica);
        let Some(done) = done else { continue };
        let is_silent = context.clock.boot().since(begun) >= patience;
        if let Err(why) = done
            && is_silent
        {
            // The database does not answer: those in the queue have waited as long, and would wait again.
            refuse_waiting(&mut jobs, &why);
        }
    }
}

/// Takes the next batch; returns whether there is one. While commands keep coming, the connection of the last
/// batch is kept: another one would have to read and plan the statement first.
async fn next(
    jobs: &mut mpsc::Receiver<Job>,
    taken: &mut Vec<Job>,
    connection: &mut Option<Connection>,
) -> bool {
    gather(jobs, taken).await;
    if !taken.is_empty() {
        return true;
    }
    *connection = None;
    if jobs.recv_many(taken, BATCH_MAX).await == 0 {
        return false;
    }
    gather(jobs, taken).await;
    true
}

/// Yields, so that callers just answered can queue again: a half batch costs nearly as much as a full one.
async fn gather(jobs: &mut mpsc::Receiver<Job>, taken: &mut Vec<Job>) {
    for _ in 0..GATHER_TURNS_MAX {
        let before = taken.len();
        tokio::task::yield_now().await;
        taken.extend((before..BATCH_MAX).map_while(|_| jobs.try_recv().ok()));
        if taken.len() == before {
            return;
        }
    }
}

fn refuse_waiting(jobs: &mut mpsc::Receiver<Job>, why: &Rejection) {
    for _ in 0..QUEUE_MAX {
        let Ok(job) = jobs.try_recv() else { return };
        job.answer(Err(why.clone()));
    }
}

/// The commands of one batch, until each has its answer.
struct Round<'a> {
    context: &'a Context,
    slot: &'a EventSlot,
    replica: &'a mut Replica,
    /// The connection of the previous batch.
    connection: &'a mut Option<Connection>,
    waiting: VecDeque<Job>,
    /// The cache was read after every waiting command arrived, so refusals are final.
    is_fresh: bool,
    /// The open place of an area from which on commands take places.
    place: u32,
    /// Most commands of one statement: one, once the database refused some together.
    most: usize,
    /// How far ahead of the clock a cancellation is decided.
    ahead: Span,
}

impl Round<'_> {
    /// Carries out and answers all commands.
    ///
    /// # Errors
    /// The answer to the last of them, when the database did not answer.
    async fn work(&mut self) -> Result<(), Rejection> {
        let mut tries = 0;
        while tries < TRIES_MAX {
            if self.waiting.is_empty() {
                return Ok(());
            }
            let before = self.waiting.len();
            tries += 1;
            if let Err(failure) = self.step().await {
                self.context.complain(&failure);
                // Commands that were sent have their answers; these were not sent.
                let why = Rejection::from(failure.of_read());
                self.refuse(&why);
                return Err(why);
            }
            if self.waiting.len() < before {
                tries = 0;
            }
            if tries == BELIEVED_TRIES_MAX {
                // The cause does not matter: the cache is not what is stored.
                self.replica.forget();
            }
        }
        self.refuse(&Rejection::Overloaded);
        Ok(())
    }

    /// Refuses all that still wait.
    fn refuse(&mut self, why: &Rejection) {
        for job in self.waiting.drain(..) {
            job.answer(Err(why.clone()));
        }
    }

    /// Decides what waits and stores it. Commands without an answer stay in `waiting`.
    async fn step(&mut self) -> Result<(), Failure> {
        let context = self.context;
        let mut connection = match self.connection.take().filter(Connection::may_stay) {
            Some(connection) => connection,
            None => context.database.connection().await?,
        };
        let named = ToLoad::of(self.waiting.iter().map(|job| &job.transaction.command));
        let loads = self.replica.loads;
        if !self.read(&mut connection, &named).await? {
            return Ok(());
        }
        let is_new = self.replica.loads > loads;
        let now = decision_time(context.time.now(), self.waiting.front(), self.ahead);
        let begun = context.clock.boot();
        self.replica.inventory.begin_trial(self.place);
        let mut batch = Batch::default();
        let (decided, retried) = self.decide(now, &mut batch);
        let stored = if batch.applied.is_empty() {
            self.replica.inventory.keep();
            if connection.in_transaction() {
                connection.roll_back().await;
            }
            BatchOutcome::Yes
        } else {
            let store = context.store(&mut connection, self.replica, &mut batch, now);
            store.await
        };
        let is_single = is_new && batch.applied.len() == 1;
        let stored = if is_single && matches!(stored, BatchOutcome::Wrong) {
            let why = context.sold_already(&mut connection, self.slot, &batch);
            BatchOutcome::Refused(why.await.unwrap_or_else(Rejection::from))
        } else {
            stored
        };
        *self.connection = Some(connection).filter(Connection::may_stay);
        self.replica.evict(named.holds, named.bookings);
        self.slot.note_end(&self.replica.inventory);
        self.waiting = retried;
        self.conclude(stored, (decided, begun), batch)
    }

    /// Answers commands whose outcome is known. Puts the others back into `waiting`.
    fn conclude(
        &mut self,
        stored: BatchOutcome,
        (decided, begun): (Vec<(Job, Outcome)>, BootTime),
        batch: Batch,
    ) -> Result<(), Failure> {
        match stored {
            BatchOutcome::Yes => {
                let waiting = decided.into_iter();
                let waiting = waiting.map(|(job, outcome)| (job.reply, outcome));
                answer_all(batch.applied, waiting, |_| None);
            }
            BatchOutcome::Anew => {
                if self.is_fresh {
                    self.place = self.context.place();
                }
                if decided.iter().any(|(job, _)| calls_off(job)) {
                    self.ahead = ahead_after(self.context.clock.boot().since(begun));
                }
                self.again(decided);
            }
            // One of them may be what the database refuses, not the others.
            BatchOutcome::Wrong => {
                self.most = 1;
                self.again(decided);
            }
            BatchOutcome::No(_) if batch.applied.len() > 1 && !self.replica.is_cold() => {
                self.most = 1;
                self.again(decided);
            }
            BatchOutcome::Refused(why) => {
                let is_applied = |one: &(Job, Outcome)| matches!(one.1, Outcome::Applied(_));
                let (refused, others) = decided.into_iter().partition(is_applied);
                self.again(others);
                for (job, _) in refused {
                    job.answer(Err(why.clone()));
                }
            }
            BatchOutcome::No(why) => {
                for (job, _) in decided {
                    job.answer(Err(why.clone()));
                }
                if self.replica.unresolved.is_some() {
                    let why = "it is unknown whether a batch was stored".to_owned();
                    return Err(Failure::Unknown(why));
                }
            }
        }
        // The commands that are left need an answer from what is stored now.
        self.is_fresh = true;
        Ok(())
    }

    /// Queues these again, before the others.
    fn again(&mut self, decided: Vec<(Job, Outcome)>) {
        let again = decided.into_iter().map(|(job, _)| job);
        self.waiting = again.chain(self.waiting.drain(..)).collect();
    }

    /// Refreshes the cache as the waiting commands need it. A cancellation ends very many holds, so it
    /// locks the event exclusively, from before it reads to its commit. False if that lock was not
    /// free.
    async fn read(&mut self, connection: &mut Connection, named: &ToLoad) -> Result<bool, Failure> {
        let is_exclusive = self.waiting.iter().any(calls_off);
        // A cold cache is not asked what it knows: it may be half changed.
        let must_read = self.replica.is_cold()
            || (!is_exclusive && (self.is_fresh || !self.replica.knows(named)))
            || self.waiting.iter().any(chooses);
        if must_read {
            self.refresh(connection, named).await?;
        }
        if is_exclusive {
            match self.context.lock_event(connection, self.slot.no).await {
                Err(failure) if failure.is_contention() => return Ok(false),
                taken => taken?,
            }
            self.refresh(connection, named).await?;
        }
        Ok(true)
    }

    async fn refresh(
        &mut self,
        connection: &mut Connection,
        named: &ToLoad,
    ) -> Result<(), Failure> {
        let context = self.context;
        let refresh = context.refresh(connection, self.slot, self.replica, named);
        refresh.await?;
        self.replay_known(connection).await?;
        self.is_fresh = true;
        Ok(())
    }

    /// Answers commands whose key was used before.
    async fn replay_known(&mut self, connection: &mut Connection) -> Result<(), Failure> {
        let key = |job: &Job| job.transaction.key;
        let keys: Vec<RequestKey> = self.waiting.iter().filter_map(key).collect();
        let records = self.context.records(connection, &keys).await?;
        if records.is_empty() {
            return Ok(());
        }
        for job in std::mem::take(&mut self.waiting) {
            match key(&job).and_then(|key| replay_among(&records, key)) {
                Some(known) => job.answer(known.map(Done::Replayed)),
                None => self.waiting.push_back(job),
            }
        }
        Ok(())
    }

    /// Decides what waits, as much as one statement may store. Returns the decided commands, and those that
    /// another step must answer.
    fn decide(
        &mut self,
        now: Timestamp,
        batch: &mut Batch,
    ) -> (Vec<(Job, Outcome)>, VecDeque<Job>) {
        let (mut decided, mut retried) = (Vec::new(), VecDeque::new());
        while batch.applied.len() < self.most
            && let Some(next) = self.waiting.front()
            && may_join(batch, next)
            && let Some(job) = self.waiting.pop_front()
        {
            let is_alone = changes_event(&job);
            match self.decide_one(now, &job.transaction, batch) {
                Some(outcome) => decided.push((job, outcome)),
                None => retried.push_back(job),
            }
            if is_alone {
                break;
            }
        }
        retried.extend(self.waiting.drain(..));
        (decided, retried)
    }

    /// Decides a command on the cache and adds what it did to the batch. None when another step must answer it: its
    /// key is that of a command before it in this batch, or it has no effect and the cache may be old.
    fn decide_one(
        &mut self,
        now: Timestamp,
        transaction: &Transaction,
        batch: &mut Batch,
    ) -> Option<Outcome> {
        let key = transaction.key;
        if key.is_some_and(|key| batch.replay(key).is_some()) {
            return None;
        }
        match batch.decide(&mut self.replica.inventory, now, transaction, Writers::Many) {
            Outcome::Known(_) if !self.is_fresh => None,
            Outcome::Known(Err(Rejection::UnitUnavailable(mut why))) => {
                // The number that the feed shows, in place of that of this server's cache.
                why.seq = self.slot.shown();
                Some(Outcome::Known(Err(Rejection::UnitUnavailable(why))))
            }
            outcome @ (Outcome::Applied(_) | Outcome::Known(_)) => Some(outcome),
        }
    }
}

/// Tells whether the command changes the event itself: its time has other bounds than that of
/// others, so it is stored alone.
fn changes_event(job: &Job) -> bool {
    let command = &job.transaction.command;
    matches!(
        command,
        Command::UpdateEvent { .. } | Command::CancelEvent { .. }
    )
}

/// Tells whether the command may join the batch. A change of the event joins no other command: all of a batch have the
/// bounds of its time.
fn may_join(batch: &Batch, job: &Job) -> bool {
    let is_first = batch.applied.is_empty();
    (is_first || !changes_event(job)) && batch.has_room_for(&job.transaction.command)
}

/// Tells whether the command calls the event off: it ends holds that every server changes meanwhile.
fn calls_off(job: &Job) -> bool {
    matches!(job.transaction.command, Command::CancelEvent { .. })
}

/// Computes how far ahead of the clock a cancellation is decided: as far as the try before took, and a quarter more.
/// With very many holds one may end in each try before they are compared.
fn ahead_after(took: Duration) -> Span {
    let took = u64::try_from(took.as_millis()).unwrap_or(CANCEL_AHEAD_MS_MAX);
    let ahead = took.saturating_add(took / 4);
    Span::from_ms(ahead.min(CANCEL_AHEAD_MS_MAX))
}

/// Returns the time at which a batch that begins with `next` is decided. Only a cancellation is `ahead` of the clock.
/// The refusal of another command is not compared with the database's clock: its hold would be over before its end.
fn decision_time(clock: Timestamp, next: Option<&Job>, ahead: Span) -> Timestamp {
    match next {
        Some(next) if calls_off(next) => clock.plus(ahead),
        Some(_) | None => clock,
    }
}

/// Tells whether the engine picks the units: that needs the current state of all seats.
fn chooses(job: &Job) -> bool {
    let command = &job.transaction.command;
    matches!(command, Command::Hold(new) if matches!(new.wish, Wish::Best { .. }))
}

#[cfg(test)]
mod tests {
    use soldonce_core::{Answer, Applied, EventNo, Origin, Text};
    use tokio::sync::oneshot;

    use super::*;

    fn job() -> Job {
        job_of(Command::Sweep { limit: 1 })
    }

    fn cancellation() -> Job {
        job_of(Command::CancelEvent {
            event: EventNo(0),
            reason: Text::parse("rain").unwrap(),
        })
    }

    fn job_of(command: Command) -> Job {
        Job {
            transaction: Transaction {
                origin: Origin::system("test"),
                command,
                key: None,
                chart: None,
            },
            reply: oneshot::channel().0,
        }
    }

    async fn send_one_by_one(queue: &mpsc::Sender<Job>, count: usize) {
        for _ in 0..count {
            queue.try_send(job()).ok().unwrap();
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn a_batch_takes_what_comes_while_it_yields_and_no_more_than_it_may_have() {
        let (queue, mut jobs) = mpsc::channel(QUEUE_MAX);
        let mut taken = Vec::new();
        tokio::join!(biased; gather(&mut jobs, &mut taken), send_one_by_one(&queue, 3));
        assert_eq!(taken.len(), 3);
        for _ in 0..BATCH_MAX {
            queue.try_send(job()).ok().unwrap();
        }
        gather(&mut jobs, &mut taken).await;
        assert_eq!((taken.len(), jobs.len()), (BATCH_MAX, 3));
    }

    #[test]
    fn a_change_of_the_event_joins_no_other_command() {
        let mut batch = Batch::default();
        let may = |batch: &Batch| [cancellation(), job()].map(|job| may_join(batch, &job));
        assert_eq!(may(&batch), [true, true]);
        batch.add(Applied::unchanged(Answer::Swept(1)));
        assert_eq!(may(&batch), [false, true]);
    }

    #[test]
    fn a_cancellation_is_decided_a_quarter_more_ahead_than_it_took_and_not_too_far() {
        for (took, ahead) in [(3, 3), (400, 500), (1_199, 1_498), (9_000, 1_500)] {
            assert_eq!(ahead_after(Duration::from_millis(took)).ms(), ahead);
        }
        assert_eq!(ahead_after(Duration::MAX).ms(), CANCEL_AHEAD_MS_MAX);
    }

    /// Checks the case that a cancellation which was too slow has its answer from elsewhere before the next try.
    #[test]
    fn only_a_cancellation_is_decided_ahead_of_the_clock() {
        let (clock, ahead) = (Timestamp::from_ms(1_000), Span::from_ms(300));
        let time = |next: Option<&Job>| decision_time(clock, next, ahead).ms();
        assert_eq!(time(Some(&cancellation())), 1_300);
        assert_eq!(time(Some(&job())), 1_000);
        assert_eq!(time(None), 1_000);
    }
}
