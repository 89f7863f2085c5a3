//! Events that are over are dropped: marked in one transaction under the event's lock, known to every server
//! within some 200 ms, then deleted in the background by any server.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use soldonce_core::{EventId, EventNo, EventUse, Origin, Rejection, Seq, Span, Timestamp};

use super::bind::{Value, bind};
use super::context::Context;
use super::database::Connection;
use super::failure::Failure;
use super::feed::unnumbered;
use super::limits::CLEAR_ROWS_MAX;
use super::tables::int;
use super::{OpenError, Parts, PostgresOptions, verify};
use crate::ledger::Tombstone;
use crate::ledger::rows::column::Column;
use crate::ledger::rows::reader::Reader;
use crate::ledger::rows::{Damaged, chain, dropped as rows};

const TABLE: &str = "dropped_events";

/// Counts what is open of an event: held units, unsettled bookings, open effects and deliveries,
/// commits without a number. Selects the time of its last commit, and where its chain ends.
const EVENT_USE: &str = concat!(
    "-- event_use
SELECT (SELECT count(*) FROM units WHERE event_no = $1 AND state = 1)
     + (SELECT count(*) FROM bookings
        WHERE (",
    unsettled!(),
    "
               OR events.cancelled IS NOT NULL AND state IN (1, 2) AND payment IN (4, 5)
                  AND (payment_detail::json ->> 'captured')::bigint
                      + coalesce((payment_detail::json ->> 'bounced')::bigint, 0)
                    > (payment_detail::json ->> 'refunded')::bigint
                      + coalesce((payment_detail::json ->> 'elsewhere')::bigint, 0)) AND event_no = $1)
     + (SELECT count(*) FROM outbox o JOIN bookings b ON b.id = o.booking
        WHERE o.done_at IS NULL AND b.event_no = $1)
     + (SELECT count(*) FROM deliveries d
        WHERE d.state = 0 AND d.endpoint IN (SELECT id FROM webhook_endpoints)
          AND (EXISTS (SELECT FROM holds WHERE id = d.subject AND event_no = $1)
               OR EXISTS (SELECT FROM bookings WHERE id = d.subject AND event_no = $1)))
     + (SELECT count(*) FROM batches b WHERE b.event_no = $1 AND ",
    unnumbered!(),
    "),
       greatest(created_at, (SELECT at FROM batches WHERE event_no = $1 ORDER BY xid DESC LIMIT 1)),
       coalesce(h.seq, 0), h.hash
FROM events LEFT JOIN feed_heads h USING (event_no) WHERE event_no = $1"
);

/// Lets one event be dropped at a time, so that their numbers are dense and known in order.
const LOCK_DROPPED: &str = "-- lock_dropped
LOCK TABLE dropped_events IN SHARE ROW EXCLUSIVE MODE";

const DROP_EVENT: &str = "-- drop_event
INSERT INTO dropped_events (event_no, n, at, actor, request, seq, hash)
SELECT $1, count(*) + 1, $2, $3, $4, $5, $6 FROM dropped_events";

const DROPPED_AFTER: &str = "-- dropped_after
SELECT d.n, d.event_no, e.id FROM dropped_events d JOIN events e USING (event_no)
WHERE d.n > $1 ORDER BY d.n";

const CLEAR: &str = "-- clear_dropped
SELECT clear_dropped_14($1)";

const DROPPED: &str = concat!(
    "-- dropped\nSELECT",
    dropped_columns!(),
    ",",
    dropped_counts!(),
    "
FROM dropped_events d JOIN events e USING (event_no) WHERE e.id = $1"
);

impl Parts {
    /// Marks an event as dropped.
    pub(super) async fn drop_event(
        &self,
        event: EventNo,
        keep: Span,
        origin: Origin,
    ) -> Result<Timestamp, Rejection> {
        let slot = self.slot(event).await?;
        let context = &self.context;
        // Nothing of this server is under way for it meanwhile; what others store is seen under the lock.
        let mut replica = slot.replica.lock().await;
        let marked = async {
            let mut connection = context.database.connection().await?;
            let named = super::replica::ToLoad::default();
            let refreshed = context.refresh(&mut connection, &slot, &mut replica, &named);
            refreshed.await?;
            context.lock_event(&mut connection, event).await?;
            let refreshed = context.refresh(&mut connection, &slot, &mut replica, &named);
            refreshed.await?;
            let found = replica.inventory.event(event).map(Arc::clone);
            let found = found.ok_or_else(|| Damaged::new("events", "it is not in memory"))?;
            let (open, end) = event_use(&mut connection, event, chain::start(&found)).await?;
            let at = context.time.now();
            if let Err(rejection) = found.require_droppable(at, open, keep) {
                connection.roll_back().await;
                return Ok(Err(rejection));
            }
            let inserted = insert(&mut connection, event, &Tombstone::new(at, origin, end)).await;
            connection.finish(inserted).await?;
            Ok::<_, Failure>(Ok((at, found.id.clone())))
        };
        let (at, id) = marked.await??;
        drop(replica);
        context.forget_event(event, &id);
        Ok(at)
    }
}

impl Context {
    /// Removes a dropped event from memory. Returns false if it is not known yet.
    pub(super) fn forget_event(&self, event: EventNo, id: &EventId) -> bool {
        let is_known = self.catalogue.drop_event(id, event);
        if is_known {
            self.observer.event_dropped(event, id);
            self.charts.evict();
        }
        is_known
    }

    /// Removes from memory the events that other servers dropped.
    pub(super) async fn find_dropped(&self) -> Result<(), Failure> {
        let known = self.known_dropped.load(Ordering::Acquire);
        for row in &self.database.rows(DROPPED_AFTER, &[bind(&known)]).await? {
            let mut row = Reader::postgres(row, TABLE);
            let (n, event) = (row.get()?, row.get()?);
            let id = EventId::parse(row.get()?).map_err(|_| row.illegal("id"))?;
            // One that is not known yet is looked for again.
            if !self.forget_event(event, &id) {
                return Ok(());
            }
            self.known_dropped.store(n, Ordering::Release);
        }
        Ok(())
    }

    /// Deletes some rows of dropped events. Returns whether there may be more.
    pub(super) async fn clear_dropped(&self) -> Result<bool, Failure> {
        let mut connection = self.database.connection().await?;
        let most = [bind(&CLEAR_ROWS_MAX)];
        let may_be_more = connection.one((CLEAR, TABLE), &most).await?;
        Ok(may_be_more.unwrap_or(false))
    }
}

/// Reads what of the event is still open, and the number and the hash at which its audit ends.
async fn event_use(
    connection: &mut Connection,
    event: EventNo,
    chain_start: [u8; 32],
) -> Result<(EventUse, (Seq, [u8; 32])), Failure> {
    let no = int(event.0)?;
    let read = |row: &mut Reader<'_>| {
        let (open, last_commit) = (row.get()?, row.get()?);
        let (seq, hash) = (row.get()?, row.get::<Option<&[u8]>>()?);
        let hash = hash.map_or(Ok(chain_start), <[u8; 32]>::try_from);
        let hash = hash.map_err(|_| row.illegal("hash"))?;
        Ok((EventUse { open, last_commit }, (seq, hash)))
    };
    let of_event = [bind(&no)];
    let found = connection.first((EVENT_USE, "events"), &of_event, read);
    let missing = || Damaged::new("events", "it is missing");
    Ok(found.await?.ok_or_else(missing)?)
}

async fn insert(
    connection: &mut Connection,
    event: EventNo,
    tombstone: &Tombstone,
) -> Result<(), Failure> {
    let row = rows::put(event, tombstone);
    let values: Vec<Value<'_>> = row.iter().map(Column::sent).collect();
    connection.run(LOCK_DROPPED).await?;
    connection.rows(DROP_EVENT, &values).await.map(drop)
}

/// Reads what is left of an event that was dropped. None if it was not. For `soldonce why`.
///
/// # Errors
/// [`OpenError`] when there is no ledger or it cannot be read.
///
/// # Cancel safety
/// It only reads.
pub async fn dropped(
    options: &PostgresOptions,
    event: &str,
) -> Result<Option<Tombstone>, OpenError> {
    let mut connection = verify::open(options).await?;
    let read = |row: &mut Reader<'_>| {
        let (_, written) = rows::get(row)?;
        rows::get_counts(row, written)
    };
    let by_id = [bind(&event)];
    Ok(connection.first((DROPPED, TABLE), &by_id, read).await?)
}
