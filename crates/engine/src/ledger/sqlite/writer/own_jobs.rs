//! Jobs that are no commands: webhook endpoints, dropped events, the clock. Each has a commit of its own.

use rusqlite::{Connection, TransactionBehavior};

use soldonce_core::{EventNo, Origin, Rejection, Span, Timestamp};

use super::Writer;
use crate::ledger::sqlite::fault::Fault;
use crate::ledger::sqlite::limits::CLEAR_ROWS_MAX;
use crate::ledger::sqlite::tables::audit::Chain;
use crate::ledger::sqlite::tables::{deliveries, dropped, endpoints, idempotency};
use crate::ledger::{AddOutcome, NewEndpoint, Tombstone, require_room};
use crate::webhook::{Attempt, Endpoint, EndpointChange, EndpointId};

impl Writer {
    /// Marks an event as dropped and removes it from memory. Its rows are deleted later.
    pub(in super::super) fn drop_event(
        &mut self,
        event: EventNo,
        keep: Span,
        origin: Origin,
    ) -> Result<Result<Timestamp, Rejection>, Fault> {
        let inventory = &self.inventory;
        let found = match inventory.require_event(event) {
            Ok(found) => found.clone(),
            Err(rejection) => return Ok(Err(rejection)),
        };
        let at = self.deps.shared.now();
        let mut open = dropped::event_use(&self.connection, event, at)?;
        open.open += u64::try_from(inventory.live_holds(event)).unwrap_or(u64::MAX);
        if let Err(rejection) = found.require_droppable(at, open, keep) {
            return Ok(Err(rejection));
        }
        let chain = self.tails.chains.get_mut(event.index());
        let chain = chain.ok_or_else(|| Fault::damaged("chains", "one is missing"))?;
        let tombstone = Tombstone::new(at, origin, (chain.seq, chain.hash));
        *chain = Chain::gone(&tombstone);
        self.commit_at(at, |tables| dropped::insert(tables, event, &tombstone))?;
        self.inventory.drop_event(event);
        self.deps.observer.event_dropped(event, &found.id);
        Ok(Ok(at))
    }

    /// Deletes some rows of an event that was dropped; returns whether there may be more.
    pub(in super::super) fn clear_dropped(&mut self) -> Result<bool, Fault> {
        let next = dropped::next(&self.connection)?;
        if let Some(event) = next {
            self.own_commit(|tables| dropped::clear(tables, event, CLEAR_ROWS_MAX))?;
        }
        Ok(next.is_some())
    }

    pub(in super::super) fn change_endpoint(
        &mut self,
        id: EndpointId,
        change: EndpointChange,
        at: Timestamp,
    ) -> Result<Option<Endpoint>, Fault> {
        let (changed, all) = self.own_commit(|tables| {
            let changed = endpoints::change(tables, id, change, at)?;
            Ok((changed, endpoints::all(tables)?))
        })?;
        self.tails.endpoints = all;
        Ok(changed)
    }

    pub(in super::super) fn note_attempts(&mut self, attempts: &[Attempt]) -> Result<(), Fault> {
        let known = self.tails.endpoints.clone();
        self.tails.endpoints = self.own_commit(|tables| {
            let counted = deliveries::note(tables, attempts)?;
            endpoints::note(tables, known, &counted)
        })?;
        Ok(())
    }

    /// Stores an endpoint with the record of its key, or returns the reply stored for the same key.
    pub(in super::super) fn add_endpoint(
        &mut self,
        new: NewEndpoint,
    ) -> Result<Result<AddOutcome, Rejection>, Fault> {
        if let Some(key) = new.key
            && let Some(known) = self.replay_newest(key)?
        {
            return Ok(known.map(AddOutcome::Replayed));
        }
        if let Err(full) = require_room(self.tails.endpoints.len()) {
            return Ok(Err(full));
        }
        let now = self.deps.shared.now();
        let first = self.keys.next();
        let records = Vec::from_iter(new.key.map(|key| (key, new.reply)));
        self.commit_at(now, |tables| {
            endpoints::insert(tables, &new.endpoint)?;
            idempotency::write(tables, &records, first, now)
        })?;
        self.keys.add_all(&records);
        self.tails.endpoints.push(new.endpoint);
        Ok(Ok(AddOutcome::Stored))
    }

    /// Commits the ledger's time if it is ahead of the machine's: the next start continues from the
    /// last commit, and holds would get the time since then once more.
    pub(super) fn keep_clock(&mut self) -> Result<(), Fault> {
        let now = self.deps.shared.now();
        if now.ms() > self.deps.clock.wall_ms() {
            self.commit_at(now, |_| Ok(()))?;
        }
        Ok(())
    }

    /// Runs `write` in a commit of its own.
    pub(in super::super) fn own_commit<T>(
        &mut self,
        write: impl FnOnce(&Connection) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        self.commit_at(self.deps.shared.now(), write)
    }

    fn commit_at<T>(
        &mut self,
        now: Timestamp,
        write: impl FnOnce(&Connection) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        self.checkpointer.state()?;
        let connection = &mut self.connection;
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let written = write(&transaction)?;
        self.tails.head = self.tails.head.then(now, std::iter::empty());
        self.tails.head.update(&transaction)?;
        transaction.commit()?;
        self.high_water.write(&self.tails.head)?;
        Ok(written)
    }
}
