//! A batch from decision to answer: reads the clock once, decides each command in memory, writes
//! what was accepted in one transaction, and answers after its COMMIT has returned.

use rusqlite::TransactionBehavior;
use soldonce_core::{Applied, Rejection, Timestamp};

use super::super::batch;
use super::super::fault::Fault;
use super::super::tables::idempotency;
use super::Writer;
use crate::ledger::batch::{Batch, Outcome, Reply, Writers, answer, answer_all};
use crate::ledger::{Done, Transaction};

impl Writer {
    /// Carries out all queued commands, in as many commits as their size takes.
    pub(super) fn work(&mut self) -> Result<(), Fault> {
        // Put back at the end, so that its memory is used again.
        let mut taken = std::mem::take(&mut self.queued);
        let mut queued = taken.drain(..);
        while queued.len() > 0 {
            let now = self.deps.shared.now();
            let mut batch = Batch::default();
            while let Some((next, _)) = queued.as_slice().first()
                && batch.has_room_for(&next.command)
                && let Some((transaction, reply)) = queued.next()
            {
                self.enter(now, &transaction, reply, &mut batch)?;
            }
            self.finish(batch, now)?;
        }
        drop(queued);
        self.queued = taken;
        Ok(())
    }

    /// Decides a command; its caller then waits for the batch.
    fn enter(
        &mut self,
        now: Timestamp,
        transaction: &Transaction,
        reply: Reply<Done>,
        batch: &mut Batch,
    ) -> Result<(), Fault> {
        // Pushed first: if a fault dropped `reply`, it would answer before the ledger is read-only.
        let outcome = Outcome::Known(Err(Rejection::OutcomeUnknown));
        self.waiters.push((reply, outcome));
        let decided = self.decide(now, transaction, batch)?;
        if let Some((_, outcome)) = self.waiters.last_mut() {
            *outcome = decided;
        }
        Ok(())
    }

    fn decide(
        &mut self,
        now: Timestamp,
        transaction: &Transaction,
        batch: &mut Batch,
    ) -> Result<Outcome, Fault> {
        if let Some(key) = transaction.key {
            let known = match batch.replay(key) {
                Some(known) => Some(known),
                None => self.replay_stored(key, &transaction.command)?,
            };
            if let Some(known) = known {
                return Ok(Outcome::Known(known.map(Done::Replayed)));
            }
        }
        self.load(&transaction.command)?;
        let writers = Writers::One {
            is_heard: !self.tails.endpoints.is_empty(),
        };
        Ok(batch.decide(&mut self.inventory, now, transaction, writers))
    }

    /// Makes a batch durable and answers its callers.
    fn finish(&mut self, batch: Batch, now: Timestamp) -> Result<(), Fault> {
        if !batch.applied.is_empty() {
            let begun = self.deps.clock.boot();
            self.commit(&batch, now)?;
            let took = self.deps.clock.boot().since(begun);
            let inventory = &self.inventory;
            self.deps
                .shared
                .note_holds(inventory, batch.holds().into_iter());
            self.deps.observer.batch(self.waiters.len(), took);
            self.note_hashes(&batch);
            self.deps.observer.committed(inventory, &batch.applied);
        }
        let (holds, bookings) = (batch.holds(), batch.bookings());
        let seq = |applied: &Applied| Some(applied.commits.first()?.seq);
        answer_all(batch.applied, self.waiters.drain(..), seq);
        self.evict(&holds, &bookings);
        self.tidy_log()
    }

    /// Tells the observer where the audits end to which the batch was added.
    fn note_hashes(&self, batch: &Batch) {
        for event in batch::moved_events(batch) {
            if let Some(chain) = self.tails.chains.get(event.index()) {
                self.deps.observer.chained(event, &chain.hash);
            }
        }
    }

    /// Writes the batch in one transaction. A failure in it is final.
    fn commit(&mut self, batch: &Batch, now: Timestamp) -> Result<(), Fault> {
        self.checkpointer.state()?;
        let ended = self.ended_records(now)?;
        let behavior = TransactionBehavior::Immediate;
        let transaction = self.connection.transaction_with_behavior(behavior)?;
        batch::write(&transaction, &self.inventory, batch, &mut self.tails, now)?;
        idempotency::write(&transaction, &batch.records, self.keys.next(), now)?;
        if let Some(last) = ended {
            idempotency::forget(&transaction, last)?;
        }
        transaction.commit()?;
        self.keys.add_all(&batch.records);
        if let Some(last) = ended {
            self.keys.forget(last);
        }
        self.high_water.write(&self.tails.head)
    }

    /// Refuses the commands of the batch with `why`: nothing of it is stored.
    pub(super) fn refuse(&mut self, why: &Rejection) {
        for (reply, _) in self.waiters.drain(..) {
            answer(reply, Err(why.clone()));
        }
    }
}
