//! New events, and those that other servers made.

use std::sync::Arc;

use soldonce_core::{
    Answer, Applied, Command, Event, EventNo, Inventory, NewEvent, Rejection, Seq, Unit, UnitNo,
};
use tokio::sync::mpsc;
use tokio_postgres::Row;

use super::bind::{Value, bind};
use super::database::Connection;
use super::event_slot::EventSlot;
use super::failure::Failure;
use super::feed::unnumbered;
use super::limits::{ADD_UNITS_MAX, QUEUE_MAX, TRIES_MAX};
use super::replica::{Replica, SNAPSHOT, ToLoad};
use super::route::submit;
use super::tables::{events, int, units};
use super::{Parts, queue, resolve};
use crate::ledger::rows::Damaged;
use crate::ledger::rows::charts::{self, digest, sha256};
use crate::ledger::rows::column::Column;
use crate::ledger::rows::events::put;
use crate::ledger::rows::policy::{policy_to_json, prices_to_json};
use crate::ledger::rows::reader::Reader;
use crate::ledger::{Done, ReadError, Transaction};

const HEAD: &str = "-- head
SELECT seq, hash FROM feed_heads WHERE event_no = $1";

/// Selects units as they were at the event's last number: before the first transition without one.
const UNITS_SHOWN: &str = concat!(
    "-- units_shown
WITH ahead AS (
    SELECT DISTINCT ON (a.unit_no) a.unit_no, a.from_state, a.from_owner, a.from_until, a.fence,
           a.version
    FROM batches b
    CROSS JOIN LATERAL unnest(b.units, b.versions) AS step (unit_no, version)
    CROSS JOIN LATERAL (
        SELECT * FROM audit
        WHERE event_no = b.event_no AND unit_no = step.unit_no AND version = step.version OFFSET 0
    ) AS a
    WHERE b.event_no = $1 AND ",
    unnumbered!(),
    "
    ORDER BY a.unit_no, a.version
)
SELECT u.unit_no,
       CASE WHEN a.unit_no IS NULL THEN u.state ELSE a.from_state END,
       CASE WHEN a.unit_no IS NULL THEN u.owner ELSE a.from_owner END,
       CASE WHEN a.unit_no IS NULL THEN u.until ELSE a.from_until END,
       coalesce(a.fence, u.fence), coalesce(a.version, u.version)
FROM units u LEFT JOIN ahead a USING (unit_no)
WHERE u.event_no = $1 AND u.version > 0"
);

impl Parts {
    /// Creates an event, or answers with the one that has its id.
    pub(super) async fn create(&self, transaction: Transaction) -> Result<Done, Rejection> {
        let Command::CreateEvent(new) = &transaction.command else {
            return Err(Rejection::ReadOnly);
        };
        let id = new.id.clone();
        for _ in 0..TRIES_MAX {
            if let Some(no) = self.context.catalogue.find(&id) {
                return submit(&*self.context.catalogue.require(no)?, transaction).await;
            }
            let turn = self.creating.lock().await;
            self.discover().await.map_err(Failure::of_read)?;
            if self.context.catalogue.find(&id).is_some() {
                continue;
            }
            let created = self.try_create(&transaction, new).await;
            drop(turn);
            match created {
                Ok(done) => return done,
                // It may be there all the same: the next round finds it, or another with its number.
                Err(failure) if failure.is_contention() => {}
                Err(Failure::Unknown(why)) => {
                    tracing::warn!(why, "a new event got no answer");
                    // Waits until everything stored so far is on the standbys.
                    let (context, batch) = (&self.context, self.context.batch_id());
                    let ids = (batch, context.server);
                    resolve::resolve(&context.database, &context.clock, ids).await?;
                }
                Err(failure) => return Err(failure.into()),
            }
        }
        Err(Rejection::Overloaded)
    }

