//! The ledger as its callers see it: commands go to their events; reads that are no commands, and the API keys.

use std::sync::atomic::Ordering;

use soldonce_core::{
    Booking, BookingId, Commit, EventId, EventNo, History, Hold, HoldId, HoldTerms, Holder, Origin,
    Rejection, Seq, Span, Timestamp, UnitNo,
};

use super::bind::{Value, bind};
use super::context::Context;
use super::database::{Connection, Database};
use super::failure::Failure;
use super::limits::HOLDS_WAIT_MS;
use super::replica::{SNAPSHOT, bookings_by_id};
use super::tables::{Id, audit, bookings, holder_key, holds, int, keys, most, outbox};
use super::{PostgresLedger, finish, tasks};
use crate::keys::{ApiKey, KeyId};
use crate::ledger::rows::column::Column;
use crate::ledger::rows::effects::get_open;
use crate::ledger::rows::holds::get as get_hold;
use crate::ledger::rows::keys::{get as get_key, put, scopes};
use crate::ledger::rows::reader::{Reader, column};
use crate::ledger::{
    Done, Ledger, LedgerFuture, MadeAt, MasterKey, OpenEffect, Page, Read, ReadError, Transaction,
    Webhooks, Write,
};

impl Ledger for PostgresLedger {
    fn is_shared(&self) -> bool {
        true
    }

