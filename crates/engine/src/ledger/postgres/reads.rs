//! Reads that are no commands, and the API keys.

use std::time::Duration;

use soldonce_core::{
    Booking, BookingId, Commit, EventId, EventNo, History, Hold, HoldId, HoldTerms, Holder, Seq,
    Span, Timestamp, UnitNo,
};
use tokio_postgres::Row;

use super::bind::{Value, bind};
use super::context::Context;
use super::database::Connection;
use super::failure::Failure;
use super::feed;
use super::limits::{COMMITS_READ_MAX, HOLDS_WAIT_MS};
use super::replica::{SNAPSHOT, bookings_by_id};
use super::tables::{
    Columns, Id, audit, bookings, events, holder_key, holds, int, keys, most, outbox,
};
use crate::keys::{ApiKey, KeyId};
use crate::ledger::rows::column::Column;
use crate::ledger::rows::keys::{put, scopes};
use crate::ledger::rows::to_i64;
use crate::ledger::{MadeAt, OpenEffect, ReadError};

/// A hold by its id.
pub(super) async fn hold(context: &Context, hold: HoldId) -> Result<Option<Hold>, Failure> {
    Ok(holds_by_id(context, &[Id(*hold.bytes())]).await?.pop())
}

async fn holds_by_id(context: &Context, ids: &[Id]) -> Result<Vec<Hold>, Failure> {
    let database = &context.database;
    database
        .read(holds::HOLDS, &[bind(&ids)], holds::read)
        .await
}

/// A booking by its id.
pub(super) async fn booking(context: &Context, id: BookingId) -> Result<Option<Booking>, Failure> {
    let mut connection = context.database.connection().await?;
    let found = whole(&mut connection, &[Id(*id.bytes())]).await?;
    Ok(found.into_iter().next())
}

/// Bookings with their lines, by id. Both are read in one state: another server may commit between two
/// statements.
async fn whole(connection: &mut Connection, ids: &[Id]) -> Result<Vec<Booking>, Failure> {
    connection.begin(SNAPSHOT).await?;
    match bookings_by_id(connection, ids).await {
        Ok(found) => {
            connection.commit().await?;
            Ok(found.into_iter().map(|row| row.booking).collect())
        }
        Err(failure) => {
            connection.roll_back().await;
            Err(failure)
        }
    }
}

/// The newest holds of a holder that are not over and older than `before`.
pub(super) async fn holds_of(
    context: &Context,
    holder: &Holder,
    before: Option<HoldId>,
    limit: usize,
) -> Result<Vec<Hold>, Failure> {
    let (mut ids, mut taken) = (Vec::new(), Vec::new());
    let until = context
        .clock
        .boot()
        .plus(Duration::from_millis(HOLDS_WAIT_MS));
    for slot in context.catalogue.all() {
        tokio::select! {
            biased;
            replica = slot.replica.lock() => {
                ids.extend(replica.inventory.holds_of(slot.no, holder));
            }
            () = context.clock.sleep_until(until) => taken.push(int(slot.no.0)?),
        }
    }
    if !taken.is_empty() {
        ids.extend(stored_holds_of(context, holder, &taken).await?);
    }
    ids.retain(|id| before.is_none_or(|before| *id < before));
    ids.sort_unstable();
    let newest = ids.into_iter().rev().take(limit);
    let mut found = holds_by_id(context, &holds::ids(newest)).await?;
    found.sort_unstable_by_key(|hold| std::cmp::Reverse(hold.id));
    Ok(found)
}

/// Returns the live holds of a holder in events whose cache is locked: as they are stored.
async fn stored_holds_of(
    context: &Context,
    holder: &Holder,
    events: &[i32],
) -> Result<Vec<HoldId>, Failure> {
    let (key, caller) = (holder_key(holder), Id(*holder.caller.bytes()));
    let name = holder.name.as_str();
    let values = [bind(&events), bind(&key), bind(&caller), bind(&name)];
    let rows = context
        .database
        .rows(holds::HOLDS_OF_HOLDER, &values)
        .await?;
    let id = |row: &Row| -> Result<HoldId, Failure> {
        let id: Id = Columns::new(row, "holds").get(0)?;
        Ok(HoldId::from_bytes(id.0))
    };
    rows.iter().map(id).collect()
}

