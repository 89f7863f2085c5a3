//! A batch from decision to answer: reads the clock once, decides each command in memory, writes what was
//! accepted in one transaction, and answers after its COMMIT has returned.

use rusqlite::TransactionBehavior;
use soldonce_core::{Answer, Applied, Rejection, Seq, Timestamp};

use super::super::batch;
use super::super::fault::Fault;
use super::super::tables::idempotency;
use super::{Reply, Writer};
use crate::ledger::batch::{Batch, Decided, Writers};
use crate::ledger::{Done, Transaction};

/// One who waits for the batch.
pub(super) struct Waiter {
    reply: Reply<Done>,
    outcome: Outcome,
}

enum Outcome {
    /// It is this one of the batch's applied commands.
    Applied(usize),
    Known(Result<Done, Rejection>),
}

impl Writer {
    /// Carries out everything that was asked, in as many commits as its size takes.
    pub(super) fn work(&mut self) -> Result<(), Fault> {
        // Given back at the end, so that its memory is used again.
        let mut taken = std::mem::take(&mut self.asked);
        let mut asked = taken.drain(..);
        while asked.len() > 0 {
            let now = self.outside.shared.now();
            let mut batch = Batch::default();
            while let Some((next, _)) = asked.as_slice().first()
                && batch.has_room_for(&next.command)
                && let Some((transaction, reply)) = asked.next()
            {
                self.enter(now, &transaction, reply, &mut batch)?;
            }
            self.finish(batch, now)?;
        }
        drop(asked);
        self.asked = taken;
        Ok(())
    }

    /// Decides a command, whose caller then waits for the batch.
    fn enter(
        &mut self,
        now: Timestamp,
        asked: &Transaction,
        reply: Reply<Done>,
        batch: &mut Batch,
    ) -> Result<(), Fault> {
        // In place before the decision: a fault must not answer before it is known.
        let outcome = Outcome::Known(Err(Rejection::OutcomeUnknown));
        self.waiters.push(Waiter { reply, outcome });
        let decided = self.decide(now, asked, batch)?;
        if let Some(waiter) = self.waiters.last_mut() {
            waiter.outcome = decided;
        }
        Ok(())
    }

    fn decide(
        &mut self,
        now: Timestamp,
        asked: &Transaction,
        batch: &mut Batch,
    ) -> Result<Outcome, Fault> {
        if let Some(key) = asked.key {
            let known = match batch.replay(key) {
                Some(known) => Some(known),
                None => self.replay_stored(key, &asked.command)?,
            };
            if let Some(known) = known {
                return Ok(Outcome::Known(known.map(Done::Replayed)));
            }
        }
        self.load(&asked.command)?;
        let writers = Writers::One {
            is_heard: !self.ends.endpoints.is_empty(),
        };
        let decided = batch.decide(&mut self.inventory, now, asked, writers);
        Ok(match decided {
            Ok(Decided::Applied(at)) => Outcome::Applied(at),
            Ok(Decided::NoEffect(answer)) => Outcome::Known(Ok(Done::Fresh { answer, seq: None })),
            Err(rejection) => Outcome::Known(Err(rejection)),
        })
    }

    /// Makes a batch durable and answers everybody who waits for it.
    fn finish(&mut self, mut batch: Batch, now: Timestamp) -> Result<(), Fault> {
        if !batch.applied.is_empty() {
            let begun = self.outside.clock.boot();
            self.commit(&batch, now)?;
            let took = self.outside.clock.boot().since(begun);
            let inventory = &self.inventory;
            self.outside
                .shared
                .note_holds(inventory, batch.holds().into_iter());
            self.outside.observer.batch(self.waiters.len(), took);
            self.outside.observer.committed(inventory, &batch.applied);
        }
        let (holds, bookings) = (batch.holds(), batch.bookings());
        self.answer(std::mem::take(&mut batch.applied));
        self.evict(&holds, &bookings);
        self.tidy_log()
    }

    /// One transaction. A failure in it is final.
    fn commit(&mut self, batch: &Batch, now: Timestamp) -> Result<(), Fault> {
        self.checkpointer.state()?;
        let ended = self.ended_records(now)?;
        let behavior = TransactionBehavior::Immediate;
        let transaction = self.connection.transaction_with_behavior(behavior)?;
        batch::write(&transaction, &self.inventory, batch, &mut self.ends, now)?;
        idempotency::write(&transaction, &batch.records, self.keys.next(), now)?;
        if let Some(last) = ended {
            idempotency::forget(&transaction, last)?;
        }
        transaction.commit()?;
        self.keys.add_all(&batch.records);
        if let Some(last) = ended {
            self.keys.forget(last);
        }
        self.high_water.write(&self.ends.head)
    }

    fn answer(&mut self, applied: Vec<Applied>) {
        let answer = |applied: Applied| -> (Answer, Option<Seq>) {
            let seq = applied.commits.first().map(|commit| commit.seq);
            (applied.answer, seq)
        };
        let mut answers: Vec<_> = applied.into_iter().map(answer).map(Some).collect();
        for Waiter { reply, outcome } in self.waiters.drain(..) {
            let done = match outcome {
                Outcome::Known(known) => known,
                Outcome::Applied(at) => match answers.get_mut(at).and_then(Option::take) {
                    Some((answer, seq)) => Ok(Done::Fresh { answer, seq }),
                    None => Err(Rejection::OutcomeUnknown),
                },
            };
            // A caller that has gone away gets no answer: the command is carried out all the same.
            if reply.send(done).is_err() {
                tracing::trace!("nobody waits for the answer");
            }
        }
    }

    /// Refuses everybody who waits for the batch: nothing of it is stored.
    pub(super) fn refuse(&mut self, why: &Rejection) {
        for waiter in self.waiters.drain(..) {
            if waiter.reply.send(Err(why.clone())).is_err() {
                tracing::trace!("nobody waits for the answer");
            }
        }
    }
}
