//! What a server remembers of one event: its inventory, and the versions of rows it was read from.
//! Between two statements it is what some snapshot of the database showed, as a whole: read in one
//! transaction, and moved on by what this server itself wrote.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use soldonce_core::{BookingId, EventNo, HoldId, Holder, Inventory, UnitNo};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::charts::Charts;
use super::database::{Lane, Value};
use super::failure::Failure;
use super::tables::bookings::BookingRow;
use super::tables::{Columns, Id, bookings, events, holds, int, units};

/// One snapshot for several statements.
pub(super) const SNAPSHOT: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

/// All transactions below it are finished: what they wrote is in this snapshot.
const HORIZON: &str = "-- horizon
SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint";

/// What others wrote since. A transaction that ran at the last snapshot may stand here again.
const WRITTEN: &str = "-- written
SELECT units, holds, bookings, holders, renews FROM batches
WHERE event_no = $1 AND xid >= $2::bigint::text::xid8 AND server <> $3";

/// The memory of one event.
pub(super) struct Replica {
    pub(super) no: EventNo,
    /// The event alone, with everything in it that is not over.
    pub(super) inventory: Inventory,
    /// Of the event's row.
    pub(super) event_version: i64,
    /// Of the rows of holders; who has none has no row.
    pub(super) holders: HashMap<Holder, i64>,
    /// Of the bookings in the inventory.
    pub(super) bookings: BTreeMap<BookingId, i64>,
    /// Everything below this transaction is in here.
    horizon: i64,
    /// Nobody knows what this server's last statement did: everything is read anew.
    cold: bool,
}

/// Rows to be read again.
#[derive(Debug, Default)]
struct Stale {
    units: BTreeSet<i32>,
    holds: BTreeSet<Id>,
    bookings: BTreeSet<Id>,
    holders: BTreeSet<Id>,
    event: bool,
}

impl Replica {
    /// The memory of an event that is read with the first [`Replica::refresh`].
    pub(super) fn new(no: EventNo) -> Self {
        Self {
            no,
            inventory: Inventory::starting_at(no),
            event_version: 0,
            holders: HashMap::new(),
            bookings: BTreeMap::new(),
            horizon: 0,
            cold: true,
        }
    }

    /// From now on nothing is believed.
    pub(super) fn forget(&mut self) {
        self.cold = true;
    }

    pub(super) fn is_cold(&self) -> bool {
        self.cold
    }

    /// Takes over what was written since the last time, but not what `server` itself wrote: that is
    /// in here already. Tells which units changed.
    ///
    /// # Errors
    /// [`Failure`]; then nothing changed.
    pub(super) async fn refresh(
        &mut self,
        lane: &mut Lane,
        charts: &Charts,
        server: Id,
    ) -> Result<Vec<UnitNo>, Failure> {
        lane.begin(SNAPSHOT).await?;
        let read = if self.cold {
            self.load(lane, charts).await
        } else {
            self.catch_up(lane, charts, server).await
        };
        if read.is_ok() {
            lane.commit().await?;
        } else {
            lane.roll_back().await;
        }
        read
    }