    fn find_new_events(&self) -> Read<'_, ()> {
        Box::pin(self.parts.find_new_events())
    }

    fn transact(&self, transaction: Transaction) -> Write<'_, Done> {
        Box::pin(self.parts.route(transaction))
    }

    fn hold(&self, hold: HoldId) -> Read<'_, Option<Hold>> {
        Box::pin(async move { Ok(self.holds_by_id(&[Id(*hold.bytes())]).await?.pop()) })
    }

    fn booking(&self, booking: BookingId) -> Read<'_, Option<Booking>> {
        Box::pin(async move {
            let mut connection = self.database().connection().await?;
            let found = whole(&mut connection, &[Id(*booking.bytes())]).await?;
            Ok(found.into_iter().next())
        })
    }

    fn holds_of(&self, holder: Holder, (before, limit): Page<HoldId>) -> Read<'_, Vec<Hold>> {
        Box::pin(async move {
            let mut ids = ids_of_holds(&self.parts.context, &holder).await?;
            ids.retain(|id| before.is_none_or(|before| *id < before));
            ids.sort_unstable();
            let newest = ids.into_iter().rev().take(limit);
            let mut found = self.holds_by_id(&holds::ids(newest)).await?;
            found.sort_unstable_by_key(|hold| std::cmp::Reverse(hold.id));
            Ok(found)
        })
    }

    fn bookings_of(&self, holder: Holder, page: Page<BookingId>) -> Read<'_, Vec<Booking>> {
        let (before, limit) = page;
        Box::pin(async move {
            let (key, limit) = (holder_key(&holder), most(limit));
            let before = Id(before.map_or([u8::MAX; 16], |id| *id.bytes()));
            let values = [bind(&key), bind(&before), bind(&limit)];
            let found = self.bookings_selected_by(bookings::BOOKINGS_OF_HOLDER, &values);
            let mut found = found.await?;
            found.reverse();
            Ok(found)
        })
    }

    fn holds_in(&self, event: EventNo, (after, limit): Page<HoldId>) -> Read<'_, Vec<Hold>> {
        Box::pin(async move {
            let after = Id(after.map_or([0; 16], |id| *id.bytes()));
            let (event, limit) = (int(event.0)?, most(limit));
            let values = [bind(&event), bind(&after), bind(&limit)];
            let found = self.database().read(holds::HOLDS_AFTER, &values, get_hold);
            Ok(found.await?)
        })
    }

    fn bookings_in(&self, event: EventNo, page: Page<BookingId>) -> Read<'_, Vec<Booking>> {
        let (after, limit) = page;
        Box::pin(async move {
            let after = Id(after.map_or([0; 16], |id| *id.bytes()));
            let (event, limit) = (int(event.0)?, most(limit));
            let values = [bind(&event), bind(&after), bind(&limit)];
            let found = self.bookings_selected_by(bookings::BOOKINGS_AFTER, &values);
            Ok(found.await?)
        })
    }

    fn take_effects(&self, keep: Span, limit: usize) -> Read<'_, Vec<OpenEffect>> {
        Box::pin(async move {
            let context = &self.parts.context;
            let now = context.time.now();
            let (until, now, limit) = (now.plus(keep).ms(), now.ms(), most(limit));
            let server = bind(&context.server);
            let values = [server, bind(&now), bind(&until), bind(&limit)];
            let taken = (outbox::TAKE_EFFECTS, "outbox");
            Ok(self.database().read(taken, &values, get_open).await?)
        })
    }

    fn overdue_effects(&self, before: Timestamp) -> Read<'_, Vec<OpenEffect>> {
        Box::pin(async move {
            let before = before.ms();
            let values = [bind(&before)];
            let overdue = (outbox::OVERDUE_EFFECTS, "outbox");
            Ok(self.database().read(overdue, &values, get_open).await?)
        })
    }

    fn unsettled(&self, before: Timestamp, (after, limit): Page<MadeAt>) -> Read<'_, Vec<Booking>> {
        Box::pin(async move {
            let (before, limit) = (before.ms(), most(limit));
            let (at, id) = after.unwrap_or((Timestamp::MIN, BookingId::from_bytes([0; 16])));
            let (at, id) = (at.ms(), Id(*id.bytes()));
            // One that is later than now was made before the clock was set back.
            let now = self.parts.context.time.now().ms();
            let (before, now) = (bind(&before), bind(&now));
            let values = [before, now, bind(&limit), bind(&at), bind(&id)];
            let found = self.bookings_selected_by(bookings::UNSETTLED_BOOKINGS, &values);
            Ok(found.await?)
        })
    }

    fn unit_history(&self, event: EventNo, unit: UnitNo, limit: usize) -> Read<'_, Vec<Commit>> {
        Box::pin(async move {
            let mut connection = self.database().connection().await?;
            Ok(unit_history(&mut connection, event, unit, limit).await?)
        })
    }

    fn history(&self, event: EventId) -> Read<'_, History> {
        Box::pin(async move { history(&self.parts.context, &event).await })
    }

    fn drop_event(&self, event: EventNo, keep: Span, origin: Origin) -> Write<'_, Timestamp> {
        Box::pin(self.parts.drop_event(event, keep, origin))
    }

    fn clear_dropped(&self) -> Write<'_, bool> {
        Box::pin(async move { Ok(self.parts.context.clear_dropped().await?) })
    }

    fn keys(&self) -> Read<'_, Vec<ApiKey>> {
        Box::pin(async move {
            let all = (keys::API_KEYS, "api_keys");
            Ok(self.database().read(all, &[], get_key).await?)
        })
    }

    fn add_key(&self, key: ApiKey) -> Write<'_, ()> {
        Box::pin(async move {
            let scopes = scopes(&key);
            let columns = put(&key, &scopes);
            let values: Vec<Value<'_>> = columns.iter().map(Column::sent).collect();
            self.database().rows(keys::ADD_API_KEY, &values).await?;
            Ok(())
        })
    }

    fn revoke_key(&self, key: KeyId, at: Timestamp) -> Write<'_, bool> {
        Box::pin(async move {
            let (id, at) = (Id(*key.bytes()), at.ms());
            let values = [bind(&id), bind(&at)];
            let rows = self.database().rows(keys::REVOKE_API_KEY, &values).await?;
            Ok(!rows.is_empty())
        })
    }

    fn webhooks(&self) -> &dyn Webhooks {
        self
    }

    fn master_keys(&self) -> Vec<MasterKey> {
        self.masters.clone()
    }

    fn now(&self) -> Timestamp {
        self.parts.context.time.now()
    }

    fn is_writable(&self) -> bool {
        self.parts.context.is_open() && self.parts.context.is_reachable()
    }

    fn close(&self) -> LedgerFuture<'_, ()> {
        self.parts.context.open.store(false, Ordering::Release);
        self.shutdown.cancel();
        for slot in self.parts.context.catalogue.all() {
            slot.close(Rejection::ShuttingDown);
        }
        let tasks = std::mem::take(&mut *self.parts.tasks());
        Box::pin(async move {
            finish(tasks).await;
            // What is stored and shown stays readable.
            if let Err(failure) = tasks::push_clock(&self.parts.context).await {
                tracing::debug!(%failure, "the ledger's clock was not pushed on at the end");
            }
        })
    }
}

impl PostgresLedger {
    pub(super) fn database(&self) -> &Database {
        &self.parts.context.database
    }

    async fn holds_by_id(&self, ids: &[Id]) -> Result<Vec<Hold>, Failure> {
        let by_id = [bind(&ids)];
        self.database().read(holds::HOLDS, &by_id, get_hold).await
    }

