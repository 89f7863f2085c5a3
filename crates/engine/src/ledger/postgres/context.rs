//! Refreshes the cache of an event, stores what was decided on it, and publishes it.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use soldonce_clock::Clock;
use soldonce_core::{Conflict, ConflictState, EventNo, HoldId, Rejection, Timestamp, Unavailable};
use tokio_util::sync::CancellationToken;

use super::bind::bind;
use super::charts::Charts;
use super::database::{Connection, Database};
use super::event_slot::{Catalogue, EventSlot};
use super::failure::Failure;
use super::feed::own_batches::OwnBatches;
use super::horizon::LastTurn;
use super::read_set::ReadSet;
use super::replica::{Replica, ToLoad};
use super::resolve;
use super::tables::{Id, bookings, idempotency, int};
use super::time::Time;
use super::write::{Dispatch, RowTypes, Statement};
use crate::ledger::batch::{Batch, replay_among};
use crate::ledger::rows::reader::Reader;
use crate::ledger::rows::replies::{Record, get_record};
use crate::ledger::{Observer, RequestKey};
use crate::locks::lock;
use crate::pause::pause;
use crate::reply::StoredReply;
use crate::trouble::Trouble;

/// Takes the event's advisory lock exclusively, as `store_batch_12` takes it.
const LOCK_EVENT: &str = "-- lock_event
SELECT lock_event_12($1, true)";

/// The parts that all tasks of a ledger share.
pub(super) struct Context {
    pub(super) database: Database,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) time: Time,
    pub(super) observer: Arc<dyn Observer>,
    pub(super) catalogue: Catalogue,
    pub(super) charts: Charts,
    /// The events of holds that this server made and that are not over: asking the database each
    /// time would cost a round trip for every confirm.
    pub(super) hold_events: Mutex<HashMap<HoldId, EventNo>>,
    /// The last `n` of `dropped_events` that this server knows.
    pub(super) known_dropped: AtomicI64,
    pub(super) own_batches: OwnBatches,
    pub(super) numbered: Mutex<LastTurn>,
    /// The types of rows, by their OIDs in this database.
    pub(super) row_types: RowTypes,
    /// Names this process in what it writes.
    pub(super) server: Id,
    /// The count in [`Context::batch_id`] and [`Context::place`].
    pub(super) next_batch: AtomicU64,
    pub(super) open: AtomicBool,
    /// Whether the database took the last push of the clock.
    pub(super) is_reachable: AtomicBool,
    /// Events whose cache is to be read anew even if no command comes: what this server stored of
    /// them may not have been published.
    pub(super) cold: Mutex<BTreeSet<EventNo>>,
    /// Limits how often the log tells that the database is away.
    pub(super) trouble: Mutex<Trouble>,
}

/// The outcome of a batch.
pub(super) enum BatchOutcome {
    /// It is durable and published.
    Yes,
    /// Others wrote first: decide it anew on what they wrote.
    Anew,
    /// The database's own guards refused it: the cache is wrong and is read anew.
    Wrong,
    /// The guards refuse this one command on a cache that was just read, too.
    Refused(Rejection),
    /// It was not stored, and trying again is of no use now.
    No(Rejection),
}

impl Context {
    pub(super) fn is_open(&self) -> bool {
        self.open.load(Ordering::Acquire)
    }

    /// Tells whether the database took the last push of the clock. The result is at most as old as
    /// the interval of the pushes plus the time that an answer may take. A push that failed because
    /// of contention, or because no connection was free, does not change it.
    pub(super) fn is_reachable(&self) -> bool {
        self.is_reachable.load(Ordering::Acquire)
    }

    pub(super) fn note_cold(&self, event: EventNo) {
        lock(&self.cold).insert(event);
    }

    /// Logs that commands could not be carried out. An outage of the database fails every batch: it
    /// is logged only once in a while.
    pub(super) fn complain(&self, failure: &Failure) {
        let is_told = match failure {
            Failure::Away(_) | Failure::Standby | Failure::Full(_) => {
                lock(&self.trouble).lasts(self.clock.boot())
            }
            Failure::Refused { .. } | Failure::Unknown(_) | Failure::Damaged(_) => true,
        };
        if is_told {
            tracing::warn!(%failure, "commands could not be carried out");
        }
    }

    pub(super) fn take_cold(&self) -> BTreeSet<EventNo> {
        std::mem::take(&mut *lock(&self.cold))
    }

