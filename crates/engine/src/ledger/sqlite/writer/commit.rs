//! A batch from decision to answer: reads the clock once, decides each command in memory, writes what was
//! accepted in one transaction, and answers after its COMMIT has returned.

use rusqlite::TransactionBehavior;
use soldonce_core::{Answer, Applied, Rejection, Seq, Timestamp};

use super::super::batch::{self, Batch};
use super::super::fault::Fault;
use super::super::tables::idempotency;
use super::{Reply, Writer};
use crate::ledger::{Decision, Done, Transaction};
use crate::webhook::Before;

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
            let mut batch = Batch::with_room(asked.len());
            while let Some((next, _)) = asked.as_slice().first()
                && batch.has_room_for(&next.command)
                && let Some((transaction, reply)) = asked.next()
            {
                self.take_in(now, transaction, reply, &mut batch)?;
            }
            self.finish(batch, now)?;
        }
        drop(asked);
        self.asked = taken;
        Ok(())
    }

    /// Decides a command, whose caller then waits for the batch.
    fn take_in(
        &mut self,
        now: Timestamp,
        transaction: Transaction,
        reply: Reply<Done>,
        batch: &mut Batch,
    ) -> Result<(), Fault> {
        // In place before the decision: a fault must not answer before it is known.
        let outcome = Outcome::Known(Err(Rejection::OutcomeUnknown));
        self.waiters.push(Waiter { reply, outcome });
        let decided = self.decide(now, transaction, batch)?;
        if let Some(waiter) = self.waiters.last_mut() {
            waiter.outcome = decided;
        }
        Ok(())
    }

    fn decide(
        &mut self,
        now: Timestamp,
        mut transaction: Transaction,
        batch: &mut Batch,
    ) -> Result<Outcome, Fault> {
        if let Some(known) = self.recall_stored(&transaction)? {
            return Ok(Outcome::Known(known));
        }
        self.page_in(&transaction.command)?;
        let chart = transaction.chart.take();
        // Without a subscriber nothing is published.
        let before = (!self.ends.endpoints.is_empty())
            .then(|| Before::of(&self.decider.inventory, &transaction.command));
        match self.decider.decide(now, transaction) {
            Decision::Refused(rejection) => Ok(Outcome::Known(Err(rejection))),
            Decision::Replay(reply) => Ok(Outcome::Known(Ok(Done::Replayed(reply)))),
            Decision::Applied(applied, record) => {
                if let Some(before) = before {
                    let messages = before.messages(&self.decider.inventory, &applied, now);
                    batch.messages.extend(messages);
                }
                batch.add(*applied, record, chart);
                Ok(Outcome::Applied(batch.applied.len() - 1))
            }
        }
    }

    /// Makes a batch durable and answers everybody who waits for it.
    fn finish(&mut self, mut batch: Batch, now: Timestamp) -> Result<(), Fault> {
        if batch.has_effect {
            let begun = self.outside.clock.boot();
            self.commit(&batch, now)?;
            let took = self.outside.clock.boot().since(begun);
            self.decider.unload_replies(&batch.records);
            let inventory = &self.decider.inventory;
            self.outside
                .shared
                .note_holds(inventory, batch.changed_holds().into_iter());
            self.outside.observer.batch(self.waiters.len(), took);
            self.outside.observer.committed(inventory, &batch.applied);
        }
        let (holds, bookings) = (batch.changed_holds(), batch.changed_bookings());
        self.answer(std::mem::take(&mut batch.applied));
        self.let_go(&holds, &bookings);
        self.tidy_log()
    }

    /// One transaction. A failure in it is final.
    fn commit(&mut self, batch: &Batch, now: Timestamp) -> Result<(), Fault> {
        self.checkpointer.state()?;
        let ended = self.ended_records(now)?;
        let behavior = TransactionBehavior::Immediate;
        let transaction = self.connection.transaction_with_behavior(behavior)?;
        batch::write(
            &transaction,
            &self.decider.inventory,
            batch,
            &mut self.ends,
            now,
        )?;
        idempotency::write(&transaction, &batch.records, now)?;
        if let Some(last) = ended {
            idempotency::forget(&transaction, last)?;
        }
        transaction.commit()?;
        if let Some(last) = ended {
            self.decider.forget_records(last);
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
