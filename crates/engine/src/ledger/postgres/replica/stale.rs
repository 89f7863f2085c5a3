//! What others wrote: which rows it touched, and those rows as they are in one snapshot.

use std::collections::{BTreeMap, BTreeSet};

use soldonce_core::{BookingId, Hold, Unit, UnitNo};
use tokio_postgres::Row;

use super::Replica;
use crate::ledger::postgres::bind::bind;
use crate::ledger::postgres::charts::Charts;
use crate::ledger::postgres::database::Connection;
use crate::ledger::postgres::failure::Failure;
use crate::ledger::postgres::horizon::{Horizon, horizon, since};
use crate::ledger::postgres::tables::bookings::BookingRow;
use crate::ledger::postgres::tables::holds::HolderRow;
use crate::ledger::postgres::tables::{Columns, Id, bookings, events, holds, int, units};
use crate::ledger::rows::bookings::get_line;
use crate::ledger::rows::holds::get as get_hold;
use crate::ledger::rows::reader::Reader;

const HORIZON: &str = concat!(
    "-- horizon\nSELECT ",
    horizon!(),
    "\nFROM sequencer WHERE one = 1"
);

/// Selects what others wrote since.
pub(super) const WRITTEN: &str = concat!(
    "-- written\nSELECT b.units, b.holds, b.bookings, b.holders, b.renews, b.at FROM ",
    since!("event_no = $3 AND server <> $4")
);

/// Whether [`WRITTEN`] has rows, and [`HORIZON`] of the same snapshot.
const BEHIND: &str = concat!(
    "-- behind\nSELECT EXISTS (SELECT FROM ",
    since!("event_no = $3 AND server <> $4"),
    "),
       ",
    horizon!(),
    "\nFROM sequencer WHERE one = 1"
);

impl Replica {
    /// Tells whether others wrote since the last time. One statement sees one snapshot, so if they
    /// did not, there is nothing else to read, and the horizon rises.
    pub(super) async fn is_behind(
        &mut self,
        connection: &mut Connection,
        server: Id,
    ) -> Result<bool, Failure> {
        let no = int(self.no.0)?;
        let [first, last] = self.horizon.parts();
        let since = [first, last, bind(&no), bind(&server)];
        let rows = connection.rows(BEHIND, &since).await?;
        let Some(row) = rows.first() else {
            return Ok(true);
        };
        let is_behind: bool = Columns::new(row, "batches").get(0)?;
        if !is_behind {
            self.horizon = Horizon::read(row, 1)?;
        }
        Ok(is_behind)
    }
}

/// Rows to be read again.
#[derive(Debug, Default)]
pub(super) struct StaleRows {
    units: BTreeSet<i32>,
    holds: BTreeSet<Id>,
    bookings: BTreeSet<Id>,
    holders: BTreeSet<Id>,
    event: bool,
    pub(super) latest: i64,
}

/// Rows of one snapshot.
pub(super) struct SnapshotRows {
    pub(super) event: Option<events::EventRow>,
    pub(super) units: Vec<(UnitNo, Unit)>,
    pub(super) holds: Vec<Hold>,
    pub(super) bookings: Vec<BookingRow>,
    pub(super) holders: Vec<HolderRow>,
}

impl StaleRows {
    /// Reads which rows these batches touched. None when there are no batches.
    pub(super) fn read(rows: &[Row]) -> Result<Option<Self>, Failure> {
        let mut stale = Self::default();
        for row in rows {
            let columns = Columns::new(row, "batches");
            stale.units.extend(columns.get::<Vec<i32>>(0)?);
            stale.holds.extend(columns.get::<Vec<Id>>(1)?);
            stale.bookings.extend(columns.get::<Vec<Id>>(2)?);
            stale.holders.extend(columns.get::<Vec<Id>>(3)?);
            stale.event |= columns.get::<bool>(4)?;
            stale.latest = stale.latest.max(columns.get(5)?);
        }
        Ok((!rows.is_empty()).then_some(stale))
    }

    pub(super) async fn fetch(
        self,
        connection: &mut Connection,
        charts: &Charts,
        no: i32,
    ) -> Result<SnapshotRows, Failure> {
        let event = if self.event {
            charts.event_of(connection, no).await?
        } else {
            None
        };
        let unit_nos: Vec<i32> = self.units.into_iter().collect();
        let hold_ids: Vec<Id> = self.holds.into_iter().collect();
        let keys: Vec<Id> = self.holders.into_iter().collect();
        let booking_ids: Vec<Id> = self.bookings.into_iter().collect();
        let (by_no, by_id) = ([bind(&no), bind(&unit_nos)], [bind(&hold_ids)]);
        Ok(SnapshotRows {
            event,
            units: connection.read(units::UNITS, &by_no, units::get).await?,
            holds: connection.read(holds::HOLDS, &by_id, get_hold).await?,
            bookings: bookings_by_id(connection, &booking_ids).await?,
            holders: holders_by_key(connection, no, &keys).await?,
        })
    }
}

/// Reads bookings with their lines.
pub(in super::super) async fn bookings_by_id(
    connection: &mut Connection,
    ids: &[Id],
) -> Result<Vec<BookingRow>, Failure> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let ids = [bind(&ids)];
    let found = connection.read((bookings::BOOKINGS, "bookings"), &ids, bookings::get);
    let found = found.await?.into_iter().map(|row| (row.booking.id, row));
    let mut found: BTreeMap<BookingId, BookingRow> = found.collect();
    let read = |row: &mut Reader<'_>| Ok((row.get::<BookingId>()?, get_line(row)?));
    let lines = connection.read((bookings::LINES_OF, "lines"), &ids, read);
    for (booking, line) in lines.await? {
        if let Some(row) = found.get_mut(&booking) {
            row.booking.lines.push(line);
        }
    }
    Ok(found.into_values().collect())
}

pub(super) async fn holders_by_key(
    connection: &mut Connection,
    no: i32,
    keys: &[Id],
) -> Result<Vec<HolderRow>, Failure> {
    let (by_key, values) = ((holds::HOLDERS_BY_KEY, "holders"), [bind(&no), bind(&keys)]);
    connection.read(by_key, &values, holds::get_holder).await
}

pub(super) async fn read_horizon(connection: &mut Connection) -> Result<Horizon, Failure> {
    let rows = connection.rows(HORIZON, &[]).await?;
    let horizon = rows.first().map(|row| Horizon::read(row, 0)).transpose()?;
    Ok(horizon.unwrap_or_default())
}