    /// Reads the bookings whose ids a statement selects, in the order of ids.
    async fn bookings_selected_by(
        &self,
        sql: &'static str,
        values: &[Value<'_>],
    ) -> Result<Vec<Booking>, Failure> {
        let mut connection = self.database().connection().await?;
        let ids: Vec<Id> = connection.read((sql, "bookings"), values, column).await?;
        whole(&mut connection, &ids).await
    }
}

/// Reads bookings with their lines, by id, in one snapshot: another server may commit between two
/// statements.
async fn whole(connection: &mut Connection, ids: &[Id]) -> Result<Vec<Booking>, Failure> {
    connection.begin(SNAPSHOT).await?;
    let found = bookings_by_id(connection, ids).await;
    let found = connection.finish(found).await?;
    Ok(found.into_iter().map(|row| row.booking).collect())
}

/// Reads the newest `limit` transitions of a unit, oldest first, each as a commit of its own.
pub(super) async fn unit_history(
    connection: &mut Connection,
    event: EventNo,
    unit: UnitNo,
    limit: usize,
) -> Result<Vec<Commit>, Failure> {
    let (no, unit, limit) = (int(event.0)?, int(unit.0)?, most(limit));
    let values = [bind(&no), bind(&unit), bind(&limit)];
    let read = |row: &mut Reader<'_>| audit::get_one(event, row);
    let history = connection.read((audit::AUDIT_OF_UNIT, "audit"), &values, read);
    let mut history = history.await?;
    history.reverse();
    Ok(history)
}

/// Lists the live holds of a holder.
async fn ids_of_holds(context: &Context, holder: &Holder) -> Result<Vec<HoldId>, Failure> {
    let (mut ids, mut stored) = (Vec::new(), Vec::new());
    let until = context.clock.boot().plus_ms(HOLDS_WAIT_MS);
    for slot in context.catalogue.all() {
        tokio::select! {
            biased;
            replica = slot.replica.lock() => {
                if replica.is_cold() {
                    stored.push(int(slot.no.0)?);
                } else {
                    ids.extend(replica.inventory.holds_of(slot.no, holder));
                }
            }
            () = context.clock.sleep_until(until) => stored.push(int(slot.no.0)?),
        }
    }
    if !stored.is_empty() {
        ids.extend(stored_holds_of(context, holder, &stored).await?);
    }
    Ok(ids)
}

/// Reads from the database the live holds of a holder in events whose cache is locked or cold.
async fn stored_holds_of(
    context: &Context,
    holder: &Holder,
    events: &[i32],
) -> Result<Vec<HoldId>, Failure> {
    let (key, caller) = (holder_key(holder), Id(*holder.caller.bytes()));
    let name = holder.name.as_str();
    let values = [bind(&events), bind(&key), bind(&caller), bind(&name)];
    let mut connection = context.database.connection().await?;
    let ids = connection.read((holds::HOLDS_OF_HOLDER, "holds"), &values, column);
    ids.await
}

/// Reads the history of an event. Commits without numbers yet get those that follow.
async fn history(context: &Context, id: &EventId) -> Result<History, ReadError> {
    let missing = || ReadError::Failed(format!("there is no event `{id}`"));
    let event = context.catalogue.find(id).ok_or_else(missing)?;
    let slot = context.catalogue.slot(event).ok_or_else(missing)?;
    let units = {
        let replica = slot.replica.lock().await;
        let event = replica.inventory.event(event);
        event.map_or(0, |event| event.chart.units())
    };
    let no = int(event.0)?;
    let (database, of_event) = (&context.database, [bind(&no)]);
    let rows = database.rows(audit::AUDIT_OF_EVENT, &of_event).await?;
    let mut commits = audit::read(event, &rows)?;
    let mut last = Seq::default();
    for commit in &mut commits {
        if commit.seq == Seq::default() || commit.seq < last {
            commit.seq = last.next();
        }
        last = commit.seq;
    }
    let read = |row: &mut Reader<'_>| Ok(HoldTerms::from(&get_hold(row)?));
    let holds = database.read(holds::HOLDS_OF_EVENT, &of_event, read);
    let holds = holds.await?;
    // Read last: terms that have not changed by now did not change before.
    let mut connection = context.database.connection().await?;
    let row = context.charts.event_of(&mut connection, no).await?;
    Ok(History {
        units,
        terms: row.and_then(|row| row.steady_terms()),
        holds,
        commits,
    })
}