    async fn try_create(
        &self,
        transaction: &Transaction,
        new: &NewEvent,
    ) -> Result<Result<Done, Rejection>, Failure> {
        let mut inventory = Inventory::starting_at(self.context.catalogue.next());
        let command = Command::CreateEvent(Box::new(new.clone()));
        let applied = inventory.apply(self.context.time.now(), &transaction.origin, command);
        let applied = match applied {
            Ok(applied) => applied,
            Err(rejection) => return Ok(Err(rejection)),
        };
        let Answer::EventCreated(event) = &applied.answer else {
            return Ok(Err(Rejection::ReadOnly));
        };
        let mut connection = self.context.database.connection().await?;
        connection.begin_write().await?;
        let inserted = insert(&mut connection, event, transaction.chart.as_deref()).await;
        connection.finish(inserted).await?;
        drop(connection);
        if let Err(failure) = self.discover().await {
            // It exists all the same, and the first that asks for it finds it.
            tracing::debug!(%failure, "a new event was not read back");
        }
        Ok(Ok(Done::unnumbered(applied.answer)))
    }

    /// Registers events that this server does not know yet, in the order of their numbers.
    pub(super) async fn discover(&self) -> Result<(), Failure> {
        self.discovering.alone(Box::pin(self.register_new())).await
    }

    /// Registers new events as [`Parts::discover`] does; concurrent callers share one reading.
    pub(super) async fn find_new_events(&self) -> Result<(), ReadError> {
        let look = async { Ok(Box::pin(self.register_new()).await?) };
        self.discovering.share(look).await
    }

    async fn register_new(&self) -> Result<(), Failure> {
        let context = &self.context;
        let first = int(context.catalogue.next().0)?;
        let mut connection = context.database.connection().await?;
        let values = [bind(&first)];
        let rows = connection.rows(events::EVENTS_FROM, &values).await?;
        for row in &rows {
            match self.register_row(&mut connection, row).await {
                Err(Failure::Damaged(damage)) => self.leave_out(row, damage)?,
                registered => registered?,
            }
        }
        Ok(())
    }

    async fn register_row(&self, connection: &mut Connection, row: &Row) -> Result<(), Failure> {
        let context = &self.context;
        if let Some((no, id)) = events::dropped(row)? {
            context.forget_event(no, &id);
            return Ok(());
        }
        let event = context.charts.event(connection, row).await?.event;
        self.register(connection, &event).await
    }

    /// Refuses an event that cannot be read: it is damaged, or of a newer server. It keeps no later one from being
    /// registered.
    fn leave_out(&self, row: &Row, damage: Damaged) -> Result<(), Failure> {
        let (no, id) = events::named(row)?;
        let catalogue = &self.context.catalogue;
        if !catalogue.add(no, id.clone(), Err(Rejection::ReadOnly)) {
            return Err(damage.into());
        }
        if let Some(id) = &id {
            self.context.observer.event_unreadable(no, id);
        }
        let event = no.0;
        tracing::error!(
            event,
            %damage,
            "an event cannot be read: this server refuses what is asked of it until it is repaired (`soldonce \
             verify`), or the server is as new as the others, and started again"
        );
        Ok(())
    }

    async fn register(&self, connection: &mut Connection, event: &Event) -> Result<(), Failure> {
        let context = &self.context;
        if context.catalogue.slot(event.no).is_some() {
            return Ok(());
        }
        let (queue, jobs) = mpsc::channel(QUEUE_MAX);
        let slot = Arc::new(EventSlot::new(event.no, queue));
        // Before the cache: a commit that is shown and not in the cache would leave its units free in the
        // shield, and no later number would put that right.
        let shown = ShownUnits::read(connection, slot.no).await?;
        {
            let mut replica = slot.replica.lock().await;
            let named = ToLoad::default();
            let refresh = context.refresh(connection, &slot, &mut replica, &named);
            refresh.await?;
            self.show(&slot, &replica, shown);
        }
        // Another server may have been here first.
        let id = Some(event.id.clone());
        if context.catalogue.add(event.no, id, Ok(Arc::clone(&slot))) {
            let run = queue::run(Arc::clone(context), slot, jobs);
            self.tasks().spawn(run);
        }
        Ok(())
    }

