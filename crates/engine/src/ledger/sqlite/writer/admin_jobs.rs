//! Jobs that touch no event: keys, webhooks. Each has a commit of its own.

use rusqlite::{Connection, TransactionBehavior};

use soldonce_core::{EventNo, Origin, Rejection, Span, Timestamp};

use super::Writer;
use crate::keys::{ApiKey, KeyId};
use crate::ledger::batch::{Reply, answer};
use crate::ledger::sqlite::fault::Fault;
use crate::ledger::sqlite::limits::CLEAR_ROWS_MAX;
use crate::ledger::sqlite::tables::audit::Chain;
use crate::ledger::sqlite::tables::{deliveries, dropped, endpoints, idempotency, keys};
use crate::ledger::{Added, NewEndpoint, Tombstone, require_room};
use crate::webhook::{Attempt, Delivery, Endpoint, EndpointChange, EndpointId, MessageId};

/// Such a job.
pub(crate) enum AdminJob {
    AddKey(ApiKey, Reply<()>),
    RevokeKey(KeyId, Timestamp, Reply<bool>),
    AddEndpoint(Box<NewEndpoint>, Reply<Added>),
    ChangeEndpoint(
        EndpointId,
        EndpointChange,
        Timestamp,
        Reply<Option<Endpoint>>,
    ),
    NoteAttempts(Vec<Attempt>, Reply<()>),
    Resend(EndpointId, MessageId, Timestamp, Reply<Option<Delivery>>),
    /// Deliveries before this, and at most so many.
    ForgetDeliveries(Timestamp, usize, Reply<usize>),
    DropEvent(EventNo, Span, Origin, Reply<Timestamp>),
    /// Whether rows of dropped events may be left.
    ClearDropped(Reply<bool>),
}

impl Writer {
    pub(super) fn admin(&mut self, job: AdminJob) -> Result<(), Fault> {
        match job {
            AdminJob::AddKey(key, reply) => {
                tell(reply, self.own_commit(|tables| keys::insert(tables, &key))?);
            }
            AdminJob::RevokeKey(key, at, reply) => {
                tell(
                    reply,
                    self.own_commit(|tables| keys::revoke(tables, key, at))?,
                );
            }
            AdminJob::AddEndpoint(new, reply) => {
                let added = self.add_endpoint(*new)?;
                answer(reply, added);
            }
            AdminJob::ChangeEndpoint(id, change, at, reply) => {
                let change = |tables: &_| {
                    let changed = endpoints::change(tables, id, change, at)?;
                    Ok((changed, endpoints::all(tables)?))
                };
                let (changed, all) = self.own_commit(change)?;
                self.tails.endpoints = all;
                tell(reply, changed);
            }
            AdminJob::NoteAttempts(attempts, reply) => {
                let known = self.tails.endpoints.clone();
                let note = |tables: &_| {
                    let counted = deliveries::note(tables, &attempts)?;
                    endpoints::note(tables, known, &counted)
                };
                self.tails.endpoints = self.own_commit(note)?;
                tell(reply, ());
            }
            AdminJob::Resend(endpoint, message, at, reply) => {
                let resend = |tables: &_| deliveries::resend(tables, endpoint, message, at);
                tell(reply, self.own_commit(resend)?);
            }
            AdminJob::ForgetDeliveries(before, limit, reply) => {
                let forget = |tables: &_| deliveries::forget(tables, before, limit);
                tell(reply, self.own_commit(forget)?);
            }
            AdminJob::DropEvent(event, keep, origin, reply) => {
                let done = self.drop_event(event, keep, origin)?;
                answer(reply, done);
            }
            AdminJob::ClearDropped(reply) => {
                let next = dropped::next(&self.connection)?;
                if let Some(event) = next {
                    self.own_commit(|tables| dropped::clear(tables, event, CLEAR_ROWS_MAX))?;
                }
                tell(reply, next.is_some());
            }
        }
        Ok(())
    }

    /// Marks an event as dropped, then forgets it. Its rows are deleted later.
    fn drop_event(
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

    /// Answered before: the answer again. Else stored, with the record of its key.
    fn add_endpoint(&mut self, new: NewEndpoint) -> Result<Result<Added, Rejection>, Fault> {
        if let Some(key) = new.key
            && let Some(known) = self.replay_newest(key)?
        {
            return Ok(known.map(Added::Replayed));
        }
        if let Err(full) = require_room(self.tails.endpoints.len()) {
            return Ok(Err(full));
        }
        let now = self.deps.shared.now();
        let NewEndpoint {
            endpoint,
            key,
            reply,
        } = new;
        let (records, first) = (
            Vec::from_iter(key.map(|key| (key, reply))),
            self.keys.next(),
        );
        self.commit_at(now, |tables| {
            endpoints::insert(tables, &endpoint)?;
            idempotency::write(tables, &records, first, now)
        })?;
        self.keys.add_all(&records);
        self.tails.endpoints.push(endpoint);
        Ok(Ok(Added::Stored))
    }

    /// Writes down where the ledger's clock stands while it is ahead of the machine's: the next start goes on
    /// from the last commit, and holds would have their time since then once more.
    pub(super) fn keep_clock(&mut self) -> Result<(), Fault> {
        let now = self.deps.shared.now();
        if now.ms() > self.deps.clock.wall_ms() {
            self.commit_at(now, |_| Ok(()))?;
        }
        Ok(())
    }

    fn own_commit<T>(
        &mut self,
        write: impl FnOnce(&Connection) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let now = self.deps.shared.now();
        self.commit_at(now, write)
    }

    fn commit_at<T>(
        &mut self,
        now: Timestamp,
        write: impl FnOnce(&Connection) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        self.checkpointer.state()?;
        let transaction = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)?;
        let written = write(&transaction)?;
        self.tails.head = self.tails.head.then(now, std::iter::empty());
        self.tails.head.update(&transaction)?;
        transaction.commit()?;
        self.high_water.write(&self.tails.head)?;
        Ok(written)
    }
}

fn tell<T>(reply: Reply<T>, value: T) {
    answer(reply, Ok(value));
}