/// Returns the ids of bookings in the first column.
fn booking_ids(rows: &[Row]) -> Result<Vec<Id>, Failure> {
    let ids = rows.iter().map(|row| Columns::new(row, "bookings").get(0));
    Ok(ids.collect::<Result<_, _>>()?)
}

/// The newest bookings of a holder that are older than `before`.
pub(super) async fn bookings_of(
    context: &Context,
    holder: &Holder,
    before: Option<BookingId>,
    limit: usize,
) -> Result<Vec<Booking>, Failure> {
    let (key, limit) = (holder_key(holder), most(limit));
    let mut connection = context.database.connection().await?;
    let before = Id(before.map_or([u8::MAX; 16], |id| *id.bytes()));
    let values = [bind(&key), bind(&before), bind(&limit)];
    let rows = connection
        .rows(bookings::BOOKINGS_OF_HOLDER, &values)
        .await?;
    let mut found = whole(&mut connection, &booking_ids(&rows)?).await?;
    found.reverse();
    Ok(found)
}

/// The holds of an event after an id, in the order of their ids.
pub(super) async fn holds_in(
    context: &Context,
    event: EventNo,
    after: Option<HoldId>,
    limit: usize,
) -> Result<Vec<Hold>, Failure> {
    let after = Id(after.map_or([0; 16], |id| *id.bytes()));
    let (event, limit) = (int(event.0)?, most(limit));
    let values = [bind(&event), bind(&after), bind(&limit)];
    let database = &context.database;
    database
        .read(holds::HOLDS_AFTER, &values, holds::read)
        .await
}

/// The bookings of an event after an id, in the order of their ids.
pub(super) async fn bookings_in(
    context: &Context,
    event: EventNo,
    after: Option<BookingId>,
    limit: usize,
) -> Result<Vec<Booking>, Failure> {
    let after = Id(after.map_or([0; 16], |id| *id.bytes()));
    let (event, limit) = (int(event.0)?, most(limit));
    let values = [bind(&event), bind(&after), bind(&limit)];
    let mut connection = context.database.connection().await?;
    let rows = connection.rows(bookings::BOOKINGS_AFTER, &values).await?;
    let mut found = whole(&mut connection, &booking_ids(&rows)?).await?;
    found.sort_unstable_by_key(|booking| booking.id);
    Ok(found)
}

/// Bookings behind `after` whose payment is not at its end, or whose money must go back, oldest first. One that is
/// later than now was made before the clock was set back.
pub(super) async fn unsettled(
    context: &Context,
    before: Timestamp,
    after: Option<MadeAt>,
    limit: usize,
) -> Result<Vec<Booking>, Failure> {
    let (before, limit) = (before.ms(), most(limit));
    let (at, id) = after.unwrap_or((Timestamp::MIN, BookingId::from_bytes([0; 16])));
    let (at, id) = (at.ms(), Id(*id.bytes()));
    let now = context.time.now().ms();
    let mut connection = context.database.connection().await?;
    let values = [
        bind(&before),
        bind(&now),
        bind(&limit),
        bind(&at),
        bind(&id),
    ];
    let rows = connection
        .rows(bookings::UNSETTLED_BOOKINGS, &values)
        .await?;
    whole(&mut connection, &booking_ids(&rows)?).await
}

/// The oldest effect of each booking that no other server works on.
pub(super) async fn take_effects(
    context: &Context,
    keep: Span,
    limit: usize,
) -> Result<Vec<OpenEffect>, Failure> {
    let now = context.time.now();
    let (until, now, limit) = (now.plus(keep).ms(), now.ms(), most(limit));
    let values = [
        bind(&context.server),
        bind(&now),
        bind(&until),
        bind(&limit),
    ];
    let database = &context.database;
    database
        .read(outbox::TAKE_EFFECTS, &values, outbox::read)
        .await
}

/// The oldest effect of each booking, if it was left before `before`.
pub(super) async fn overdue_effects(
    context: &Context,
    before: Timestamp,
    limit: usize,
) -> Result<Vec<OpenEffect>, Failure> {
    let (before, limit) = (before.ms(), most(limit));
    let values = [bind(&before), bind(&limit)];
    let database = &context.database;
    database
        .read(outbox::OVERDUE_EFFECTS, &values, outbox::read)
        .await
}