    /// Publishes an event for the first time: its units `at` its last number, then as cached.
    fn show(&self, slot: &EventSlot, replica: &Replica, at: ShownUnits) {
        let Some(event) = replica.inventory.event(slot.no).map(Arc::clone) else {
            return;
        };
        let every: Vec<UnitNo> = (0..event.chart.units()).map(UnitNo).collect();
        let mut shown = Inventory::starting_at(slot.no);
        let seq = at.head.map(|(seq, _)| seq).unwrap_or_default();
        shown.restore_event(Event::clone(&event), seq);
        for (unit, state) in at.units {
            // It is one of this chart, or the event would not have been loaded.
            shown.restore_unit(slot.no, unit, state).unwrap_or_default();
        }
        let applied = Applied {
            event: Some(slot.no),
            ..Applied::unchanged(Answer::Event(event))
        };
        let observer = &self.context.observer;
        if let Some((_, hash)) = &at.head {
            observer.chained(slot.no, hash);
        }
        observer.stored_unnumbered(&shown, &[applied]);
        slot.show(seq);
        observer.refreshed(&replica.inventory, slot.no, &every);
    }
}

/// The units of an event as they were at its last number, which may be before what is stored.
struct ShownUnits {
    /// That number, and the hash of the event's audit there; none before the first.
    head: Option<(Seq, [u8; 32])>,
    units: Vec<(UnitNo, Unit)>,
}

impl ShownUnits {
    async fn read(connection: &mut Connection, event: EventNo) -> Result<Self, Failure> {
        let no = int(event.0)?;
        let of_event = [bind(&no)];
        connection.begin(SNAPSHOT).await?;
        let read = async {
            let head = |row: &mut Reader<'_>| Ok((row.get()?, row.get()?));
            let head = connection.first((HEAD, "feed_heads"), &of_event, head);
            let head = head.await?;
            let units = (UNITS_SHOWN, "units");
            Ok::<_, Failure>(Self {
                head,
                units: connection.read(units, &of_event, units::get).await?,
            })
        };
        let read = read.await;
        connection.finish(read).await
    }
}

/// Writes an event, its chart unless it is there, and its units, all free.
async fn insert(
    connection: &mut Connection,
    event: &Event,
    document: Option<&[u8]>,
) -> Result<(), Failure> {
    let document = charts::document(document, &event.chart)?;
    let chart_no = chart(connection, event, &document).await?;
    let prices = prices_to_json(&event.prices)?;
    let policy = policy_to_json(&event.policy)?;
    let columns = put(event, chart_no, &prices, &policy);
    let values: Vec<Value<'_>> = columns.iter().map(Column::sent).collect();
    connection.rows(events::ADD_EVENT, &values).await?;
    let (no, count) = (int(event.no.0)?, int(event.chart.units())?);
    let mut from = 0;
    // Some at a time, so that each statement is answered in time.
    while from < count {
        let until = count.min(from.saturating_add(ADD_UNITS_MAX));
        let values = [bind(&no), bind(&from), bind(&until)];
        connection.rows(units::ADD_UNITS, &values).await?;
        from = until;
    }
    Ok(())
}

async fn chart(
    connection: &mut Connection,
    event: &Event,
    document: &[u8],
) -> Result<i64, Failure> {
    let sha = sha256(document);
    let sha = sha.as_slice();
    let known = (events::CHART_BY_HASH, "charts");
    if let Some(number) = connection.one(known, &[bind(&sha)]).await? {
        return Ok(number);
    }
    let (units, digest) = (int(event.chart.units())?, digest(&event.chart));
    let digest = digest.as_slice();
    let values = [bind(&document), bind(&sha), bind(&units), bind(&digest)];
    let added = connection.one((events::ADD_CHART, "charts"), &values);
    let added = added.await?;
    Ok(added.ok_or_else(|| Damaged::new("charts", "no number"))?)
}