    /// Waits `ms` milliseconds. Returns false, at once, if the ledger is shut down meanwhile.
    pub(super) async fn pause(&self, shutdown: &CancellationToken, ms: u64) -> bool {
        pause(&*self.clock, shutdown, ms).await
    }

    /// Creates an id of a batch from the time, this server's own count and random bits of this
    /// server: it rises with time, and is unique over all servers.
    pub(super) fn batch_id(&self) -> Id {
        let at = u128::try_from(self.clock.wall_ms()).unwrap_or(0) << 80;
        let count = u128::from(self.next_batch.fetch_add(1, Ordering::Relaxed)) << 40;
        let server = u128::from_be_bytes(self.server.0) & 0xff_ffff_ffff;
        let low = (count | server) & ((1 << 80) - 1);
        Id((at | low).to_be_bytes())
    }

    /// Brings the cache of an event up to date with the database, and loads what is `named`.
    ///
    /// # Errors
    /// [`Failure`]; then the cache is as it was, or is read anew the next time.
    pub(super) async fn refresh(
        &self,
        connection: &mut Connection,
        slot: &EventSlot,
        replica: &mut Replica,
        named: &ToLoad,
    ) -> Result<(), Failure> {
        if let Some(batch) = replica.unresolved {
            let resolved = resolve::resolve_once(connection, batch, self.server).await;
            resolved.map_err(Failure::of_read)?;
            replica.unresolved = None;
        }
        let news = replica
            .refresh(connection, &self.charts, self.server, named)
            .await
            .map_err(Failure::of_read)?;
        self.time.reached(replica.latest);
        for hold in news.ended {
            lock(&self.hold_events).remove(&hold);
        }
        slot.note_end(&replica.inventory);
        if news.event {
            self.observer.event_changed(&replica.inventory, slot.no);
        }
        if !news.units.is_empty() {
            self.observer
                .refreshed(&replica.inventory, slot.no, &news.units);
        }
        Ok(())
    }

