//! Everything that only looks, and the keys.

use std::time::Duration;

use soldonce_core::{
    Booking, BookingId, Commit, EventId, EventNo, History, Hold, HoldId, HoldTerms, Holder, Seq,
    Span, Timestamp, UnitNo,
};
use tokio_postgres::types::Type;

use super::database::{Lane, Value};
use super::desk::Desk;
use super::failure::Failure;
use super::feed;
use super::limits::{COMMITS_READ_MAX, HOLDS_WAIT_MS};
use super::replica::{SNAPSHOT, bookings_by_id};
use super::tables::{Columns, Id, audit, bookings, events, holder_key, holds, int, keys, outbox};
use crate::keys::{ApiKey, KeyId};
use crate::ledger::rows::stored;
use crate::ledger::{OpenEffect, ReadError};

/// A hold by its id.
pub(super) async fn hold(desk: &Desk, hold: HoldId) -> Result<Option<Hold>, Failure> {
    Ok(holds_by_id(desk, &[Id(*hold.bytes())]).await?.pop())
}

async fn holds_by_id(desk: &Desk, ids: &[Id]) -> Result<Vec<Hold>, Failure> {
    let rows = desk
        .database
        .rows(holds::HOLDS, &[(&ids, Type::BYTEA_ARRAY)])
        .await?;
    Ok(rows.iter().map(holds::read).collect::<Result<_, _>>()?)
}

/// A booking by its id.
pub(super) async fn booking(desk: &Desk, id: BookingId) -> Result<Option<Booking>, Failure> {
    let mut lane = desk.database.lane().await?;
    let found = whole(&mut lane, &[Id(*id.bytes())]).await?;
    Ok(found.into_iter().next())
}

/// Bookings with their lines, by id. Both are read in one state: another server may commit between two
/// statements.
async fn whole(lane: &mut Lane, ids: &[Id]) -> Result<Vec<Booking>, Failure> {
    lane.begin(SNAPSHOT).await?;
    match bookings_by_id(lane, ids).await {
        Ok(found) => {
            lane.commit().await?;
            Ok(found.into_iter().map(|row| row.booking).collect())
        }
        Err(failure) => {
            lane.roll_back().await;
            Err(failure)
        }
    }
}

/// The newest holds of a holder that are not over and older than `before`.
pub(super) async fn holds_of(
    desk: &Desk,
    holder: &Holder,
    before: Option<HoldId>,
    limit: usize,
) -> Result<Vec<Hold>, Failure> {
    let (mut ids, mut taken) = (Vec::new(), Vec::new());
    let until = desk.clock.boot().plus(Duration::from_millis(HOLDS_WAIT_MS));
    for booth in desk.catalogue.all() {
        tokio::select! {
            biased;
            replica = booth.replica.lock() => {
                ids.extend(replica.inventory.holds_of(booth.no, holder));
            }
            () = desk.clock.sleep_until(until) => taken.push(int(booth.no.0)?),
        }
    }
    if !taken.is_empty() {
        ids.extend(stored_holds_of(desk, holder, &taken).await?);
    }
    ids.retain(|id| before.is_none_or(|before| *id < before));
    ids.sort_unstable();
    let newest = ids.into_iter().rev().take(limit);
    let mut found = holds_by_id(desk, &holds::ids(newest)).await?;
    found.sort_unstable_by_key(|hold| std::cmp::Reverse(hold.id));
    Ok(found)
}

/// The live holds of a holder in events whose memory others have: as they are stored.
async fn stored_holds_of(
    desk: &Desk,
    holder: &Holder,
    events: &[i32],
) -> Result<Vec<HoldId>, Failure> {
    let (key, caller) = (holder_key(holder), Id(*holder.caller.bytes()));
    let name = holder.name.as_str();
    let values: [Value<'_>; 4] = [
        (&events, Type::INT4_ARRAY),
        (&key, Type::BYTEA),
        (&caller, Type::BYTEA),
        (&name, Type::TEXT),
    ];
    let rows = desk.database.rows(holds::HOLDS_OF_HOLDER, &values).await?;
    let id = |row: &tokio_postgres::Row| -> Result<HoldId, Failure> {
        let id: Id = Columns::new(row, "holds").get(0)?;
        Ok(HoldId::from_bytes(id.0))
    };
    rows.iter().map(id).collect()
}