    async fn load(&mut self, lane: &mut Lane, charts: &Charts) -> Result<Vec<UnitNo>, Failure> {
        let no = int(self.no.0)?;
        let of_event: [Value<'_>; 1] = [(&no, Type::INT4)];
        let mut fresh = Self::new(self.no);
        fresh.horizon = horizon(lane).await?;
        let row = lane.rows(events::EVENT, &of_event).await?;
        let row = row.first().ok_or_else(|| missing(self.no))?;
        let row = charts.event(lane, row).await?;
        fresh.event_version = row.version;
        fresh
            .inventory
            .restore_event(row.event, self.inventory.seq(self.no));
        let rows = lane.rows(units::UNITS_OF_EVENT, &of_event).await?;
        let changed = fresh.take_units(&rows)?;
        for row in lane.rows(holds::HOLDERS_OF_EVENT, &of_event).await? {
            fresh.take_holder(&row)?;
        }
        let pending = lane.rows(bookings::PENDING_BOOKINGS, &of_event).await?;
        let pending: Result<Vec<Id>, _> = pending
            .iter()
            .map(|row| Columns::new(row, "holds").get(0))
            .collect();
        for row in bookings_by_id(lane, &pending?).await? {
            fresh.take_booking(row);
        }
        for row in lane.rows(holds::LIVE_HOLDS, &of_event).await? {
            fresh.inventory.replace_hold(holds::read(&row)?);
        }
        fresh.inventory.restore_clock(self.inventory.clock());
        fresh.cold = false;
        *self = fresh;
        Ok(changed)
    }

    async fn catch_up(
        &mut self,
        lane: &mut Lane,
        charts: &Charts,
        server: Id,
    ) -> Result<Vec<UnitNo>, Failure> {
        let no = int(self.no.0)?;
        let since: [Value<'_>; 3] = [
            (&no, Type::INT4),
            (&self.horizon, Type::INT8),
            (&server, Type::BYTEA),
        ];
        let stale = Stale::read(&lane.rows(WRITTEN, &since).await?)?;
        let horizon = horizon(lane).await?;
        let Some(stale) = stale else {
            self.horizon = horizon;
            return Ok(Vec::new());
        };
        let rows = stale.fetch(lane, charts, no).await?;
        self.horizon = horizon;
        self.take(rows)
    }

    /// Takes rows of one snapshot over: units before the holds that own them.
    fn take(&mut self, rows: Fetched) -> Result<Vec<UnitNo>, Failure> {
        if let Some(row) = rows.event {
            self.event_version = row.version;
            self.inventory.replace_event(row.event);
        }
        let changed = self.take_units(&rows.units)?;
        let bookings: Vec<BookingId> = rows.bookings.iter().map(|row| row.booking.id).collect();
        for row in rows.bookings {
            self.take_booking(row);
        }
        for row in rows.holds {
            let hold = holds::read(&row)?;
            if hold.state.is_terminal() {
                self.inventory.drop_hold(hold.id);
            } else {
                self.inventory.replace_hold(hold);
            }
        }
        for row in rows.holders {
            self.take_holder(&row)?;
        }
        self.let_go([], bookings);
        Ok(changed)
    }

    fn take_units(&mut self, rows: &[Row]) -> Result<Vec<UnitNo>, Failure> {
        let mut changed = Vec::with_capacity(rows.len());
        for row in rows {
            let (no, unit) = units::read(row)?;
            self.inventory
                .restore_unit(self.no, no, unit)
                .map_err(|_| missing(self.no))?;
            changed.push(no);
        }
        Ok(changed)
    }

    fn take_holder(&mut self, row: &Row) -> Result<(), Failure> {
        let row = holds::read_holder(row)?;
        self.inventory
            .replace_bought(self.no, &row.holder, row.bought);
        self.holders.insert(row.holder, row.version);
        Ok(())
    }

    pub(super) fn take_booking(&mut self, row: BookingRow) {
        self.bookings.insert(row.booking.id, row.version);
        self.inventory.restore_booking(row.booking);
    }

    /// Forgets holds that are over and bookings that wait for no money: a command that names one
    /// reads it back first.
    pub(super) fn let_go(
        &mut self,
        holds: impl IntoIterator<Item = HoldId>,
        bookings: impl IntoIterator<Item = BookingId>,
    ) {
        for hold in holds {
            self.inventory.forget_hold(hold);
        }
        for booking in bookings {
            self.inventory.forget_booking(booking);
            if self.inventory.booking(booking).is_none() {
                self.bookings.remove(&booking);
            }
        }
    }

    /// Reads back what commands name and memory has let go of.
    pub(super) async fn page_in(&mut self, lane: &mut Lane, named: &Named) -> Result<(), Failure> {
        let bookings: Vec<Id> = holds::booking_ids(
            named
                .bookings
                .iter()
                .copied()
                .filter(|id| self.inventory.booking(*id).is_none()),
        );
        let mut wanted: Vec<HoldId> = named.holds.clone();
        if !bookings.is_empty() {
            for row in bookings_by_id(lane, &bookings).await? {
                wanted.extend(row.booking.hold);
                self.take_booking(row);
            }
        }
        wanted.retain(|id| self.inventory.hold(*id).is_none());
        if wanted.is_empty() {
            return Ok(());
        }
        let ids = holds::ids(wanted);
        for row in lane
            .rows(holds::HOLDS, &[(&ids, Type::BYTEA_ARRAY)])
            .await?
        {
            let hold = holds::read(&row)?;
            // A live one is another server's and comes with the next refresh, units and all.
            if hold.state.is_terminal() {
                self.inventory.restore_hold(hold);
            }
        }
        Ok(())
    }
}

/// What commands name.
#[derive(Debug, Default)]
pub(super) struct Named {
    pub(super) holds: Vec<HoldId>,
    pub(super) bookings: Vec<BookingId>,
}

/// Rows of one snapshot.
struct Fetched {
    event: Option<events::EventRow>,
    units: Vec<Row>,
    holds: Vec<Row>,
    bookings: Vec<BookingRow>,
    holders: Vec<Row>,
}

impl Stale {
    /// What these batches touched; nothing when there are none.
    fn read(rows: &[Row]) -> Result<Option<Self>, Failure> {
        let mut stale = Self::default();
        for row in rows {
            let columns = Columns::new(row, "batches");
            stale.units.extend(columns.get::<Vec<i32>>(0)?);
            stale.holds.extend(columns.get::<Vec<Id>>(1)?);
            stale.bookings.extend(columns.get::<Vec<Id>>(2)?);
            stale.holders.extend(columns.get::<Vec<Id>>(3)?);
            stale.event |= columns.get::<bool>(4)?;
        }
        Ok((!rows.is_empty()).then_some(stale))
    }