/// Every transition of a unit, oldest first.
pub(super) async fn unit_history(
    context: &Context,
    (event, unit): (EventNo, UnitNo),
    limit: usize,
) -> Result<Vec<Commit>, Failure> {
    let (no, unit, limit) = (int(event.0)?, int(unit.0)?, most(limit));
    let values = [bind(&no), bind(&unit), bind(&limit)];
    let read = |row: &Row| audit::read_one(event, row);
    context
        .database
        .read(audit::AUDIT_OF_UNIT, &values, read)
        .await
}

/// Commits of an event that have numbers after `after`. Those that can have one get it first.
pub(super) async fn commits_after(
    context: &Context,
    (event, after): (EventNo, Seq),
    limit: usize,
) -> Result<Vec<Commit>, Failure> {
    feed::number(context).await?;
    let limit = u64::try_from(limit.min(COMMITS_READ_MAX)).unwrap_or(0);
    let (no, first) = (int(event.0)?, to_i64(after.0)?);
    let last = to_i64(after.0.saturating_add(limit))?;
    let values = [bind(&no), bind(&first), bind(&last)];
    let rows = context.database.rows(audit::AUDIT_AFTER, &values).await?;
    let mut commits = audit::read(event, &rows)?;
    commits.retain(|commit| commit.seq > after && commit.seq.0 <= after.0.saturating_add(limit));
    Ok(commits)
}

/// All that happened in an event. Commits without numbers yet get those that follow.
pub(super) async fn history(context: &Context, id: &EventId) -> Result<History, ReadError> {
    let missing = || ReadError::Failed(format!("there is no event `{id}`"));
    let event = context.catalogue.find(id).ok_or_else(missing)?;
    let slot = context.catalogue.slot(event).ok_or_else(missing)?;
    let units = {
        let replica = slot.replica.lock().await;
        let event = replica.inventory.event(event);
        event.map_or(0, |event| event.chart.units())
    };
    let no = int(event.0).map_err(Failure::from)?;
    let of_event = [bind(&no)];
    let rows = context
        .database
        .rows(audit::AUDIT_OF_EVENT, &of_event)
        .await?;
    let mut commits = audit::read(event, &rows).map_err(Failure::from)?;
    let mut last = Seq::default();
    for commit in &mut commits {
        if commit.seq == Seq::default() || commit.seq < last {
            commit.seq = last.next();
        }
        last = commit.seq;
    }
    let rows = context
        .database
        .rows(holds::HOLDS_OF_EVENT, &of_event)
        .await?;
    let holds = rows
        .iter()
        .map(|row| Ok(HoldTerms::from(&holds::read(row)?)));
    let holds = holds.collect::<Result<_, Failure>>()?;
    // Read last: terms that have not changed by now did not change before.
    let mut connection = context.database.connection().await?;
    let rows = connection.rows(events::EVENT, &of_event).await?;
    let terms = match rows.first() {
        Some(row) => context
            .charts
            .event(&mut connection, row)
            .await?
            .steady_terms(),
        None => None,
    };
    Ok(History {
        units,
        terms,
        holds,
        commits,
    })
}

/// Every API key.
pub(super) async fn keys(context: &Context) -> Result<Vec<ApiKey>, Failure> {
    context.database.read(keys::API_KEYS, &[], keys::read).await
}

/// Stores an API key.
pub(super) async fn add_key(context: &Context, key: &ApiKey) -> Result<(), Failure> {
    let scopes = scopes(key);
    let columns = put(key, &scopes);
    let values: Vec<Value<'_>> = columns.iter().map(Column::sent).collect();
    context.database.rows(keys::ADD_API_KEY, &values).await?;
    Ok(())
}

/// Revokes an API key; whether there was one to revoke.
pub(super) async fn revoke_key(
    context: &Context,
    key: KeyId,
    at: Timestamp,
) -> Result<bool, Failure> {
    let (id, at) = (Id(*key.bytes()), at.ms());
    let values = [bind(&id), bind(&at)];
    let rows = context.database.rows(keys::REVOKE_API_KEY, &values).await?;
    Ok(!rows.is_empty())
}