/// The newest bookings of a holder that are older than `before`.
pub(super) async fn bookings_of(
    desk: &Desk,
    holder: &Holder,
    before: Option<BookingId>,
    limit: usize,
) -> Result<Vec<Booking>, Failure> {
    let (key, limit) = (holder_key(holder), i64::try_from(limit).unwrap_or(i64::MAX));
    let mut lane = desk.database.lane().await?;
    let before = Id(before.map_or([u8::MAX; 16], |id| *id.bytes()));
    let values: [Value<'_>; 3] = [
        (&key, Type::BYTEA),
        (&before, Type::BYTEA),
        (&limit, Type::INT8),
    ];
    let rows = lane.rows(bookings::BOOKINGS_OF_HOLDER, &values).await?;
    let ids: Result<Vec<Id>, _> = rows
        .iter()
        .map(|row| Columns::new(row, "bookings").get(0))
        .collect();
    let mut found = whole(&mut lane, &ids?).await?;
    found.reverse();
    Ok(found)
}

/// The holds of an event after an id, in the order of their ids.
pub(super) async fn holds_in(
    desk: &Desk,
    event: EventNo,
    after: Option<HoldId>,
    limit: usize,
) -> Result<Vec<Hold>, Failure> {
    let after = Id(after.map_or([0; 16], |id| *id.bytes()));
    let (event, limit) = (int(event.0)?, i64::try_from(limit).unwrap_or(i64::MAX));
    let values: [Value<'_>; 3] = [
        (&event, Type::INT4),
        (&after, Type::BYTEA),
        (&limit, Type::INT8),
    ];
    let rows = desk.database.rows(holds::HOLDS_AFTER, &values).await?;
    Ok(rows.iter().map(holds::read).collect::<Result<_, _>>()?)
}

/// The bookings of an event after an id, in the order of their ids.
pub(super) async fn bookings_in(
    desk: &Desk,
    event: EventNo,
    after: Option<BookingId>,
    limit: usize,
) -> Result<Vec<Booking>, Failure> {
    let after = Id(after.map_or([0; 16], |id| *id.bytes()));
    let (event, limit) = (int(event.0)?, i64::try_from(limit).unwrap_or(i64::MAX));
    let values: [Value<'_>; 3] = [
        (&event, Type::INT4),
        (&after, Type::BYTEA),
        (&limit, Type::INT8),
    ];
    let mut lane = desk.database.lane().await?;
    let rows = lane.rows(bookings::BOOKINGS_AFTER, &values).await?;
    let ids = rows.iter().map(|row| Columns::new(row, "bookings").get(0));
    let ids = ids.collect::<Result<Vec<Id>, _>>()?;
    let mut found = whole(&mut lane, &ids).await?;
    found.sort_unstable_by_key(|booking| booking.id);
    Ok(found)
}

/// Bookings whose payment is not at its end, or whose money must go back, oldest first. One that is later
/// than now was made before the clock was set back.
pub(super) async fn unsettled(
    desk: &Desk,
    before: Timestamp,
    limit: usize,
) -> Result<Vec<Booking>, Failure> {
    let (before, limit) = (before.ms(), i64::try_from(limit).unwrap_or(i64::MAX));
    let now = desk.time.now().ms();
    let mut lane = desk.database.lane().await?;
    let values: [Value<'_>; 3] = [
        (&before, Type::INT8),
        (&now, Type::INT8),
        (&limit, Type::INT8),
    ];
    let rows = lane.rows(bookings::UNSETTLED_BOOKINGS, &values).await?;
    let ids: Result<Vec<Id>, _> = rows
        .iter()
        .map(|row| Columns::new(row, "bookings").get(0))
        .collect();
    whole(&mut lane, &ids?).await
}

/// The oldest effect of each booking that no other server works on.
pub(super) async fn take_effects(
    desk: &Desk,
    keep: Span,
    limit: usize,
) -> Result<Vec<OpenEffect>, Failure> {
    let now = desk.time.now();
    let (until, limit) = (
        now.plus(keep).ms(),
        i64::try_from(limit).unwrap_or(i64::MAX),
    );
    let now = now.ms();
    let values: [Value<'_>; 4] = [
        (&desk.server, Type::BYTEA),
        (&now, Type::INT8),
        (&until, Type::INT8),
        (&limit, Type::INT8),
    ];
    let rows = desk.database.rows(outbox::TAKE_EFFECTS, &values).await?;
    Ok(rows.iter().map(outbox::read).collect::<Result<_, _>>()?)
}