    async fn fetch(self, lane: &mut Lane, charts: &Charts, no: i32) -> Result<Fetched, Failure> {
        let of_event: Value<'_> = (&no, Type::INT4);
        let event = if self.event {
            let rows = lane
                .rows(events::EVENT, std::slice::from_ref(&of_event))
                .await?;
            match rows.first() {
                Some(row) => Some(charts.event(lane, row).await?),
                None => None,
            }
        } else {
            None
        };
        let unit_nos: Vec<i32> = self.units.into_iter().collect();
        let hold_ids: Vec<Id> = self.holds.into_iter().collect();
        let keys: Vec<Id> = self.holders.into_iter().collect();
        let booking_ids: Vec<Id> = self.bookings.into_iter().collect();
        let by_no: [Value<'_>; 2] = [of_event.clone(), (&unit_nos, Type::INT4_ARRAY)];
        let by_key: [Value<'_>; 2] = [of_event, (&keys, Type::BYTEA_ARRAY)];
        Ok(Fetched {
            event,
            units: lane.rows(units::UNITS, &by_no).await?,
            holds: lane
                .rows(holds::HOLDS, &[(&hold_ids, Type::BYTEA_ARRAY)])
                .await?,
            bookings: bookings_by_id(lane, &booking_ids).await?,
            holders: lane.rows(holds::HOLDERS_BY_KEY, &by_key).await?,
        })
    }
}

async fn horizon(lane: &mut Lane) -> Result<i64, Failure> {
    let rows = lane.rows(HORIZON, &[]).await?;
    let row = rows.first().map(|row| Columns::new(row, "batches").get(0));
    Ok(row.transpose()?.unwrap_or(0))
}

/// Bookings with their lines.
pub(super) async fn bookings_by_id(
    lane: &mut Lane,
    ids: &[Id],
) -> Result<Vec<BookingRow>, Failure> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let ids: [Value<'_>; 1] = [(&ids, Type::BYTEA_ARRAY)];
    let found = lane.rows(bookings::BOOKINGS, &ids).await?;
    let lines = lane.rows(bookings::LINES_OF, &ids).await?;
    Ok(bookings::read(&found, &lines)?)
}

fn missing(no: EventNo) -> Failure {
    let what = format!("event {} or one of its units is missing", no.0);
    Failure::Damaged(crate::ledger::rows::Damaged::new("events", what))
}