    /// Reads the idempotency records of these keys. A key that was not used has none.
    pub(super) async fn records(
        &self,
        connection: &mut Connection,
        keys: &[RequestKey],
    ) -> Result<Vec<Record>, Failure> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let keys: Vec<Id> = keys.iter().map(|key| Id(key.scoped.0)).collect();
        let (records, keys) = ((idempotency::RECORDS, "idempotency"), [bind(&keys)]);
        let records = connection.read(records, &keys, get_record);
        records.await.map_err(Failure::of_read)
    }

    /// Finds the stored answer to the same request. None without a key, or if it was not used.
    ///
    /// # Errors
    /// `IdempotencyKeyReused` when the key was used for another request; those of the database.
    pub(super) async fn replay(
        &self,
        key: Option<RequestKey>,
    ) -> Result<Option<StoredReply>, Rejection> {
        let Some(key) = key else { return Ok(None) };
        let mut connection = self.database.connection().await?;
        replay_among(&self.records(&mut connection, &[key]).await?, key).transpose()
    }

    /// Opens a transaction on this connection that holds the event's advisory lock exclusively: until it ends,
    /// no server stores anything for the event, and everything stored before is visible.
    ///
    /// # Errors
    /// [`Failure`]; after contention the transaction is rolled back.
    pub(super) async fn lock_event(
        &self,
        connection: &mut Connection,
        event: EventNo,
    ) -> Result<(), Failure> {
        let event = int(event.0)?;
        connection.begin_write().await?;
        let taken = connection.rows(LOCK_EVENT, &[bind(&event)]).await;
        if taken.as_ref().is_err_and(Failure::is_contention) {
            connection.roll_back().await;
        }
        taken.map(drop)
    }

    /// Gives a batch that was decided on `replica` a fresh id and its read set.
    pub(super) fn dispatch<'a>(
        &self,
        replica: &Replica,
        batch: &'a Batch,
        now: Timestamp,
    ) -> Dispatch<'a> {
        Dispatch {
            batch,
            holds: batch.holds(),
            read_set: ReadSet::of(batch, replica, now),
            id: self.batch_id(),
            server: self.server,
            now,
            given: self.time.given(),
            types: self.row_types.clone(),
        }
    }

    /// Stores a batch that was decided on `replica`, and ends the inventory's trial: its changes in
    /// memory are kept if the batch was stored, rolled back if not.
    pub(super) async fn store(
        &self,
        connection: &mut Connection,
        replica: &mut Replica,
        batch: &mut Batch,
        now: Timestamp,
    ) -> BatchOutcome {
        let dispatch = self.dispatch(replica, batch, now);
        let begun = self.clock.boot();
        let outcome = match Statement::new(replica, &dispatch) {
            Ok(statement) => statement.send(connection, (&self.time, &*self.clock)).await,
            Err(failure) => Err(failure),
        };
        let outcome = match outcome {
            Err(Failure::Unknown(why)) => self.resolve(replica, &dispatch, why).await,
            known => known,
        };
        match outcome {
            Ok(Some(written)) => {
                self.time.reached(written);
                let (id, holds) = (dispatch.id, dispatch.holds);
                replica.take_over(batch, dispatch.read_set.accounts);
                let took = self.clock.boot().since(begun);
                self.observer.batch(batch.applied.len(), took);
                self.observer
                    .stored_unnumbered(&replica.inventory, &batch.applied);
                self.note_holds(replica, &holds);
                replica.evict(holds, batch.bookings());
                self.own_batches.add(id, written, batch.take_commits());
                BatchOutcome::Yes
            }
            Ok(None) => {
                replica.inventory.roll_back();
                BatchOutcome::Anew
            }
            Err(failure) => {
                replica.inventory.roll_back();
                if failure.is_holder_known() {
                    replica.holders.exist(&dispatch.read_set.accounts);
                }
                if failure.is_contention() || failure.is_key_taken() {
                    return BatchOutcome::Anew;
                }
                if failure.contradicts_cache() {
                    self.distrust(replica, &failure);
                    return BatchOutcome::Wrong;
                }
                tracing::warn!(%failure, "a batch was not stored");
                BatchOutcome::No(failure.into())
            }
        }
    }

    /// Marks the cache of an event as wrong, so that it is read anew, and logs `failure`.
    fn distrust(&self, replica: &mut Replica, failure: &Failure) {
        let event = replica.no.0;
        tracing::error!(event, %failure, "what this server remembers is wrong: it is read anew");
        self.observer.distrusted();
        replica.forget();
    }

    /// Returns why the database refuses a batch that was decided on a cache just read: bookings have its units,
    /// though the units' own rows do not say so. `soldonce verify` finds such damage.
    pub(super) async fn sold_already(
        &self,
        connection: &mut Connection,
        slot: &EventSlot,
        batch: &Batch,
    ) -> Result<Rejection, Failure> {
        let units = batch.steps().map(|step| int(step.unit.0));
        let (no, units) = (int(slot.no.0)?, units.collect::<Result<Vec<_>, _>>()?);
        let values = [bind(&no), bind(&units)];
        let conflict = |row: &mut Reader<'_>| {
            Ok(Conflict::Seat {
                unit: row.get()?,
                state: ConflictState::Sold,
                retry_after: None,
            })
        };
        let conflicts = connection.read((bookings::SOLD_UNITS, "lines"), &values, conflict);
        let conflicts = conflicts.await?;
        if conflicts.is_empty() {
            return Ok(Rejection::Overloaded);
        }
        Ok(Rejection::UnitUnavailable(Box::new(Unavailable {
            conflicts,
            alternatives: Vec::new(),
            seq: slot.shown(),
        })))
    }

    /// Finds out whether a batch without an answer was stored, and when.
    async fn resolve(
        &self,
        replica: &mut Replica,
        dispatch: &Dispatch<'_>,
        why: String,
    ) -> Result<Option<Timestamp>, Failure> {
        tracing::warn!(why, "a batch got no answer");
        let ids = (dispatch.id, dispatch.server);
        let resolved = resolve::resolve(&self.database, &self.clock, ids).await;
        if resolved.is_err() {
            replica.forget_until_resolved(dispatch.id);
        }
        resolved
    }

    /// Remembers the events of those holds that are live, and forgets those of the others.
    fn note_holds(&self, replica: &Replica, holds: &[HoldId]) {
        let mut events = lock(&self.hold_events);
        for id in holds {
            let hold = replica.inventory.hold(*id);
            if hold.is_some_and(|hold| !hold.state.is_terminal()) {
                events.insert(*id, replica.no);
            } else {
                events.remove(id);
            }
        }
    }

    /// Picks the open place of an area from which on a command that lost a race takes places. At
    /// first all take the first ones, as on every ledger; those that lost would meet there again.
    pub(super) fn place(&self) -> u32 {
        let server = u64::try_from(u128::from_be_bytes(self.server.0) & 0xffff_ffff).unwrap_or(0);
        // Never the same for two of one server.
        let count = self.next_batch.fetch_add(1, Ordering::Relaxed);
        u32::try_from(server.wrapping_add(count) & 0xffff_ffff).unwrap_or(0)
    }
}