/// The oldest effect of each booking, if it was left before `before`.
pub(super) async fn overdue_effects(
    desk: &Desk,
    before: Timestamp,
    limit: usize,
) -> Result<Vec<OpenEffect>, Failure> {
    let (before, limit) = (before.ms(), i64::try_from(limit).unwrap_or(i64::MAX));
    let values: [Value<'_>; 2] = [(&before, Type::INT8), (&limit, Type::INT8)];
    let rows = desk.database.rows(outbox::OVERDUE_EFFECTS, &values).await?;
    Ok(rows.iter().map(outbox::read).collect::<Result<_, _>>()?)
}

/// Every transition of a unit, oldest first.
pub(super) async fn unit_history(
    desk: &Desk,
    (event, unit): (EventNo, UnitNo),
    limit: usize,
) -> Result<Vec<Commit>, Failure> {
    let (no, unit, limit) = (
        int(event.0)?,
        int(unit.0)?,
        i64::try_from(limit).unwrap_or(i64::MAX),
    );
    let values: [Value<'_>; 3] = [(&no, Type::INT4), (&unit, Type::INT4), (&limit, Type::INT8)];
    let rows = desk.database.rows(audit::AUDIT_OF_UNIT, &values).await?;
    let commits = rows.iter().map(|row| audit::read_one(event, row));
    Ok(commits.collect::<Result<_, _>>()?)
}

/// Commits of an event that have numbers after `after`. Those that can have one get it first.
pub(super) async fn commits_after(
    desk: &Desk,
    (event, after): (EventNo, Seq),
    limit: usize,
) -> Result<Vec<Commit>, Failure> {
    feed::number(desk).await?;
    let limit = u64::try_from(limit.min(COMMITS_READ_MAX)).unwrap_or(0);
    let (no, first) = (int(event.0)?, stored(after.0)?);
    let last = stored(after.0.saturating_add(limit))?;
    let values: [Value<'_>; 3] = [(&no, Type::INT4), (&first, Type::INT8), (&last, Type::INT8)];
    let rows = desk.database.rows(audit::AUDIT_AFTER, &values).await?;
    let mut commits = audit::read(event, &rows)?;
    commits.retain(|commit| commit.seq > after && commit.seq.0 <= after.0.saturating_add(limit));
    Ok(commits)
}

/// All that happened in an event. Commits without numbers yet get those that follow.
pub(super) async fn history(desk: &Desk, id: &EventId) -> Result<History, ReadError> {
    let missing = || ReadError::Failed(format!("there is no event `{id}`"));
    let event = desk.catalogue.find(id).ok_or_else(missing)?;
    let booth = desk.catalogue.booth(event).ok_or_else(missing)?;
    let units = {
        let replica = booth.replica.lock().await;
        let event = replica.inventory.event(event);
        event.map_or(0, |event| event.chart.units())
    };
    let no = int(event.0).map_err(Failure::from)?;
    let of_event: [Value<'_>; 1] = [(&no, Type::INT4)];
    let rows = desk.database.rows(audit::AUDIT_OF_EVENT, &of_event).await?;
    let mut commits = audit::read(event, &rows).map_err(Failure::from)?;
    let mut last = Seq::default();
    for commit in &mut commits {
        if commit.seq == Seq::default() || commit.seq < last {
            commit.seq = last.next();
        }
        last = commit.seq;
    }
    let rows = desk.database.rows(holds::HOLDS_OF_EVENT, &of_event).await?;
    let holds = rows
        .iter()
        .map(|row| Ok(HoldTerms::from(&holds::read(row)?)));
    let holds = holds.collect::<Result<_, Failure>>()?;
    // Read last: terms that have not changed by now did not change before.
    let mut lane = desk.database.lane().await?;
    let rows = lane.rows(events::EVENT, &of_event).await?;
    let terms = match rows.first() {
        Some(row) => desk.charts.event(&mut lane, row).await?.steady_terms(),
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
pub(super) async fn keys(desk: &Desk) -> Result<Vec<ApiKey>, Failure> {
    let rows = desk.database.rows(keys::API_KEYS, &[]).await?;
    Ok(rows.iter().map(keys::read).collect::<Result<_, _>>()?)
}

/// Stores an API key.
pub(super) async fn add_key(desk: &Desk, key: &ApiKey) -> Result<(), Failure> {
    let (id, scopes, created_at) = (
        Id(*key.id.bytes()),
        keys::scopes_text(key),
        key.created_at.ms(),
    );
    let (name, hash) = (key.name.as_str(), key.hash.as_slice());
    let values: [Value<'_>; 5] = [
        (&id, Type::BYTEA),
        (&name, Type::TEXT),
        (&scopes, Type::TEXT),
        (&hash, Type::BYTEA),
        (&created_at, Type::INT8),
    ];
    desk.database.rows(keys::ADD_API_KEY, &values).await?;
    Ok(())
}

/// Revokes an API key; whether there was one to revoke.
pub(super) async fn revoke_key(desk: &Desk, key: KeyId, at: Timestamp) -> Result<bool, Failure> {
    let (id, at) = (Id(*key.bytes()), at.ms());
    let values: [Value<'_>; 2] = [(&id, Type::BYTEA), (&at, Type::INT8)];
    let rows = desk.database.rows(keys::REVOKE_API_KEY, &values).await?;
    Ok(!rows.is_empty())
}
